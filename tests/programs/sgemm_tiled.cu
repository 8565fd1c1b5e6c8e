// SPDX-License-Identifier: Apache-2.0
// C = A * B through 16x16 tiles in shared memory; sizes need not be multiples of the tile.
#include "common/program.h"

KERNEL void sgemm_tiled(const float* a, const float* b, float* c, int m, int n, int k);

#ifdef __CUDACC__
__global__ void sgemm_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < k; start += 16) {
        const int ka = start + threadIdx.x, kb = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("sgemm_tiled", argc, argv);
    const int m = program.argument(0, 200), n = program.argument(1, 180), k = program.argument(2, 250);
    test::Random random(2);
    const std::vector<float> a = random.floats(m * k, -1, 1), b = random.floats(k * n, -1, 1);
    const test::Buffer<float> da(a), db(b), dc(m * n);
    LAUNCH(sgemm_tiled, dim3(test::blocks_for(n, 16), test::blocks_for(m, 16)), dim3(16, 16), 0, da, db, dc, m, n, k);
    std::vector<double> expected(m * n);
    for (int i = 0; i < m; ++i)
        for (int l = 0; l < k; ++l)
            for (int j = 0; j < n; ++j) expected[i * n + j] += double(a[i * k + l]) * b[l * n + j];
    const double error = test::worst_error(dc.download(), expected);
    return program.finish(error < 2e-5, "%dx%dx%d error=%.2g", m, n, k, error);
}
