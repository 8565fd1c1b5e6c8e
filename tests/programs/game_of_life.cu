// SPDX-License-Identifier: Apache-2.0
// Conway's Game of Life on a torus, 18x18 neighbourhoods in shared memory.
#include "common/program.h"

KERNEL void life_step(const unsigned char* from, unsigned char* to, int width, int height);

#ifdef __CUDACC__
__global__ void life_step(const unsigned char* from, unsigned char* to, int width, int height) {
    __shared__ unsigned char cells[18][18];
    const int x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 18 * 18; i += 256) {
        const int x = (x0 + i % 18 - 1 + width) % width, y = (y0 + i / 18 - 1 + height) % height;
        cells[i / 18][i % 18] = from[y * width + x];
    }
    __syncthreads();
    const int x = threadIdx.x + 1, y = threadIdx.y + 1;
    int neighbours = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) neighbours += cells[y + dy][x + dx];
    neighbours -= cells[y][x];
    if (x0 + x <= width && y0 + y <= height)
        to[(y0 + y - 1) * width + x0 + x - 1] = neighbours == 3 || (neighbours == 2 && cells[y][x]);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("game_of_life", argc, argv);
    const int width = program.argument(0, 200), height = program.argument(1, 130), steps = program.argument(2, 20);
    test::Random random(12);
    std::vector<unsigned char> cells(width * height);
    for (unsigned char& cell : cells) cell = random.below(3) == 0;
    const test::Buffer<unsigned char> first(cells), second(cells.size());
    for (int s = 0; s < steps; ++s)
        LAUNCH(life_step, dim3(test::blocks_for(width, 16), test::blocks_for(height, 16)), dim3(16, 16), 0,
               s % 2 ? second : first, s % 2 ? first : second, width, height);
    for (int s = 0; s < steps; ++s) {
        const std::vector<unsigned char> old = cells;
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x) {
                int neighbours = -old[y * width + x];
                for (int dy = -1; dy <= 1; ++dy)
                    for (int dx = -1; dx <= 1; ++dx)
                        neighbours += old[(y + dy + height) % height * width + (x + dx + width) % width];
                cells[y * width + x] = neighbours == 3 || (neighbours == 2 && old[y * width + x]);
            }
    }
    const bool ok = (steps % 2 ? second : first).download() == cells;
    return program.finish(ok, "%dx%d steps=%d alive=%ld", width, height, steps,
                          static_cast<long>(std::count(cells.begin(), cells.end(), 1)));
}
