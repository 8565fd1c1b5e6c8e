// SPDX-License-Identifier: Apache-2.0
// Heat in a box: 7-point stencil in three dimensions, two grids in turn, double precision.
#include "common/program.h"

KERNEL void stencil(const double* from, double* to, int nx, int ny, int nz);

#ifdef __CUDACC__
__global__ void stencil(const double* from, double* to, int nx, int ny, int nz) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    const bool inside = x > 0 && y > 0 && x < nx - 1 && y < ny - 1;
    for (int z = 0; z < nz; ++z) {
        const int i = (z * ny + y) * nx + x;
        double value = from[i];
        if (inside && z > 0 && z < nz - 1)
            value += 0.1 * (from[i - 1] + from[i + 1] + from[i - nx] + from[i + nx] + from[i - nx * ny] +
                            from[i + nx * ny] - 6 * value);
        to[i] = value;
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("stencil", argc, argv);
    const int nx = program.argument(0, 70), ny = 50, nz = 30, steps = program.argument(1, 8);
    std::vector<double> expected(nx * ny * nz), next;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<double>(i * 7919 % 1000) / 10;
    const test::Buffer<double> first(expected), second(expected.size());
    for (int s = 0; s < steps; ++s)
        LAUNCH(stencil, dim3(test::blocks_for(nx, 32), test::blocks_for(ny, 4)), dim3(32, 4), 0,
               s % 2 ? second : first, s % 2 ? first : second, nx, ny, nz);
    for (int s = 0; s < steps; ++s) {
        next = expected;
        for (int z = 1; z < nz - 1; ++z)
            for (int y = 1; y < ny - 1; ++y)
                for (int x = 1; x < nx - 1; ++x) {
                    const int i = (z * ny + y) * nx + x;
                    next[i] += 0.1 * (expected[i - 1] + expected[i + 1] + expected[i - nx] + expected[i + nx] +
                                      expected[i - nx * ny] + expected[i + nx * ny] - 6 * expected[i]);
                }
        expected = next;
    }
    const double error = test::worst_error((steps % 2 ? second : first).download(), expected);
    return program.finish(error < 1e-12, "%dx%dx%d steps=%d error=%.2g", nx, ny, nz, steps, error);
}
