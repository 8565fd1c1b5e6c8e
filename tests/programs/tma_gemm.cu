// SPDX-License-Identifier: Apache-2.0
// Matrix products as libraries write them: layouts as types, tiles through tensor maps with a 128-byte swizzle, a ring of stages between one
// loading warp and four computing ones, B's tiles multicast in a cluster of two, results stored through a map; the same product with double and
// triple buffering by cp.async; sums by bulk copies and bulk reductions. nvcc: -arch=sm_90a
#include "common/program.h"

/// CUtensorMap.
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

#ifdef __CUDACC__
#define MAP const __grid_constant__ TensorMap
#else
#define MAP TensorMap
#endif

KERNEL void tma_gemm(MAP a, MAP b, MAP c, int depth);
KERNEL void buffered_gemm_2(const int* a, const int* b, int* c, int n, int depth);
KERNEL void buffered_gemm_3(const int* a, const int* b, int* c, int n, int depth);
KERNEL void bulk_sums(const int* input, int* shifted, int* totals, int chunks);

constexpr int tile = 32, stages = 3, computing = 128, chunk = 256;

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cuda.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Object = std::uint64_t;

/// A shape of rows and columns and how far apart they are.
template <int Rows, int Columns, int RowStride, int ColumnStride>
struct Layout {
    __device__ static constexpr int at(int row, int column) { return row * RowStride + column * ColumnStride; }
    /// The part that `thread` of Threads has in a walk along rows: its i-th place.
    template <int Threads> __device__ static constexpr int part(int thread, int i) {
        const int number = thread + i * Threads;
        return at(number / Columns, number % Columns);
    }
    static constexpr int size = Rows * Columns;
};
/// Exchanges groups of 2^Base places by the 2^Bits groups that are 2^Shift groups further on.
template <int Bits, int Base, int Shift> struct Swizzle {
    __device__ static constexpr int apply(int place) { return place ^ (place >> Shift & ((1 << Bits) - 1) << Base); }
};
using TileLayout = Layout<tile, tile, tile, 1>;
using TileSwizzle = Swizzle<3, 2, 3>; // of words: 16-byte pieces in lines of 128 bytes

__device__ bool elected() {
    unsigned is_leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(is_leader)::"memory");
    return is_leader != 0;
}

struct Ring {
    alignas(1024) int a[stages][TileLayout::size];
    alignas(1024) int b[stages][TileLayout::size];
    alignas(1024) int c[TileLayout::size];
    Object full[stages], empty[stages];
};

/// Each block has its own rows; a cluster's two blocks have the same columns, and each loads half of their tile of B for both.
__global__ void __cluster_dims__(1, 2, 1) tma_gemm(MAP a, MAP b, MAP c, int depth) {
    __shared__ Ring ring;
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) {
            ptx::mbarrier_init(&ring.full[s], 1);
            ptx::mbarrier_init(&ring.empty[s], 2 * computing / 32); // both blocks read what this one sends
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    const int tiles = depth / tile, row = blockIdx.y * tile, column = blockIdx.x * tile;
    if (warp == computing / 32) {
        if (elected()) {
            for (int t = 0; t < tiles; ++t) {
                const int s = t % stages;
                while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &ring.empty[s], t / stages + 1 & 1)) {}
                ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &ring.full[s], 2 * sizeof ring.c);
                const int at_a[2] = {t * tile, row}, at_b[2] = {t * tile, column + int(rank) * tile / 2};
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, ring.a[s], &a, at_a, &ring.full[s]);
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &ring.b[s][TileLayout::at(rank * tile / 2, 0)], &b, at_b, &ring.full[s], std::uint16_t(3));
            }
        }
    } else {
        constexpr int own = TileLayout::size / computing;
        int sums[own] = {};
        for (int t = 0; t < tiles; ++t) {
            const int s = t % stages;
            while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &ring.full[s], t / stages & 1)) {}
#pragma unroll 1 // code that compiles fast
            for (int k = 0; k < tile; ++k)
                for (int i = 0; i < own; ++i) {
                    const int place = TileLayout::part<computing>(threadIdx.x, i);
                    sums[i] += ring.a[s][TileSwizzle::apply(TileLayout::at(place / tile, k))] * ring.b[s][TileSwizzle::apply(TileLayout::at(place % tile, k))];
            }
            __syncwarp();
            if (elected())
                for (unsigned block = 0; block < 2; ++block)
                    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, cluster.map_shared_rank(&ring.empty[s], block));
        }
        for (int i = 0; i < own; ++i) {
            const int place = TileLayout::part<computing>(threadIdx.x, i);
            ring.c[TileSwizzle::apply(place)] = sums[i];
        }
        ptx::fence_proxy_async(ptx::space_shared);
        asm volatile("barrier.sync 1, 128;" ::: "memory"); // the computing warps
        if (warp == 0 && elected()) {
            const int at_c[2] = {column, row};
            ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &c, at_c, ring.c);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
        }
    }
    cluster.sync(); // nobody leaves while the other one may still write here or arrive
}

