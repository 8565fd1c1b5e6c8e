// SPDX-License-Identifier: Apache-2.0
// A table of device functions, called indirectly with an index that differs between lanes.
#include "common/program.h"

KERNEL void function_pointers(const int* values, int* results, int n);

#ifdef __CUDACC__
typedef int (*Operation)(int, int);
static __device__ __noinline__ int add(int a, int b) { return a + b; }
static __device__ __noinline__ int subtract(int a, int b) { return a - b; }
static __device__ __noinline__ int multiply(int a, int b) { return a * b; }
static __device__ __noinline__ int collatz(int a, int) {
    int steps = 0;
    for (unsigned value = a + 1; value != 1; ++steps) value = value % 2 ? 3 * value + 1 : value / 2;
    return steps;
}
__device__ Operation operations[4] = {add, subtract, multiply, collatz};

__global__ void function_pointers(const int* values, int* results, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) results[i] = operations[values[i] & 3](values[i], i);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("function_pointers", argc, argv);
    const int n = program.argument(0, 10000);
    test::Random random(25);
    std::vector<int> values(n);
    for (int& value : values) value = static_cast<int>(random.below(10000));
    const test::Buffer<int> input(values), output(n);
    LAUNCH(function_pointers, test::blocks_for(n, 128), 128, 0, input, output, n);
    const std::vector<int> actual = output.download();
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const int a = values[i];
        int expected = (a & 3) == 0 ? a + i : (a & 3) == 1 ? a - i : (a & 3) == 2 ? a * i : 0;
        if ((a & 3) == 3)
            for (unsigned value = a + 1; value != 1; ++expected) value = value % 2 ? 3 * value + 1 : value / 2;
        wrong += actual[i] != expected;
    }
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
