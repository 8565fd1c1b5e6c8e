// SPDX-License-Identifier: Apache-2.0
// Matrix products of warpgroups as libraries write them for Hopper: tiles through tensor maps into swizzled shared memory, a ring of
// stages between one loading warp and warpgroups that multiply (wgmma). One of a tile a block, and a persistent one: two multiplying
// warpgroups share B's tiles, registers move from the loading one to them, tiles are drawn in turn, and results leave through shared
// memory by bulk stores; A by registers (fp8), sums that go on over groups that are still on their way. 2:4 sparse A.
// nvcc: -gencode arch=compute_90a,code=compute_90a
#include "common/program.h"
#include "common/small_floats.h"

/// CUtensorMap.
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

#ifdef __CUDACC__
#define MAP const __grid_constant__ TensorMap
#else
#define MAP TensorMap
#endif

KERNEL void tile_gemm(MAP a, MAP b, float* c, int n, int depth);
KERNEL void persistent_gemm(MAP a, MAP b, unsigned short* c, int m, int n, int depth);
KERNEL void small_float_gemm(const unsigned char* a, const unsigned char* b, float* c, int n, int depth);
KERNEL void sparse_gemm(const unsigned short* a, const unsigned* metadata, const unsigned short* b, float* c, int n, int depth);

constexpr int tile_m = 64, tile_n = 64, tile_k = 64, short_k = 32, stages = 2, group = 128;

#ifdef __CUDACC__
__device__ unsigned shared_address(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

__device__ void init(unsigned barrier, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory"); }
__device__ void expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory"); }
__device__ void wait(unsigned barrier, int parity) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra WAIT; }" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ void load_tile(unsigned to, const TensorMap* map, int k, int line, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map),
                 "r"(k), "r"(line), "r"(barrier) : "memory");
}
__device__ void fence_registers() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left> __device__ void wait_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory"); }
__device__ void fence_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
template <int count> __device__ void keep(float (&d)[count]) { ///< registers stay where they are
#pragma unroll
    for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

constexpr unsigned long long swizzle_128 = 1ull << 62, swizzle_64 = 2ull << 62;
__device__ unsigned long long descriptor(unsigned address, int leading, int stride, unsigned long long swizzle) {
    return (address & 0x3ffff) >> 4 | static_cast<unsigned long long>(leading >> 4) << 16 | static_cast<unsigned long long>(stride >> 4) << 32 | swizzle;
}

#define R4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(d, i) R4(d, i), R4(d, i + 4), R4(d, i + 8), R4(d, i + 12)
#define D32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

__device__ void multiply_halves(float (&d)[32], unsigned long long a, unsigned long long b, bool adds) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " D32 ", %32, %33, p, 1, 1, 0, 0; }"
                 : R16(d, 0), R16(d, 16) : "l"(a), "l"(b), "r"(int(adds)) : "memory");
}
/// B by rows.
__device__ void multiply_rows(float (&d)[32], unsigned long long a, unsigned long long b, bool adds) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " D32 ", %32, %33, p, 1, 1, 0, 1; }"
                 : R16(d, 0), R16(d, 16) : "l"(a), "l"(b), "r"(int(adds)) : "memory");
}
__device__ void multiply_small(float (&d)[32], const unsigned (&a)[4], unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2 " D32 ", {%32, %33, %34, %35}, %36, 1, 1, -1;"
                 : R16(d, 0), R16(d, 16) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
}
__device__ void multiply_sparse(float (&d)[32], unsigned long long a, unsigned long long b, unsigned metadata) {
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 " D32 ", %32, %33, %34, 0, 1, 1, 1, 0, 0;"
                 : R16(d, 0), R16(d, 16) : "l"(a), "l"(b), "r"(metadata) : "memory");
}
/// Row and column of a warpgroup's tile that element i of a thread is.
__device__ int row_of(int i) { return threadIdx.x % group / 32 * 16 + threadIdx.x % 32 / 4 + (i >> 1 & 1) * 8; }
__device__ int column_of(int i) { return (i >> 2) * 8 + threadIdx.x % 4 * 2 + (i & 1); }

constexpr int tile_bytes = tile_m * tile_k * 2, short_bytes = tile_m * short_k * 2; ///< of A and of B

