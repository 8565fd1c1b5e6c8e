// SPDX-License-Identifier: Apache-2.0
// Transpose through a padded 32x32 tile, 32x8 threads.
#include "common/program.h"

KERNEL void transpose_shared(const float* input, float* output, int width, int height);

#ifdef __CUDACC__
__global__ void transpose_shared(const float* input, float* output, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (x < width && y + i < height) tile[threadIdx.y + i][threadIdx.x] = input[(y + i) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (x < height && y + i < width) output[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
}
#endif

int main(int argc, char** argv) {
    const test::Program program("transpose_shared", argc, argv);
    const int width = program.argument(0, 1000), height = program.argument(1, 777);
    test::Random random(4);
    const std::vector<float> input = random.floats(width * height, -1, 1);
    const test::Buffer<float> source(input), target(width * height);
    LAUNCH(transpose_shared, dim3(test::blocks_for(width, 32), test::blocks_for(height, 32)), dim3(32, 8), 0, source,
           target, width, height);
    const std::vector<float> output = target.download();
    int wrong = 0;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) wrong += output[x * height + y] != input[y * width + x];
    return program.finish(wrong == 0, "%dx%d wrong=%d", width, height, wrong);
}
