// SPDX-License-Identifier: Apache-2.0
// Transpose with blocks of 7x9 threads: rows of a warp are split over block rows and the last warp is partial.
#include "common/program.h"

KERNEL void transpose_odd(const int* input, int* output, int width, int height);

#ifdef __CUDACC__
__global__ void transpose_odd(const int* input, int* output, int width, int height) {
    __shared__ int tile[9][7];
    const int x = blockIdx.x * 7 + threadIdx.x, y = blockIdx.y * 9 + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = input[y * width + x];
    __syncthreads();
    const int thread = threadIdx.y * 7 + threadIdx.x;
    const int tx = thread / 9, ty = thread % 9;
    const int ox = blockIdx.x * 7 + tx, oy = blockIdx.y * 9 + ty;
    if (ox < width && oy < height) output[ox * height + oy] = tile[ty][tx];
}
#endif

int main(int argc, char** argv) {
    const test::Program program("transpose_odd", argc, argv);
    const int width = program.argument(0, 353), height = program.argument(1, 211);
    std::vector<int> input(width * height);
    for (int i = 0; i < width * height; ++i) input[i] = i * 3 + 1;
    const test::Buffer<int> source(input), target(width * height);
    LAUNCH(transpose_odd, dim3(test::blocks_for(width, 7), test::blocks_for(height, 9)), dim3(7, 9), 0, source, target,
           width, height);
    const std::vector<int> output = target.download();
    int wrong = 0;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) wrong += output[x * height + y] != input[y * width + x];
    return program.finish(wrong == 0, "%dx%d wrong=%d", width, height, wrong);
}