/// One tile of C a block: B's lines are columns, both with a 128-byte swizzle. The last warp loads.
__global__ void __launch_bounds__(group + 32) tile_gemm(MAP a, MAP b, float* c, int n, int depth) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) unsigned long long barriers[2 * stages];
    const unsigned tiles = shared_address(memory), full = shared_address(barriers), empty = full + 8 * stages;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) init(full + 8 * s, 1), init(empty + 8 * s, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int steps = depth / tile_k, row = blockIdx.y * tile_m, column = blockIdx.x * tile_n;
    if (threadIdx.x >= group) {
        if (threadIdx.x == group)
            for (int t = 0; t < steps; ++t) {
                const int s = t % stages;
                wait(empty + 8 * s, t / stages + 1 & 1);
                expect(full + 8 * s, 2 * tile_bytes);
                load_tile(tiles + 2 * s * tile_bytes, &a, t * tile_k, row, full + 8 * s);
                load_tile(tiles + (2 * s + 1) * tile_bytes, &b, t * tile_k, column, full + 8 * s);
            }
        return;
    }
    float d[32];
#pragma unroll 1
    for (int t = 0; t < steps; ++t) {
        const int s = t % stages;
        wait(full + 8 * s, t / stages & 1);
        keep(d);
        fence_registers();
        const unsigned at = tiles + 2 * s * tile_bytes;
#pragma unroll
        for (int k = 0; k < tile_k * 2; k += 32)
            multiply_halves(d, descriptor(at + k, 16, 1024, swizzle_128), descriptor(at + tile_bytes + k, 16, 1024, swizzle_128), t + k > 0);
        commit_group();
        keep(d);
        wait_group<1>(); // the group before this one
        if (t > 0 && threadIdx.x == 0) arrive(empty + 8 * ((t - 1) % stages)); // one thread for the warpgroup
    }
    wait_group<0>();
    keep(d);
#pragma unroll
    for (int i = 0; i < 32; ++i) c[(row + row_of(i)) * n + column + column_of(i)] = d[i];
}

/// Two warpgroups multiply 64 rows each of a tile of 128 x 64; a third one loads. B lies by rows (its lines are k).
/// A has 64 bytes of k and is swizzled so.
__global__ void __launch_bounds__(3 * group, 1) persistent_gemm(MAP a, MAP b, unsigned short* c, int m, int n, int depth) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) unsigned long long barriers[2 * stages];
    const unsigned tiles = shared_address(memory), full = shared_address(barriers), empty = full + 8 * stages;
    unsigned char* const results = memory + 3 * stages * short_bytes; // 64 x 64 halves for each warpgroup
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) init(full + 8 * s, 1), init(empty + 8 * s, 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int steps = depth / short_k, columns = n / tile_n, all = m / (2 * tile_m) * columns;
    int slot = 0, phase = 0;
    const auto advance = [&] { slot = slot + 1 == stages ? phase ^= 1, 0 : slot + 1; };
    const int number = __shfl_sync(0xffffffff, threadIdx.x / group, 0);
    if (number == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 2 * group)
            for (int tile = blockIdx.x; tile < all; tile += gridDim.x)
                for (int t = 0; t < steps; ++t, advance()) {
                    const unsigned at = tiles + 3 * slot * short_bytes, barrier = full + 8 * slot;
                    wait(empty + 8 * slot, phase ^ 1);
                    expect(barrier, 3 * short_bytes);
                    load_tile(at, &a, t * short_k, tile / columns * 2 * tile_m, barrier);
                    load_tile(at + short_bytes, &a, t * short_k, tile / columns * 2 * tile_m + tile_m, barrier);
                    load_tile(at + 2 * short_bytes, &b, tile % columns * tile_n, t * short_k, barrier);
                }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int thread = threadIdx.x % group;
    float d[32];
    for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
#pragma unroll 1
        for (int t = 0; t < steps; ++t, advance()) {
            wait(full + 8 * slot, phase);
            keep(d);
            fence_registers();
            const unsigned at = tiles + 3 * slot * short_bytes;
#pragma unroll
            for (int k = 0; k < short_k; k += 16)
                multiply_rows(d, descriptor(at + number * short_bytes + 2 * k, 16, 512, swizzle_64),
                              descriptor(at + 2 * short_bytes + k * 128, 4096, 1024, swizzle_128), t + k > 0);
            commit_group();
            wait_group<0>();
            keep(d);
            if (thread == 0) arrive(empty + 8 * slot);
        }
        // The warpgroup's rows, of which the copy before has been read.
        unsigned short* const rows = reinterpret_cast<unsigned short*>(results + number * tile_m * tile_n * 2);
        if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("bar.sync %0, 128;" ::"r"(number + 1) : "memory");
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            unsigned short half;
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(d[i]));
            rows[row_of(i) * tile_n + column_of(i)] = half;
        }
        fence_copies();
        asm volatile("bar.sync %0, 128;" ::"r"(number + 1) : "memory");
        if (thread == 0) {
            for (int r = 0; r < tile_m; ++r)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                                 c + ((tile / columns * 2 + number) * tile_m + r) * n + tile % columns * tile_n),
                             "r"(shared_address(rows + r * tile_n)), "n"(tile_n * 2) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// fp8: A comes straight into registers, B's columns by ordinary copies into rows of 64 bytes that are swizzled so.
