// SPDX-License-Identifier: Apache-2.0
// The barrier of all blocks as Xiao and Feng published it ("Inter-block GPU communication via fast barrier
// synchronization", 2010): a counter is awaited to be equal to a goal that the next barrier moves on. Who does not look in
// between never sees it: a race that a GPU wins, because all blocks look all the time.
#include "common/program.h"

KERNEL void with_volatile(int* count, int* cells, int* wrong, int rounds);
KERNEL void with_fences(int* count, int* cells, int* wrong, int rounds);

#ifdef __CUDACC__
__device__ void meet_by_volatile(int* count, int goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*const_cast<volatile int*>(count) != goal) {}
    }
    __syncthreads();
}

__device__ void meet_by_fences(int* count, int goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*count != goal) __threadfence();
    }
    __syncthreads();
}

/// In every round each thread writes its cell and reads that of a thread of another block.
template <class Barrier>
__device__ void exchange(Barrier meet, int* count, volatile int* cells, int* wrong, int rounds) {
    const int all = gridDim.x * blockDim.x, own = blockIdx.x * blockDim.x + threadIdx.x;
    int goal = 0;
    for (int round = 0; round < rounds; ++round) {
        const int other = (own + blockDim.x + round) % all;
        cells[own] = round * all + own;
        meet(count, goal += gridDim.x);
        if (cells[other] != round * all + other) atomicAdd(wrong, 1);
        meet(count, goal += gridDim.x);
    }
}

__global__ void with_volatile(int* count, int* cells, int* wrong, int rounds) {
    exchange(meet_by_volatile, count, cells, wrong, rounds);
}

__global__ void with_fences(int* count, int* cells, int* wrong, int rounds) {
    exchange(meet_by_fences, count, cells, wrong, rounds);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("published_barrier", argc, argv);
    int wrong = 0;
    for (const int blocks : {2, 7, 40}) {
        const int threads = 96, rounds = 20;
        const test::Buffer<int> counts(1), others(1), cells(blocks * threads), bad(1);
        LAUNCH(with_volatile, blocks, threads, 0, counts, cells, bad, rounds);
        LAUNCH(with_fences, blocks, threads, 0, others, cells, bad, rounds);
        wrong += bad.download()[0];
        wrong += counts.download()[0] != 2 * rounds * blocks || others.download()[0] != 2 * rounds * blocks;
    }
    return program.finish(wrong == 0, "wrong=%d", wrong);
}
