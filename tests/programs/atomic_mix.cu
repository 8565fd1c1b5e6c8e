// SPDX-License-Identifier: Apache-2.0
// Every atomic on global and shared memory, with many threads per address; float sums of integers are exact.
#include "common/program.h"

KERNEL void atomic_mix(const int* values, int n, int* integers, float* reals, unsigned long long* longs, double* shared_sum);

#ifdef __CUDACC__
// As programs for older devices do it.
static __device__ double add_by_compare_and_swap(double* address, double value) {
    unsigned long long* bits = reinterpret_cast<unsigned long long*>(address);
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (old != assumed);
    return __longlong_as_double(old);
}

__global__ void atomic_mix(const int* values, int n, int* integers, float* reals, unsigned long long* longs,
                           double* shared_sum) {
    __shared__ double sum;
    __shared__ int locked_count, lock;
    if (threadIdx.x == 0) {
        sum = 0;
        locked_count = lock = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int value = values[i];
        atomicAdd(&integers[0], value);
        atomicSub(&integers[1], value);
        atomicMin(&integers[2], value);
        atomicMax(&integers[3], value);
        atomicAnd(&integers[4], value | 0x100);
        atomicOr(&integers[5], value & 0xff);
        atomicXor(&integers[6], value);
        atomicInc(reinterpret_cast<unsigned*>(&integers[7]), 99);
        atomicDec(reinterpret_cast<unsigned*>(&integers[8]), 99);
        atomicMin(reinterpret_cast<unsigned*>(&integers[9]), static_cast<unsigned>(value));
        atomicExch(&integers[10], 7);
        atomicAdd(&reals[value & 3], static_cast<float>(value & 7));
        atomicMax(&longs[0], static_cast<unsigned long long>(value) << 20);
        atomicAdd(&longs[1], 1ull << 33);
        atomicAdd(&sum, 1.0);
        add_by_compare_and_swap(shared_sum, 0.5);
    }
    // A lock that lanes of a warp compete for.
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            ++*static_cast<volatile int*>(&locked_count);
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        add_by_compare_and_swap(shared_sum, sum);
        atomicAdd(&integers[11], locked_count);
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("atomic_mix", argc, argv);
    const int n = program.argument(0, 20000);
    test::Random random(24);
    std::vector<int> values(n), expected = {0, 0, INT32_MAX, INT32_MIN, -1, 0, 0, 0, 0, -1, 0, 0};
    std::vector<int> start = expected;
    std::vector<float> reals(4);
    unsigned long long longest = 0;
    for (int& value : values) {
        value = static_cast<int>(random.below(20000)) - 10000;
        expected[0] += value;
        expected[1] -= value;
        expected[2] = std::min(expected[2], value);
        expected[3] = std::max(expected[3], value);
        expected[4] &= value | 0x100;
        expected[5] |= value & 0xff;
        expected[6] ^= value;
        expected[7] = expected[7] >= 99 ? 0 : expected[7] + 1;
        expected[8] = expected[8] == 0 || expected[8] > 99 ? 99 : expected[8] - 1;
        expected[9] = static_cast<int>(std::min(static_cast<unsigned>(expected[9]), static_cast<unsigned>(value)));
        expected[10] = 7;
        reals[value & 3] += static_cast<float>(value & 7);
        longest = std::max(longest, static_cast<unsigned long long>(value) << 20);
    }
    const int blocks = 10, threads = 128;
    expected[11] = blocks * threads;
    const test::Buffer<int> input(values), integers(start);
    const test::Buffer<float> d_reals(4);
    const test::Buffer<unsigned long long> longs(2);
    const test::Buffer<double> sum(1);
    LAUNCH(atomic_mix, blocks, threads, 0, input, n, integers, d_reals, longs, sum);
    const std::vector<unsigned long long> expected_longs = {longest, static_cast<unsigned long long>(n) << 33};
    const bool ok[] = {integers.download() == expected, d_reals.download() == reals, longs.download() == expected_longs,
                       sum.download()[0] == 1.5 * n};
    return program.finish(ok[0] && ok[1] && ok[2] && ok[3], "n=%d integers=%d reals=%d longs=%d double=%d", n, ok[0],
                          ok[1], ok[2], ok[3]);
}
