// SPDX-License-Identifier: Apache-2.0
// Matrix products as Blackwell's libraries write them: tiles by tensor maps with a 64-byte swizzle, a ring of stages between a loading thread
// and one that issues tcgen05.mma, two accumulators in tensor memory so that four warps store one tile while the next is computed; and a pair
// of blocks that computes 256 rows together, each with half of A and of B. Asks for a device that has them. nvcc: -arch=compute_100a -code=compute_100a
#include "common/program.h"

#include <cstdlib>

/// CUtensorMap.
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define MAP const __grid_constant__ TensorMap
#else
#define MAP TensorMap
#endif

KERNEL void persistent_gemm(MAP a, MAP b, float* d, int n, int depth, int tiles);
KERNEL void paired_gemm(MAP a, MAP b, float* d, int n, int depth);

constexpr int tile_m = 128, tile_n = 64, tile_k = 32, stages = 3; // 64 bytes of k
constexpr int loader = 0, issuer = 1, first_storing = 2, threads = 32 * 6;

#ifdef __CUDACC__
#include <cuda.h>
#include <cuda_runtime.h>
using Object = std::uint64_t;

__device__ std::uint32_t address(const void* shared) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)); }
__device__ bool elected() {
    unsigned is_leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(is_leader)::"memory");
    return is_leader != 0;
}
__device__ void init(Object* object, unsigned count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(object)), "r"(count) : "memory"); }
__device__ void wait(Object* object, unsigned parity) {
    asm volatile("{ .reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra WAIT; }" ::"r"(address(object)), "r"(parity) : "memory");
}
__device__ void arrive(Object* object) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address(object)) : "memory"); }
__device__ void expect(Object* object, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(object)), "r"(bytes) : "memory");
}
__device__ void load(void* target, const TensorMap& map, int x, int y, Object* object) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address(target)), "l"(&map),
                 "r"(x), "r"(y), "r"(address(object))
                 : "memory");
}
/// The bytes count at the even block's object.
__device__ void load_for_pair(void* target, const TensorMap& map, int x, int y, Object* object) {
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address(target)),
                 "l"(&map), "r"(x), "r"(y), "r"(address(object) & 0xfeffffff)
                 : "memory");
}

/// Rows of 64 bytes, K-major, 64-byte swizzle; 8 rows are 512 bytes.
__device__ std::uint64_t descriptor(const void* shared) {
    return (address(shared) & 0x3ffff) >> 4 | std::uint64_t(1) << 16 | std::uint64_t(512 >> 4) << 32 | std::uint64_t(1) << 46 | std::uint64_t(4) << 61;
}
/// F32 += F16 * F16.
__host__ __device__ constexpr std::uint32_t instruction(int m, int n) { return 1u << 4 | std::uint32_t(n >> 3) << 17 | std::uint32_t(m >> 4) << 24; }

template <int group> __device__ void multiply(std::uint32_t d, std::uint64_t a, std::uint64_t b, std::uint32_t descriptor, bool accumulates) {
    if constexpr (group == 1)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(a), "l"(b), "r"(descriptor),
                     "r"(unsigned(accumulates)));
    else
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(a), "l"(b), "r"(descriptor),
                     "r"(unsigned(accumulates)));
}
__device__ void commit(Object* object) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address(object)) : "memory");
}
__device__ void commit_to_pair(Object* object) {
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(address(object)), "h"(std::uint16_t(3))
                 : "memory");
}

/// 32 columns of the warp's 32 lanes to a row of D each.
__device__ void store_columns(std::uint32_t from, float* to) {
    float v[32];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
                 "%25, %26, %27, %28, %29, %30, %31}, [%32];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]), "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]),
                   "=f"(v[12]), "=f"(v[13]), "=f"(v[14]), "=f"(v[15]), "=f"(v[16]), "=f"(v[17]), "=f"(v[18]), "=f"(v[19]), "=f"(v[20]), "=f"(v[21]), "=f"(v[22]),
                   "=f"(v[23]), "=f"(v[24]), "=f"(v[25]), "=f"(v[26]), "=f"(v[27]), "=f"(v[28]), "=f"(v[29]), "=f"(v[30]), "=f"(v[31])
                 : "r"(from));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 32; ++i) to[i] = v[i];
}

