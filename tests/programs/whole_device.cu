// SPDX-License-Identifier: Apache-2.0
// Grids as large as the device holds: a cooperative one whose blocks meet although there are far more of them than
// cores, persistent blocks that draw their work, and one block too many.
#include "common/program.h"

KERNEL void meet(unsigned* counters, unsigned* multiprocessors, int rounds);
KERNEL void draw_work(unsigned* next, unsigned* done, unsigned items);

#ifdef __CUDACC__
#include <cooperative_groups.h>

/// Each block counts itself in before a barrier of the grid and looks behind it; counters[1]: how often one was missed.
__global__ void meet(unsigned* counters, unsigned* multiprocessors, int rounds) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned place, count;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(place));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
    if (threadIdx.x == 0) atomicAdd(&multiprocessors[place < count ? place : count], 1u);
    for (int round = 1; round <= rounds; ++round) {
        if (threadIdx.x == 0) atomicAdd(&counters[0], 1u);
        grid.sync();
        if (threadIdx.x == 0 && *(volatile unsigned*)&counters[0] != gridDim.x * round) atomicAdd(&counters[1], 1u);
        grid.sync();
    }
}

__global__ void draw_work(unsigned* next, unsigned* done, unsigned items) {
    __shared__ unsigned item;
    for (;;) {
        if (threadIdx.x == 0) item = atomicAdd(next, 1u);
        __syncthreads();
        const unsigned mine = item;
        __syncthreads();
        if (mine >= items) return;
        if (threadIdx.x < 32) atomicAdd(&done[mine], threadIdx.x + 1);
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("whole_device", argc, argv);
    const unsigned multiprocessors = 132; // of an H200
    const int rounds = program.argument(0, 3), threads[] = {128, 1024};
    bool ok = true, refused = true;
    unsigned missed = 0, misplaced = 0;
    for (const int block : threads) {
        const unsigned per_multiprocessor = 2048u / block, blocks = multiprocessors * per_multiprocessor;
        const test::Buffer<unsigned> counters(2), places(multiprocessors + 1);
        ok = LAUNCH_COOPERATIVE(meet, blocks, block, 0, counters, places, rounds) && ok;
        refused = refused && !LAUNCH_COOPERATIVE(meet, blocks + 1, block, 0, counters, places, rounds);
        test::synchronize();
        const std::vector<unsigned> counted = counters.download(), placed = places.download();
        ok = ok && counted[0] == blocks * rounds;
        missed += counted[1];
        for (unsigned i = 0; i <= multiprocessors; ++i) misplaced += placed[i] != (i < multiprocessors ? per_multiprocessor : 0);
    }
    const unsigned items = 20000;
    const test::Buffer<unsigned> next(1), done(items);
    LAUNCH(draw_work, multiprocessors * 8, 256, 0, next, done, items);
    test::synchronize();
    unsigned wrong = 0;
    for (const unsigned times : done.download()) wrong += times != 528;
    return program.finish(ok && refused && missed == 0 && misplaced == 0 && wrong == 0, "rounds=%d refused=%d missed=%u misplaced=%u wrong=%u",
                          rounds, refused, missed, misplaced, wrong);
}
