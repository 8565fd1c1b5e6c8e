// SPDX-License-Identifier: Apache-2.0
// C = A * B, 64x64 per block of 16x16 threads, 4x4 results per thread in registers. Sizes are multiples of 64 and 16.
#include "common/program.h"

KERNEL void sgemm_register_tiled(const float* a, const float* b, float* c, int n, int k);

#ifdef __CUDACC__
__global__ void sgemm_register_tiled(const float* a, const float* b, float* c, int n, int k) {
    __shared__ float tile_a[16][64], tile_b[16][64];
    const int thread = threadIdx.y * 16 + threadIdx.x;
    const int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int start = 0; start < k; start += 16) {
        for (int i = thread; i < 1024; i += 256) {
            tile_a[i % 16][i / 16] = a[(first_row + i / 16) * k + start + i % 16];
            tile_b[i / 64][i % 64] = b[(start + i / 64) * n + first_column + i % 64];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            float left[4], right[4];
            for (int j = 0; j < 4; ++j) {
                left[j] = tile_a[i][threadIdx.y * 4 + j];
                right[j] = tile_b[i][threadIdx.x * 4 + j];
            }
            for (int y = 0; y < 4; ++y)
                for (int x = 0; x < 4; ++x) sums[y][x] += left[y] * right[x];
        }
        __syncthreads();
    }
    for (int y = 0; y < 4; ++y) {
        float* row = c + (first_row + threadIdx.y * 4 + y) * n + first_column + threadIdx.x * 4;
        *reinterpret_cast<float4*>(row) = make_float4(sums[y][0], sums[y][1], sums[y][2], sums[y][3]);
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("sgemm_register_tiled", argc, argv);
    const int n = program.argument(0, 256) / 64 * 64, k = program.argument(1, 192) / 16 * 16;
    test::Random random(3);
    const std::vector<float> a = random.floats(n * k, -1, 1), b = random.floats(k * n, -1, 1);
    const test::Buffer<float> da(a), db(b), dc(n * n);
    LAUNCH(sgemm_register_tiled, dim3(n / 64, n / 64), dim3(16, 16), 0, da, db, dc, n, k);
    std::vector<double> expected(n * n);
    for (int i = 0; i < n; ++i)
        for (int l = 0; l < k; ++l)
            for (int j = 0; j < n; ++j) expected[i * n + j] += double(a[i * k + l]) * b[l * n + j];
    const double error = test::worst_error(dc.download(), expected);
    return program.finish(error < 2e-5, "%dx%dx%d error=%.2g", n, n, k, error);
}