__global__ void persistent_gemm(MAP a, MAP b, float* d, int n, int depth, int tiles) {
    __shared__ alignas(1024) __half tiles_a[stages][tile_m * tile_k], tiles_b[stages][tile_n * tile_k];
    __shared__ Object full[stages], empty[stages], done[2], drained[2];
    __shared__ std::uint32_t tensor;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) init(&full[s], 1), init(&empty[s], 1);
        for (int i = 0; i < 2; ++i) init(&done[i], 1), init(&drained[i], 4);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == first_storing) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(address(&tensor)) : "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const int steps = depth / tile_k, wide = n / tile_n;
    if (warp == loader) {
        if (elected()) {
            int count = 0;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
                for (int k = 0; k < steps; ++k, ++count) {
                    const int s = count % stages;
                    wait(&empty[s], count / stages + 1 & 1);
                    expect(&full[s], sizeof tiles_a[s] + sizeof tiles_b[s]);
                    load(tiles_a[s], a, k * tile_k, tile / wide * tile_m, &full[s]);
                    load(tiles_b[s], b, k * tile_k, tile % wide * tile_n, &full[s]);
                }
        }
    } else if (warp == issuer) {
        if (elected()) {
            int count = 0, number = 0;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++number) {
                const int buffer = number % 2;
                wait(&drained[buffer], number / 2 + 1 & 1);
                asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
                for (int k = 0; k < steps; ++k, ++count) {
                    const int s = count % stages;
                    wait(&full[s], count / stages & 1);
                    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
                    for (int part = 0; part < tile_k / 16; ++part) // 32 bytes on
                        multiply<1>(tensor + buffer * tile_n, descriptor(tiles_a[s]) + 2 * part, descriptor(tiles_b[s]) + 2 * part, instruction(tile_m, tile_n),
                                    k + part > 0);
                    commit(&empty[s]);
                }
                commit(&done[buffer]);
            }
        }
    } else {
        const int lane = warp % 4 * 32, thread = threadIdx.x % 32;
        int number = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++number) {
            const int buffer = number % 2;
            wait(&done[buffer], number / 2 & 1);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
            float* row = d + std::size_t(tile / wide * tile_m + lane + thread) * n + tile % wide * tile_n;
            for (int column = 0; column < tile_n; column += 32) store_columns(tensor + (lane << 16) + buffer * tile_n + column, row + column);
            asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
            __syncwarp();
            if (thread == 0) arrive(&drained[buffer]);
        }
    }
    __syncthreads();
    if (warp == first_storing) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(tensor));
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
}

/// Block 0 of a pair has rows 0 to 127 of A and half of B's columns, block 1 the others; both get all columns of their rows of D.
__global__ void __cluster_dims__(2, 1, 1) paired_gemm(MAP a, MAP b, float* d, int n, int depth) {
    __shared__ alignas(1024) __half tiles_a[stages][tile_m * tile_k], tiles_b[stages][tile_n / 2 * tile_k];
    __shared__ Object full[stages], empty[stages], done;
    __shared__ std::uint32_t tensor;
    const int warp = threadIdx.x / 32;
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const auto cluster_sync = [] { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); };
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) init(&full[s], 1), init(&empty[s], 1);
        init(&done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == first_storing) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(address(&tensor)) : "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    cluster_sync();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const int steps = depth / tile_k, row = (blockIdx.x / 2 * 2 + rank) * tile_m, column = blockIdx.y * tile_n;
    if (warp == loader) {
        if (elected())
            for (int k = 0; k < steps; ++k) {
                const int s = k % stages;
                wait(&empty[s], k / stages + 1 & 1);
                if (rank == 0) expect(&full[s], 2 * (sizeof tiles_a[s] + sizeof tiles_b[s]));
                load_for_pair(tiles_a[s], a, k * tile_k, row, &full[s]);
                load_for_pair(tiles_b[s], b, k * tile_k, column + int(rank) * tile_n / 2, &full[s]);
            }
    } else if (warp == issuer && rank == 0) {
        if (elected()) {
            for (int k = 0; k < steps; ++k) {
                const int s = k % stages;
                wait(&full[s], k / stages & 1);
                asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
                for (int part = 0; part < tile_k / 16; ++part)
                    multiply<2>(tensor, descriptor(tiles_a[s]) + 2 * part, descriptor(tiles_b[s]) + 2 * part, instruction(2 * tile_m, tile_n), k + part > 0);
                commit_to_pair(&empty[s]);
            }
            commit_to_pair(&done);
        }
    } else if (warp >= first_storing) {
        const int lane = warp % 4 * 32, thread = threadIdx.x % 32;
        wait(&done, 0);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        float* to = d + std::size_t(row + lane + thread) * n + column;
        for (int i = 0; i < tile_n; i += 32) store_columns(tensor + (lane << 16) + i, to + i);
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    }
    cluster_sync();
    if (warp == first_storing) {
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 64;" ::"r"(tensor));
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }
}
#endif

