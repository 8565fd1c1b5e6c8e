// SPDX-License-Identifier: Apache-2.0
// cuda::barrier, cuda::pipeline and cooperative_groups::memcpy_async: phases by token and parity, blocks whose warps have
// different roles, copies that overlap with arithmetic. nvcc: -arch=sm_90
#include "common/program.h"

KERNEL void neighbour_sums(const int* input, int* output, int rounds);
KERNEL void producer_consumer(const int* input, int* output, int tiles);
KERNEL void staged_copies(const int* input, int* output, int tiles);
KERNEL void group_copies(const int* input, int* output, int tiles);

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
#pragma nv_diag_suppress static_var_with_dynamic_init // init() makes them
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Every round each thread adds its neighbour's value; threads above 96 drop out half way.
__global__ void neighbour_sums(const int* input, int* output, int rounds) {
    __shared__ int values[2][128];
    __shared__ Barrier barrier;
    const int t = threadIdx.x;
    if (t == 0) init(&barrier, blockDim.x);
    values[0][t] = values[1][t] = input[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        if (round == rounds / 2 && t >= 96) {
            barrier.arrive_and_drop();
            return;
        }
        const int sum = values[round & 1][t] + values[round & 1][(t + 1) % 96];
        Barrier::arrival_token token = barrier.arrive();
        const int next = sum & 0xffff;
        barrier.wait(std::move(token));
        values[(round + 1) & 1][t] = next;
        barrier.arrive_and_wait();
    }
    output[blockIdx.x * blockDim.x + t] = values[rounds & 1][t];
}

// Warp 0 produces tiles into a ring of two, the others consume them.
__global__ void producer_consumer(const int* input, int* output, int tiles) {
    __shared__ int ring[2][96];
    __shared__ Barrier full[2], empty[2];
    const int t = threadIdx.x;
    if (t < 2) {
        init(&full[t], blockDim.x);
        init(&empty[t], blockDim.x);
    }
    __syncthreads();
    if (t < 32) {
        for (int tile = 0; tile < tiles; ++tile) {
            empty[tile & 1].arrive_and_wait();
            for (int i = t; i < 96; i += 32) ring[tile & 1][i] = input[tile * 96 + i] * 3;
            (void)full[tile & 1].arrive();
        }
    } else {
        int sum = 0;
        (void)empty[0].arrive();
        (void)empty[1].arrive();
        for (int tile = 0; tile < tiles; ++tile) {
            full[tile & 1].arrive_and_wait();
            sum += ring[tile & 1][t - 32] ^ tile;
            (void)empty[tile & 1].arrive();
        }
        output[t - 32] = sum;
    }
}

// A pipeline of three stages for the block; the next tiles are copied while one is added up.
__global__ void staged_copies(const int* input, int* output, int tiles) {
    constexpr int stages = 3, size = 128;
    __shared__ int buffer[stages][size];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int tile = 0, ahead = 0; tile < tiles; ++tile) {
        for (; ahead < tiles && ahead < tile + stages; ++ahead) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&buffer[ahead % stages][threadIdx.x], &input[ahead * size + threadIdx.x], sizeof(int), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum = sum * 5 + buffer[tile % stages][(threadIdx.x + tile) % size];
        pipeline.consumer_release();
    }
    output[threadIdx.x] = sum;
}

// Two tiles in flight, copied by the group.
__global__ void group_copies(const int* input, int* output, int tiles) {
    constexpr int size = 100;
    __shared__ int buffer[2][size];
    auto block = cg::this_thread_block();
    int sum = 0;
    cg::memcpy_async(block, buffer[0], input, sizeof(int) * size);
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) {
            cg::memcpy_async(block, buffer[(tile + 1) & 1], input + (tile + 1) * size, sizeof(int) * size);
            cg::wait_prior<1>(block);
        } else {
            cg::wait(block);
        }
        sum = sum * 3 + buffer[tile & 1][(threadIdx.x * 7 + tile) % size];
        block.sync();
    }
    output[threadIdx.x] = sum;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("block_barriers", argc, argv);
    const int rounds = program.argument(0, 30), tiles = 37;
    test::Random random(3);
    std::vector<int> data(128 * 64);
    for (int& value : data) value = static_cast<int>(random.below(1000));
    const test::Buffer<int> input(data);

    constexpr int blocks = 5;
    const test::Buffer<int> sums(128 * blocks);
    LAUNCH(neighbour_sums, blocks, 128, 0, input, sums, rounds);
    std::vector<int> expected_sums(128 * blocks);
    for (int block = 0; block < blocks; ++block) {
        std::vector<int> values(data.begin() + block * 128, data.begin() + block * 128 + 96);
        for (int round = 0; round < rounds; ++round) {
            std::vector<int> next(96);
            for (int t = 0; t < 96; ++t) next[t] = (values[t] + values[(t + 1) % 96]) & 0xffff;
            values = next;
        }
        std::copy(values.begin(), values.end(), expected_sums.begin() + block * 128);
    }
    bool ok = sums.download() == expected_sums;

    const test::Buffer<int> consumed(96);
    LAUNCH(producer_consumer, 1, 128, 0, input, consumed, tiles);
    std::vector<int> expected(96);
    for (int t = 0; t < 96; ++t)
        for (int tile = 0; tile < tiles; ++tile) expected[t] += (data[tile * 96 + t] * 3) ^ tile;
    ok = ok && consumed.download() == expected;

    const test::Buffer<int> staged(128), grouped(128);
    LAUNCH(staged_copies, 1, 128, 0, input, staged, tiles);
    LAUNCH(group_copies, 1, 128, 0, input, grouped, tiles);
    std::vector<int> expected_staged(128), expected_grouped(128);
    for (int t = 0; t < 128; ++t) {
        unsigned stage_sum = 0, group_sum = 0;
        for (int tile = 0; tile < tiles; ++tile) {
            stage_sum = stage_sum * 5 + static_cast<unsigned>(data[tile * 128 + (t + tile) % 128]);
            group_sum = group_sum * 3 + static_cast<unsigned>(data[tile * 100 + (t * 7 + tile) % 100]);
        }
        expected_staged[t] = static_cast<int>(stage_sum);
        expected_grouped[t] = static_cast<int>(group_sum);
    }
    ok = ok && staged.download() == expected_staged && grouped.download() == expected_grouped;
    return program.finish(ok, "rounds=%d first=%d", rounds, expected_sums[0]);
}