/// A block of 32 x 8 threads makes a tile; `buffers` tiles of A and B are on their way or in use.
template <int buffers> __device__ void buffered(const int* a, const int* b, int* c, int n, int depth) {
    __shared__ alignas(16) int held[buffers][2][TileLayout::size];
    const int thread = threadIdx.y * 32 + threadIdx.x, tiles = depth / tile, row = blockIdx.y * tile, column = blockIdx.x * tile;
    const auto load = [&](int t) {
        if (t < tiles) {
            const int r = thread / 8, k = thread % 8 * 4; // 256 threads, 16 bytes each
            __pipeline_memcpy_async(&held[t % buffers][0][TileLayout::at(r, k)], &a[(row + r) * depth + t * tile + k], 16);
            __pipeline_memcpy_async(&held[t % buffers][1][TileLayout::at(r, k)], &b[(column + r) * depth + t * tile + k], 16);
        }
        __pipeline_commit();
    };
    for (int t = 0; t < buffers - 1; ++t) load(t);
    int sums[4] = {};
    for (int t = 0; t < tiles; ++t) {
        load(t + buffers - 1);
        __pipeline_wait_prior(buffers - 1);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < tile; ++k)
            for (int i = 0; i < 4; ++i)
                sums[i] += held[t % buffers][0][TileLayout::at(threadIdx.y + 8 * i, k)] * held[t % buffers][1][TileLayout::at(threadIdx.x, k)];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) c[(row + threadIdx.y + 8 * i) * n + column + threadIdx.x] = sums[i];
}

__global__ void buffered_gemm_2(const int* a, const int* b, int* c, int n, int depth) { buffered<2>(a, b, c, n, depth); }
__global__ void buffered_gemm_3(const int* a, const int* b, int* c, int n, int depth) { buffered<3>(a, b, c, n, depth); }

#pragma nv_diag_suppress static_var_with_dynamic_init // init() sets them up
/// Each chunk comes by a bulk copy that a cuda::barrier counts, goes on with 1 added to each word, and is added to the totals.
__global__ void bulk_sums(const int* input, int* shifted, int* totals, int chunks) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(128) int words[2][chunk];
    __shared__ Barrier loaded[2];
    if (threadIdx.x == 0)
        for (Barrier& barrier : loaded) init(&barrier, blockDim.x);
    __syncthreads();
    int slot = 0;
    for (int i = blockIdx.x; i < chunks; i += gridDim.x, slot ^= 1) {
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>{}); // the copies out of this slot
            cuda::device::memcpy_async_tx(words[slot], input + i * chunk, cuda::aligned_size_t<16>(sizeof words[slot]), loaded[slot]);
            loaded[slot].wait(cuda::device::barrier_arrive_tx(loaded[slot], 1, sizeof words[slot]));
        } else {
            loaded[slot].arrive_and_wait();
        }
        words[slot][threadIdx.x] += 1;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, shifted + i * chunk, words[slot], sizeof words[slot]);
            ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, totals, words[slot], sizeof words[slot]);
            ptx::cp_async_bulk_commit_group();
        }
    }
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
}
#endif

#ifndef __CUDACC__
extern "C" int cuTensorMapEncodeTiled(TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, unsigned, unsigned,
                                      unsigned, unsigned);
#endif

/// A map of rows of `columns` words, for boxes of 32 words in `box_rows` rows with a 128-byte swizzle.
static TensorMap map_of(int* data, int rows, int columns, unsigned box_rows) {
    TensorMap map{};
    const std::uint64_t size[2] = {std::uint64_t(columns), std::uint64_t(rows)}, stride[1] = {std::uint64_t(columns) * 4};
    const std::uint32_t box[2] = {tile, box_rows}, step[2] = {1, 1};
    constexpr unsigned int32 = 3, swizzle_128 = 3;
#ifdef __CUDACC__
    using Encode = int (*)(TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, unsigned, unsigned, unsigned, unsigned);
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    test::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found), "cudaGetDriverEntryPointByVersion");
    const Encode encode = reinterpret_cast<Encode>(entry);
#else
    const auto encode = cuTensorMapEncodeTiled;
#endif
    if (encode(&map, int32, 2, data, size, stride, box, step, 0, swizzle_128, 0, 0) != 0) std::printf("FAIL cuTensorMapEncodeTiled\n"), std::exit(1);
    return map;
}

int main(int argc, char** argv) {
    const test::Program program("tma_gemm", argc, argv);
    const int m = 128, n = program.argument(0, 96), depth = program.argument(1, 256);
    test::Random random(23);
    std::vector<int> a(m * depth), b(n * depth), expected(m * n);
    for (int& value : a) value = int(random.below(2001)) - 1000;
    for (int& value : b) value = int(random.below(2001)) - 1000;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int k = 0; k < depth; ++k) expected[i * n + j] += a[i * depth + k] * b[j * depth + k];
    const test::Buffer<int> left(a), right(b), by_tma(m * n), by_two(m * n), by_three(m * n);
    LAUNCH(tma_gemm, dim3(n / tile, m / tile), computing + 32, 0, map_of(left, m, depth, tile), map_of(right, n, depth, tile / 2), map_of(by_tma, m, n, tile), depth);
    bool ok = by_tma.download() == expected;
    LAUNCH(buffered_gemm_2, dim3(n / tile, m / tile), dim3(32, 8), 0, left, right, by_two, n, depth);
    ok = by_two.download() == expected && ok;
    LAUNCH(buffered_gemm_3, dim3(n / tile, m / tile), dim3(32, 8), 0, left, right, by_three, n, depth);
    ok = by_three.download() == expected && ok;

    const int chunks = m * depth / chunk;
    const test::Buffer<int> shifted(a.size()), totals(chunk);
    LAUNCH(bulk_sums, 4, chunk, 0, left, shifted, totals, chunks);
    std::vector<int> next(a), sums(chunk);
    for (std::size_t i = 0; i < a.size(); ++i) sums[i % chunk] += ++next[i];
    ok = shifted.download() == next && totals.download() == sums && ok;
    return program.finish(ok, "m=%d n=%d k=%d first=%d", m, n, depth, expected[0]);
}