__global__ void __launch_bounds__(group) small_float_gemm(const unsigned char* a, const unsigned char* b, float* c, int n, int depth) {
    __shared__ __align__(1024) unsigned char columns[2][tile_n * 64];
    const int row = blockIdx.y * tile_m + row_of(0), column = blockIdx.x * tile_n, k0 = threadIdx.x % 4 * 4;
    float d[32] = {};
    for (int k = 0, s = 0; k < depth; k += 64, s ^= 1) {
        for (int i = threadIdx.x; i < tile_n * 4; i += group) { // pieces of 16 bytes
            const int line = i / 4, place = line * 64 + i % 4 * 16;
            *reinterpret_cast<uint4*>(columns[s] + (place ^ (place >> 7 & 3) << 4)) = *reinterpret_cast<const uint4*>(b + (column + line) * depth + k + i % 4 * 16);
        }
        unsigned own[2][4];
        for (int half = 0; half < 2; ++half)
            for (int r = 0; r < 4; ++r)
                own[half][r] = *reinterpret_cast<const unsigned*>(a + (row + (r & 1) * 8) * depth + k + half * 32 + (r >> 1) * 16 + k0);
        fence_copies();
        __syncthreads();
        keep(d);
        fence_registers();
#pragma unroll
        for (int half = 0; half < 2; ++half) multiply_small(d, own[half], descriptor(shared_address(columns[s]) + half * 32, 16, 512, swizzle_64));
        commit_group();
        wait_group<0>();
        keep(d);
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) c[(blockIdx.y * tile_m + row_of(i)) * n + column + column_of(i)] = d[i];
}

/// A has two of every four halves of a row; 32 k a step. Pieces of 8 lines and 16 bytes, not swizzled.
__global__ void __launch_bounds__(group) sparse_gemm(const unsigned short* a, const unsigned* metadata, const unsigned short* b, float* c, int n, int depth) {
    __shared__ __align__(128) unsigned short rows[tile_m * 16], columns[tile_n * 32];
    const int row = blockIdx.y * tile_m, column = blockIdx.x * tile_n;
    float d[32] = {};
    for (int k = 0; k < depth; k += 32) {
        for (int i = threadIdx.x; i < tile_m * 2; i += group) // 8 halves each
            *reinterpret_cast<uint4*>(rows + (i / 16 * 2 + i % 2) * 64 + i / 2 % 8 * 8) = *reinterpret_cast<const uint4*>(a + (row + i / 2) * (depth / 2) + k / 2 + i % 2 * 8);
        for (int i = threadIdx.x; i < tile_n * 4; i += group)
            *reinterpret_cast<uint4*>(columns + (i / 32 * 4 + i % 4) * 64 + i / 4 % 8 * 8) = *reinterpret_cast<const uint4*>(b + (column + i / 4) * depth + k + i % 4 * 8);
        // Chunks 4 (lane % 2) and up of row lane / 4, and of the row 8 further on, by lanes whose lane % 4 is below 2.
        const int first = row_of(0) + row, words = depth / 32;
        const unsigned low = metadata[first * words + k / 32], high = metadata[(first + 8) * words + k / 32], shift = threadIdx.x % 2 * 16;
        const unsigned own = (low >> shift & 0xffff) | (high >> shift) << 16;
        fence_copies();
        __syncthreads();
        keep(d);
        fence_registers();
        multiply_sparse(d, descriptor(shared_address(rows), 128, 256, 0), descriptor(shared_address(columns), 128, 512, 0), own);
        commit_group();
        wait_group<0>();
        keep(d);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) c[(row + row_of(i)) * n + column + column_of(i)] = d[i];
}
#endif

#ifndef __CUDACC__
extern "C" int cuTensorMapEncodeTiled(TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, unsigned, unsigned,
                                      unsigned, unsigned);
#endif

/// A map of rows of `columns` halves, for boxes of `width` halves, which are swizzled by lines, in `height` rows.
static TensorMap map_of(unsigned short* data, int rows, int columns, unsigned width, unsigned height) {
    TensorMap map{};
    const std::uint64_t size[2] = {std::uint64_t(columns), std::uint64_t(rows)}, stride[1] = {std::uint64_t(columns) * 2};
    const std::uint32_t box[2] = {width, height}, step[2] = {1, 1};
    constexpr unsigned float16 = 6;
    const unsigned swizzle = width == 64 ? 3 : 2; // 128 bytes, 64 bytes
#ifdef __CUDACC__
    using Encode = int (*)(TensorMap*, unsigned, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, unsigned, unsigned, unsigned, unsigned);
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    test::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found), "cudaGetDriverEntryPointByVersion");
    const Encode encode = reinterpret_cast<Encode>(entry);
#else
    const auto encode = cuTensorMapEncodeTiled;
