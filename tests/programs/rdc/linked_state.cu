// SPDX-License-Identifier: Apache-2.0
// Two files linked: constants, device variables, function tables, shared memory, recursion and printf across them.
#include "../common/program.h"
#include "linked_state.h"

KERNEL void combine(int* out, int n);
KERNEL void walk(int* out, int n);
KERNEL void remember(int* out);
KERNEL void announce(int n);

#ifdef __CUDACC__
static __device__ int bias = 7;
static __device__ __noinline__ int mix(int a, int b) {
    return a * 17 + b + bias;
}

KERNEL void combine(int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int value = i < n ? look_up(i) : 0;
    const int result = operations[i % operation_count](value, mix(i, scaled<3>(i)));
    const int sum = sum_of_block(result);
    if (i < n) out[i] = result ^ sum;
}

__device__ int collatz_odd(int n, int depth) {
    return collatz_even(3 * n + 1, depth + 1);
}
KERNEL void walk(int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = collatz_even(i + 1, 0);
}

extern __shared__ int window[];
KERNEL void remember(int* out) {
    window[threadIdx.x] = history[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = window[7 - threadIdx.x] + 10 * latest[-static_cast<int>(threadIdx.x)];
    __syncthreads();
    if (threadIdx.x == 0) ++history[0];
}
#endif

namespace {

int file_2_mix(int a, int b) {
    return a * 31 + b + 100;
}

std::vector<int> expected_combination(const std::vector<int>& constants, int n, int block) {
    std::vector<int> results(n);
    for (int first = 0; first < n; first += block) {
        int sum = 0;
        std::vector<int> values(block);
        for (int t = 0; t < block; ++t) {
            const int i = first + t;
            const int value = i < n ? file_2_mix(constants[i % table_size], 3 * i + 1) : 0;
            const int own = i * 17 + (3 * i + 1) + 7;
            values[t] = i % 3 == 0 ? value + own : i % 3 == 1 ? value - own : file_2_mix(value, own);
            sum += values[t];
        }
        for (int t = 0; t < block && first + t < n; ++t) results[first + t] = values[t] ^ sum;
    }
    return results;
}

int expected_walk(int n) {
    int depth = 0;
    while (n > 1 && depth <= 40) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        ++depth;
    }
    return depth;
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("linked_state", argc, argv);
    const int n = program.argument(0, 3000), block = 128;
    test::Random random(5);
    struct {
        int values[table_size];
    } constants;
    for (int& value : constants.values) value = static_cast<int>(random.below(1000));
    SET_SYMBOL(table, constants);

    const test::Buffer<int> combined(n), walked(n), history_out(8);
    LAUNCH(combine, test::blocks_for(n, block), block, block * sizeof(int), combined, n);
    LAUNCH(walk, test::blocks_for(n, block), block, 0, walked, n);
    LAUNCH(remember, 1, 8, 8 * sizeof(int), history_out);
    LAUNCH(announce, 1, 32, 0, 3);
    const std::vector<int> a = combined.download(), b = walked.download(), c = history_out.download();
    LAUNCH(remember, 1, 8, 8 * sizeof(int), history_out);
    const std::vector<int> d = history_out.download();

    const std::vector<int> wanted =
        expected_combination({constants.values, constants.values + table_size}, n, block);
    const int digits[] = {3, 1, 4, 1, 5, 9, 2, 6};
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += (a[i] != wanted[i]) + (b[i] != expected_walk(i + 1));
    for (int i = 0; i < 8; ++i) {
        wrong += c[i] != 11 * digits[7 - i];
        wrong += d[i] != 11 * (digits[7 - i] + (i == 7));
    }
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