#ifndef __CUDACC__
extern "C" int cuTensorMapEncodeTiled(TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, unsigned, unsigned,
                                      unsigned, unsigned);
#endif

/// A map of rows of `columns` halves, for boxes of 32 of them in `box_rows` rows with a 64-byte swizzle.
static TensorMap map_of(std::uint16_t* data, int rows, int columns, unsigned box_rows) {
    TensorMap map{};
    const std::uint64_t size[2] = {std::uint64_t(columns), std::uint64_t(rows)}, stride[1] = {std::uint64_t(columns) * 2};
    const std::uint32_t box[2] = {tile_k, box_rows}, step[2] = {1, 1};
    constexpr unsigned float16 = 6, swizzle_64 = 2;
#ifdef __CUDACC__
    using Encode = int (*)(TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, unsigned, unsigned, unsigned, unsigned);
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    test::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found), "cudaGetDriverEntryPointByVersion");
    const Encode encode = reinterpret_cast<Encode>(entry);
#else
    const auto encode = cuTensorMapEncodeTiled;
#endif
    if (encode(&map, float16, 2, data, size, stride, box, step, 0, swizzle_64, 0, 0) != 0) std::printf("FAIL cuTensorMapEncodeTiled\n"), std::exit(1);
    return map;
}

/// A small integer as a half.
static std::uint16_t half_of(int value) {
    if (value == 0) return 0;
    const int magnitude = value < 0 ? -value : value;
    int exponent = 0;
    while (magnitude >> (exponent + 1)) ++exponent;
    return std::uint16_t((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | (magnitude << (10 - exponent) & 0x3ff));
}

int main(int argc, char** argv) {
    setenv("PTARMIGAN_CC", "10.0", 0);
    const test::Program program("tensor_memory_gemm", argc, argv);
    const int m = 256, n = program.argument(0, 192), depth = program.argument(1, 256);
    test::Random random(31);
    std::vector<int> a(m * depth), b(n * depth);
    std::vector<std::uint16_t> halves_a(a.size()), halves_b(b.size());
    for (std::size_t i = 0; i < a.size(); ++i) halves_a[i] = half_of(a[i] = int(random.below(31)) - 15);
    for (std::size_t i = 0; i < b.size(); ++i) halves_b[i] = half_of(b[i] = int(random.below(31)) - 15);
    std::vector<float> expected(m * n);
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            int sum = 0;
            for (int k = 0; k < depth; ++k) sum += a[i * depth + k] * b[j * depth + k];
            expected[i * n + j] = float(sum);
        }
    const test::Buffer<std::uint16_t> left(halves_a), right(halves_b);
    const test::Buffer<float> persistent(m * n), paired(m * n);
    const int tiles = m / tile_m * (n / tile_n);
    LAUNCH(persistent_gemm, 2, threads, 0, map_of(left, m, depth, tile_m), map_of(right, n, depth, tile_n), persistent, n, depth, tiles);
    bool ok = persistent.download() == expected;
    LAUNCH(paired_gemm, dim3(m / tile_m, n / tile_n), threads, 0, map_of(left, m, depth, tile_m), map_of(right, n, depth, tile_n / 2), paired, n, depth);
    ok = paired.download() == expected && ok;
    return program.finish(ok, "m=%d n=%d k=%d first=%.0f", m, n, depth, expected[0]);
}
