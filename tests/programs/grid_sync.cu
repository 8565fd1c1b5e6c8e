// SPDX-License-Identifier: Apache-2.0
// Cooperative launches: rounds over a ring of cells with grid.sync() between them, split barriers (arrive and wait), and a grid
// that is too large to be resident.
#include "common/program.h"

KERNEL void diffuse(unsigned* first, unsigned* second, int cells, int rounds);
KERNEL void arrive_and_wait(unsigned* cells, unsigned* sums, int rounds);

#ifdef __CUDACC__
#include <cooperative_groups.h>

__global__ void diffuse(unsigned* first, unsigned* second, int cells, int rounds) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned *from = first, *to = second;
    for (int round = 0; round < rounds; ++round) {
        for (int cell = int(grid.thread_rank()); cell < cells; cell += int(grid.size()))
            to[cell] = from[(cell + cells - 1) % cells] * 3 + from[cell] + from[(cell + 1) % cells] * 5 + round;
        grid.sync();
        unsigned* next = from;
        from = to;
        to = next;
    }
}

/// Each block adds up what all blocks wrote in the round, while the barrier's two halves have work between them.
__global__ void arrive_and_wait(unsigned* cells, unsigned* sums, int rounds) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const unsigned blocks = gridDim.x;
    unsigned sum = 0;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) cells[round % 2 * blocks + blockIdx.x] = blockIdx.x * 7 + round;
        auto token = grid.barrier_arrive();
        sum += round;
        grid.barrier_wait(std::move(token));
        for (unsigned block = threadIdx.x; block < blocks; block += blockDim.x) sum += cells[round % 2 * blocks + block];
        grid.sync();
    }
    sums[grid.thread_rank()] = sum;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("grid_sync", argc, argv);
    const int blocks = program.argument(0, 12), rounds = program.argument(1, 15), cells = 5000;
    test::Random random(71);
    std::vector<unsigned> from(cells), to(cells);
    for (unsigned& cell : from) cell = random.bits();
    const test::Buffer<unsigned> first(from), second(cells), slots(2 * blocks), sums(blocks * 64);
    bool ok = LAUNCH_COOPERATIVE(diffuse, blocks, 128, 0, first, second, cells, rounds);
    ok = LAUNCH_COOPERATIVE(arrive_and_wait, blocks, 64, 0, slots, sums, rounds) && ok;
    test::synchronize();
    for (int round = 0; round < rounds; ++round) {
        for (int cell = 0; cell < cells; ++cell)
            to[cell] = from[(cell + cells - 1) % cells] * 3 + from[cell] + from[(cell + 1) % cells] * 5 + round;
        from.swap(to);
    }
    ok = ok && (rounds % 2 ? second : first).download() == from;
    const std::vector<unsigned> actual = sums.download();
    int wrong = 0;
    for (int t = 0; t < blocks * 64; ++t) {
        unsigned sum = 0;
        for (int round = 0; round < rounds; ++round) {
            sum += round;
            for (int block = t % 64; block < blocks; block += 64) sum += block * 7 + round;
        }
        wrong += actual[t] != sum;
    }
    const bool refused = !LAUNCH_COOPERATIVE(diffuse, 1000000, 1024, 0, first, second, cells, 1);
    return program.finish(ok && wrong == 0 && refused, "blocks=%d rounds=%d wrong=%d refused=%d", blocks, rounds, wrong, refused);
}
