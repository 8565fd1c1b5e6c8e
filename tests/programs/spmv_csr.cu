// SPDX-License-Identifier: Apache-2.0
// Sparse matrix times vector: one warp per row, rows of very different lengths.
#include "common/program.h"

KERNEL void spmv_csr(const int* row_starts, const int* columns, const float* values, const float* x, float* y, int rows);

#ifdef __CUDACC__
__global__ void spmv_csr(const int* row_starts, const int* columns, const float* values, const float* x, float* y,
                         int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int i = row_starts[row] + lane; i < row_starts[row + 1]; i += 32) sum += values[i] * x[columns[i]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) y[row] = sum;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("spmv_csr", argc, argv);
    const int rows = program.argument(0, 5000), width = 4000;
    test::Random random(10);
    std::vector<int> starts = {0}, columns;
    for (int r = 0; r < rows; ++r) {
        const unsigned length = random.below(8) == 0 ? random.below(200) : random.below(12);
        for (unsigned i = 0; i < length; ++i) columns.push_back(random.below(width));
        starts.push_back(static_cast<int>(columns.size()));
    }
    const std::vector<float> values = random.floats(columns.size(), -1, 1), x = random.floats(width, -1, 1);
    const test::Buffer<int> d_starts(starts), d_columns(columns);
    const test::Buffer<float> d_values(values), d_x(x), d_y(rows);
    LAUNCH(spmv_csr, test::blocks_for(rows, 4), 128, 0, d_starts, d_columns, d_values, d_x, d_y, rows);
    std::vector<double> expected(rows);
    for (int r = 0; r < rows; ++r)
        for (int i = starts[r]; i < starts[r + 1]; ++i) expected[r] += double(values[i]) * x[columns[i]];
    const double error = test::worst_error(d_y.download(), expected);
    return program.finish(error < 1e-5, "rows=%d entries=%zu error=%.2g", rows, columns.size(), error);
}
