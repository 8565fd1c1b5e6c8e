// SPDX-License-Identifier: Apache-2.0
// The toolkit's cuda::ptx functions: mbarrier objects between warps in different roles and between the blocks of a cluster,
// asynchronous stores and reductions to another block, elected threads, fences. nvcc: -arch=sm_90
#include "common/program.h"

KERNEL void specialised(const unsigned* input, unsigned* output, int tiles);
KERNEL void tell_neighbour(unsigned* output, int rounds);

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Object = std::uint64_t;

__device__ bool elected() {
    unsigned is_leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(is_leader)::"memory");
    return is_leader != 0;
}

// Warp 0's elected thread fills a ring of four stages, warps 1 to 3 add up. The producer's transactions stand for its bytes.
__global__ void specialised(const unsigned* input, unsigned* output, int tiles) {
    constexpr unsigned stages = 4, size = 96;
    __shared__ unsigned ring[stages][size];
    __shared__ Object full[stages], empty[stages];
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < stages; ++s) {
            ptx::mbarrier_init(&full[s], 1);
            ptx::mbarrier_init(&empty[s], 3);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    const unsigned warp = threadIdx.x / 32;
    if (warp == 0) {
        if (!elected()) return;
        for (int tile = 0; tile < tiles; ++tile) {
            const unsigned stage = tile % stages, parity = tile / stages & 1;
            while (!ptx::mbarrier_try_wait_parity(&empty[stage], parity ^ 1)) {}
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage], size * 4);
            for (unsigned i = 0; i < size; ++i) ring[stage][i] = input[tile * size + i] + 1;
            asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(&full[stage]))), "r"(size * 4) : "memory");
        }
    } else {
        unsigned sum = 0;
        for (int tile = 0; tile < tiles; ++tile) {
            const unsigned stage = tile % stages, parity = tile / stages & 1;
            while (!ptx::mbarrier_try_wait_parity(&full[stage], parity)) {}
            sum = sum * 3 + ring[stage][(threadIdx.x - 32 + tile) % size];
            __syncwarp();
            if (elected()) ptx::mbarrier_arrive(&empty[stage]);
        }
        output[threadIdx.x - 32] = sum;
    }
}

// Every block sends its values to the next one of its cluster, and adds to a counter there.
__global__ void __cluster_dims__(4, 1, 1) tell_neighbour(unsigned* output, int rounds) {
    __shared__ alignas(16) unsigned inbox[2][64];
    __shared__ unsigned count;
    __shared__ Object arrived[2];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), next = (rank + 1) % 4, t = threadIdx.x;
    if (t == 0) {
        count = 0;
        for (Object& object : arrived) ptx::mbarrier_init(&object, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    unsigned value = blockIdx.x * 64 + t;
    for (int round = 0; round < rounds; ++round) {
        const int slot = round & 1;
        if (t == 0) ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &arrived[slot], 64 * 8);
        unsigned* remote = cluster.map_shared_rank(&inbox[slot][t], next);
        Object* told = cluster.map_shared_rank(&arrived[slot], next);
        ptx::st_async(remote, value, told);
        ptx::red_async(ptx::op_add, cluster.map_shared_rank(&count, next), t + round, told);
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &arrived[slot], round / 2 & 1)) {}
        value = inbox[slot][(t + 1) % 64] * 3 + rank;
        cluster.sync();
    }
    output[blockIdx.x * 64 + t] = value + count;
    cluster.sync();
}
#endif

int main(int argc, char** argv) {
    const test::Program program("ptx_barriers", argc, argv);
    const int tiles = program.argument(0, 50), rounds = program.argument(1, 12);
    test::Random random(19);
    std::vector<unsigned> data(96 * tiles);
    for (unsigned& value : data) value = random.below(1u << 16);
    const test::Buffer<unsigned> input(data), sums(96);
    LAUNCH(specialised, 1, 128, 0, input, sums, tiles);
    std::vector<unsigned> expected(96);
    for (unsigned t = 0; t < 96; ++t)
        for (int tile = 0; tile < tiles; ++tile) expected[t] = expected[t] * 3 + data[tile * 96 + (t + tile) % 96] + 1;
    bool ok = sums.download() == expected;

    constexpr unsigned blocks = 8;
    const test::Buffer<unsigned> told(blocks * 64);
    LAUNCH(tell_neighbour, blocks, 64, 0, told, rounds);
    std::vector<unsigned> values(blocks * 64), next(blocks * 64);
    unsigned count = 0;
    for (unsigned i = 0; i < values.size(); ++i) values[i] = i;
    for (int round = 0; round < rounds; ++round) {
        for (unsigned block = 0; block < blocks; ++block) {
            const unsigned rank = block % 4, from = block - rank + (rank + 3) % 4;
            for (unsigned t = 0; t < 64; ++t) next[block * 64 + t] = values[from * 64 + (t + 1) % 64] * 3 + rank;
        }
        values = next;
        for (unsigned t = 0; t < 64; ++t) count += t + static_cast<unsigned>(round);
    }
    for (unsigned& value : values) value += count;
    ok = ok && told.download() == values;
    return program.finish(ok, "tiles=%d rounds=%d first=%u", tiles, rounds, values[0]);
}
