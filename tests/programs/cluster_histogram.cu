// SPDX-License-Identifier: Apache-2.0
// A histogram whose bins are spread over the shared memory of a cluster's blocks: each block counts its part of the data into
// whichever block has the bin. nvcc: -arch=sm_90
#include "common/program.h"

KERNEL void cluster_histogram(const unsigned* data, int n, unsigned bins, unsigned* result);
KERNEL void cluster_ring(unsigned* result, int rounds);

#ifdef __CUDACC__
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) cluster_histogram(const unsigned* data, int n, unsigned bins, unsigned* result) {
    extern __shared__ unsigned local[];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned per_block = bins / cluster.num_blocks();
    for (unsigned i = threadIdx.x; i < per_block; i += blockDim.x) local[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned bin = data[i] % bins;
        atomicAdd(cluster.map_shared_rank(local, bin / per_block) + bin % per_block, 1u);
    }
    cluster.sync();
    for (unsigned i = threadIdx.x; i < per_block; i += blockDim.x)
        atomicAdd(&result[cluster.block_rank() * per_block + i], local[i]);
}

// A value goes around the cluster; every block adds to it and reads its neighbour's.
__global__ void __cluster_dims__(2, 2, 1) cluster_ring(unsigned* result, int rounds) {
    __shared__ unsigned value[2];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
    if (threadIdx.x == 0) value[0] = cluster.block_index().x * 10 + cluster.block_index().y + 1;
    cluster.sync();
    for (int round = 0; round < rounds; ++round) {
        const unsigned theirs = *cluster.map_shared_rank(&value[round & 1], next);
        auto token = cluster.barrier_arrive();
        const unsigned mixed = theirs * 31 + rank + threadIdx.x * 0;
        cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token));
        if (threadIdx.x == 0) value[(round + 1) & 1] = mixed;
        cluster.sync();
    }
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) result[block] = value[rounds & 1] + cluster.query_shared_rank(cluster.map_shared_rank(&value[0], next)) * 0;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("cluster_histogram", argc, argv);
    const int n = program.argument(0, 200000);
    constexpr unsigned bins = 2048, blocks = 16, threads = 192;
    test::Random random(11);
    std::vector<unsigned> data(n), expected(bins);
    for (unsigned& value : data) {
        value = random.below(1u << 20) & random.below(1u << 20);
        ++expected[value % bins];
    }
    const test::Buffer<unsigned> input(data), result(bins);
    LAUNCH(cluster_histogram, blocks, threads, bins / 4 * sizeof(unsigned), input, n, bins, result);
    bool ok = result.download() == expected;

    constexpr int rounds = 9;
    constexpr unsigned width = 4, height = 4;
    const test::Buffer<unsigned> ring(width * height);
    LAUNCH(cluster_ring, dim3(width, height), 64, 0, ring, rounds);
    std::vector<unsigned> around(width * height);
    for (unsigned cluster_y = 0; cluster_y < height; cluster_y += 2)
        for (unsigned cluster_x = 0; cluster_x < width; cluster_x += 2) {
            unsigned value[4], next[4];
            for (unsigned r = 0; r < 4; ++r) value[r] = r % 2 * 10 + r / 2 + 1;
            for (int round = 0; round < rounds; ++round) {
                for (unsigned r = 0; r < 4; ++r) next[r] = value[(r + 1) % 4] * 31 + r;
                for (unsigned r = 0; r < 4; ++r) value[r] = next[r];
            }
            for (unsigned r = 0; r < 4; ++r) around[(cluster_y + r / 2) * width + cluster_x + r % 2] = value[r];
        }
    ok = ok && ring.download() == around;
    return program.finish(ok, "n=%d bin0=%u ring0=%u", n, expected[0], around[0]);
}
