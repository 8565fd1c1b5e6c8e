// SPDX-License-Identifier: Apache-2.0
// A histogram of bytes: atomics on shared memory per block, then on global memory.
#include "common/program.h"

KERNEL void histogram(const unsigned char* data, int n, unsigned* bins);

#ifdef __CUDACC__
__global__ void histogram(const unsigned char* data, int n, unsigned* bins) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("histogram", argc, argv);
    const int n = program.argument(0, 2000000);
    test::Random random(7);
    std::vector<unsigned char> data(n);
    std::vector<unsigned> expected(256);
    for (unsigned char& byte : data) {
        byte = static_cast<unsigned char>(random.below(256) & random.below(256));
        ++expected[byte];
    }
    const test::Buffer<unsigned char> input(data);
    const test::Buffer<unsigned> bins(256);
    LAUNCH(histogram, 40, 192, 0, input, n, bins);
    const bool ok = bins.download() == expected;
    return program.finish(ok, "n=%d bin0=%u", n, expected[0]);
}