#endif
    if (encode(&map, float16, 2, data, size, stride, box, step, 0, swizzle, 0, 0) != 0) std::printf("FAIL cuTensorMapEncodeTiled\n"), std::exit(1);
    return map;
}

/// Small integers as e4m3 and e5m2.
static unsigned char e4m3_of(int value) {
    static const unsigned char codes[] = {0x00, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e, 0x50};
    return static_cast<unsigned char>(codes[std::abs(value)] | (value < 0 ? 0x80 : 0));
}
static unsigned char e5m2_of(int value) { // 0 to 4
    static const unsigned char codes[] = {0x00, 0x3c, 0x40, 0x42, 0x44};
    return static_cast<unsigned char>(codes[std::abs(value)] | (value < 0 ? 0x80 : 0));
}

int main(int argc, char** argv) {
    const test::Program program("wgmma_gemm", argc, argv);
    const int m = 256, n = program.argument(0, 192), depth = program.argument(1, 256);
    test::Random random(64);
    std::vector<int> a(m * depth), b(n * depth);
    for (int& value : a) value = int(random.below(9)) - 4;
    for (int& value : b) value = int(random.below(9)) - 4;
    const auto product = [&] {
        std::vector<float> c(m * n);
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
                int sum = 0;
                for (int k = 0; k < depth; ++k) sum += a[i * depth + k] * b[j * depth + k];
                c[i * n + j] = float(sum);
            }
        return c;
    };
    std::vector<unsigned short> half_a(a.size()), half_b(b.size()), b_by_rows(b.size());
    std::vector<unsigned char> small_a(a.size()), small_b(b.size());
    for (std::size_t i = 0; i < a.size(); ++i) half_a[i] = test::half_of(a[i]), small_a[i] = e4m3_of(a[i]);
    for (std::size_t i = 0; i < b.size(); ++i) half_b[i] = test::half_of(b[i]), small_b[i] = e5m2_of(b[i]);
    for (int j = 0; j < n; ++j)
        for (int k = 0; k < depth; ++k) b_by_rows[k * n + j] = half_b[j * depth + k];
    const std::vector<float> expected = product();

    const test::Buffer<unsigned short> left(half_a), right(half_b), right_rows(b_by_rows);
    const test::Buffer<float> c(m * n);
    LAUNCH(tile_gemm, dim3(n / tile_n, m / tile_m), group + 32, stages * 2 * tile_m * tile_k * 2, map_of(left, m, depth, tile_k, tile_m),
           map_of(right, n, depth, tile_k, tile_n), c, n, depth);
    bool ok = c.download() == expected;

    const test::Buffer<unsigned short> halves(m * n);
    LAUNCH(persistent_gemm, 4, 3 * group, stages * 3 * tile_m * short_k * 2 + 2 * tile_m * tile_n * 2, map_of(left, m, depth, short_k, tile_m),
           map_of(right_rows, depth, n, tile_n, short_k), halves, m, n, depth);
    const std::vector<unsigned short> rounded = halves.download();
    for (int i = 0; i < m * n; ++i) ok = test::value_of_half(rounded[i]) == expected[i] && ok; // below 2048: exact

    const test::Buffer<unsigned char> small_left(small_a), small_right(small_b);
    LAUNCH(small_float_gemm, dim3(n / tile_n, m / tile_m), group, 0, small_left, small_right, c, n, depth);
    const std::vector<float> negated = c.download();
    for (int i = 0; i < m * n; ++i) ok = negated[i] == -expected[i] && ok; // within 13 bits: exact

    // Of each four of a row the two that `kept` says, the lower one first.
    std::vector<unsigned short> stored(m * depth / 2);
    std::vector<unsigned> metadata(m * depth / 32);
    for (int i = 0; i < m; ++i)
        for (int chunk = 0; chunk < depth / 4; ++chunk) {
            static const unsigned char pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
            const unsigned char* kept = pairs[random.below(6)];
            for (int k = 0; k < 4; ++k)
                if (k != kept[0] && k != kept[1]) a[i * depth + chunk * 4 + k] = 0;
            for (int p = 0; p < 2; ++p) stored[i * depth / 2 + chunk * 2 + p] = test::half_of(a[i * depth + chunk * 4 + kept[p]]);
            metadata[i * depth / 32 + chunk / 8] |= unsigned(kept[0] | kept[1] << 2) << chunk % 8 * 4;
        }
    const test::Buffer<unsigned short> sparse(stored);
    const test::Buffer<unsigned> indices(metadata);
    LAUNCH(sparse_gemm, dim3(n / tile_n, m / tile_m), group, 0, sparse, indices, right, c, n, depth);
    ok = c.download() == product() && ok;
    return program.finish(ok, "m=%d n=%d k=%d first=%g", m, n, depth, expected[0]);
}
