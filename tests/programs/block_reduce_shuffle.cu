// SPDX-License-Identifier: Apache-2.0
// Sums and maxima: shuffles inside a warp, shared memory between warps, atomics between blocks.
#include "common/program.h"

KERNEL void block_reduce_shuffle(const int* values, int n, unsigned long long* sum, int* maximum);

#ifdef __CUDACC__
__global__ void block_reduce_shuffle(const int* values, int n, unsigned long long* sum, int* maximum) {
    __shared__ long long sums[32];
    __shared__ int maxima[32];
    long long total = 0;
    int largest = -2147483647 - 1;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        total += values[i];
        largest = max(largest, values[i]);
    }
    for (int step = 16; step > 0; step /= 2) {
        total += __shfl_down_sync(0xffffffffu, total, step);
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    if (lane == 0) {
        sums[warp] = total;
        maxima[warp] = largest;
    }
    __syncthreads();
    if (warp == 0) {
        total = lane < warps ? sums[lane] : 0;
        largest = lane < warps ? maxima[lane] : -2147483647 - 1;
        for (int step = 16; step > 0; step /= 2) {
            total += __shfl_down_sync(0xffffffffu, total, step);
            largest = max(largest, __shfl_down_sync(0xffffffffu, largest, step));
        }
        if (lane == 0) {
            atomicAdd(sum, static_cast<unsigned long long>(total));
            atomicMax(maximum, largest);
        }
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("block_reduce_shuffle", argc, argv);
    const int n = program.argument(0, 1000000);
    test::Random random(5);
    std::vector<int> values(n);
    long long expected = 0;
    int largest = INT32_MIN;
    for (int& value : values) {
        value = static_cast<int>(random.bits());
        expected += value;
        largest = std::max(largest, value);
    }
    const test::Buffer<int> input(values), maximum(std::vector<int>{INT32_MIN});
    const test::Buffer<unsigned long long> sum(1);
    LAUNCH(block_reduce_shuffle, 60, 256, 0, input, n, sum, maximum);
    const long long actual = static_cast<long long>(sum.download()[0]);
    const int actual_largest = maximum.download()[0];
    return program.finish(actual == expected && actual_largest == largest, "n=%d sum=%lld max=%d", n, actual,
                          actual_largest);
}
