// SPDX-License-Identifier: Apache-2.0
// Inclusive prefix sum in three kernels: warp scans combined per block, scan of the block sums, addition of the offsets.
#include "common/program.h"

KERNEL void scan_blocks(const unsigned* input, unsigned* output, unsigned* sums, int n);
KERNEL void scan_sums(unsigned* sums, int count);
KERNEL void add_offsets(unsigned* output, const unsigned* sums, int n);

#ifdef __CUDACC__
__global__ void scan_blocks(const unsigned* input, unsigned* output, unsigned* sums, int n) {
    __shared__ unsigned warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned value = i < n ? input[i] : 0;
    for (int step = 1; step < 32; step *= 2) {
        const unsigned left = __shfl_up_sync(0xffffffffu, value, step);
        if (lane >= step) value += left;
    }
    if (lane == 31) warps[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < blockDim.x / 32; ++w) warps[w] += warps[w - 1];
    __syncthreads();
    if (warp > 0) value += warps[warp - 1];
    if (i < n) output[i] = value;
    if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = value;
}
__global__ void scan_sums(unsigned* sums, int count) {
    unsigned running = 0;
    for (int start = 0; start < count; start += 32) {
        const int lane = threadIdx.x;
        unsigned value = start + lane < count ? sums[start + lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            const unsigned left = __shfl_up_sync(0xffffffffu, value, step);
            if (lane >= step) value += left;
        }
        if (start + lane < count) sums[start + lane] = running + value;
        running += __shfl_sync(0xffffffffu, value, 31);
    }
}
__global__ void add_offsets(unsigned* output, const unsigned* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n) output[i] += sums[blockIdx.x - 1];
}
#endif

int main(int argc, char** argv) {
    const test::Program program("scan", argc, argv);
    const int n = program.argument(0, 300001);
    test::Random random(6);
    std::vector<unsigned> values(n);
    for (unsigned& value : values) value = random.below(1000);
    const int blocks = static_cast<int>(test::blocks_for(n, 512));
    const test::Buffer<unsigned> input(values), output(n), sums(blocks);
    LAUNCH(scan_blocks, blocks, 512, 0, input, output, sums, n);
    LAUNCH(scan_sums, 1, 32, 0, sums, blocks);
    LAUNCH(add_offsets, blocks, 512, 0, output, sums, n);
    const std::vector<unsigned> actual = output.download();
    unsigned running = 0;
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += actual[i] != (running += values[i]);
    return program.finish(wrong == 0, "n=%d total=%u wrong=%d", n, running, wrong);
}
