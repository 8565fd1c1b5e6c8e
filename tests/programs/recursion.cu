// SPDX-License-Identifier: Apache-2.0
// Recursive functions: Ackermann, a quicksort per thread, and mutual recursion.
#include "common/program.h"

KERNEL void recursion(int* values, int per_thread, unsigned* ackermann_results, int* parity, int threads);

#ifdef __CUDACC__
static __device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
static __device__ __noinline__ void quicksort(int* values, int low, int high) {
    if (low >= high) return;
    const int pivot = values[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (values[i] < pivot) ++i;
        while (values[j] > pivot) --j;
        if (i <= j) {
            const int value = values[i];
            values[i++] = values[j];
            values[j--] = value;
        }
    }
    quicksort(values, low, j);
    quicksort(values, i, high);
}
static __device__ bool is_odd(int n);
static __device__ __noinline__ bool is_even(int n) { return n == 0 || is_odd(n - 1); }
static __device__ __noinline__ bool is_odd(int n) { return n != 0 && is_even(n - 1); }

__global__ void recursion(int* values, int per_thread, unsigned* ackermann_results, int* parity, int threads) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    quicksort(values + t * per_thread, 0, per_thread - 1);
    ackermann_results[t] = ackermann(2, t % 5);
    parity[t] = is_even(t % 16);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("recursion", argc, argv);
    const int threads = program.argument(0, 200), per_thread = program.argument(1, 60);
    test::Random random(17);
    std::vector<int> values(threads * per_thread);
    for (int& value : values) value = static_cast<int>(random.below(1000)) - 500;
    const test::Buffer<int> sorted(values), parity(threads);
    const test::Buffer<unsigned> ackermann_results(threads);
    LAUNCH(recursion, test::blocks_for(threads, 64), 64, 0, sorted, per_thread, ackermann_results, parity, threads);
    int wrong = 0;
    const std::vector<unsigned> results = ackermann_results.download();
    const std::vector<int> even = parity.download();
    for (int t = 0; t < threads; ++t) {
        std::sort(values.begin() + t * per_thread, values.begin() + (t + 1) * per_thread);
        wrong += results[t] != static_cast<unsigned>(2 * (t % 5) + 3); // Ackermann(2, n) = 2 n + 3
        wrong += even[t] != (t % 2 == 0);
    }
    wrong += sorted.download() != values;
    return program.finish(wrong == 0, "threads=%d wrong=%d", threads, wrong);
}
