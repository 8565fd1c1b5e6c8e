// SPDX-License-Identifier: Apache-2.0
// C = A * B as libraries write it with mma.sync: tiles of 64 x 64 x 32 in two stages filled by cp.async, rows in swizzled places, fragments by
// ldmatrix (B transposed), four warps of 32 x 32, a corner of the result turned by movmatrix; K split over blocks
// that add with atomics. The same with 2:4 sparse A (mma.sp). nvcc: -arch=sm_80
#include "common/program.h"
#include "common/small_floats.h"

KERNEL void mma_gemm(const unsigned short* a, const unsigned short* b, float* c, unsigned short* transposed, int m, int n, int k, int parts);
KERNEL void sparse_gemm(const unsigned short* a, const unsigned* metadata, const unsigned short* b, float* c, int m, int n, int k);

#ifdef __CUDACC__
constexpr int tile = 64, depth = 32;

__device__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ void copy_async(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ void load_matrices(unsigned (&d)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(row)) : "memory");
}
__device__ void load_transposed(unsigned (&d)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(row)) : "memory");
}
__device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A stage: rows of A (64 of 32 halves) and of B (32 of 64), pieces of 16 bytes exchanged by their row.
struct Stage {
    __align__(128) unsigned short a[tile * depth], b[depth * tile];
    __device__ unsigned short* a_piece(int row, int piece) { return a + row * depth + (piece ^ (row >> 1 & 3)) * 8; }
    __device__ unsigned short* b_piece(int row, int piece) { return b + row * tile + (piece ^ (row & 7)) * 8; }
};

__global__ void __launch_bounds__(128) mma_gemm(const unsigned short* a, const unsigned short* b, float* c, unsigned short* transposed, int m, int n,
                                                int k, int parts) {
    __shared__ Stage stages[2];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, row0 = blockIdx.y * tile, column0 = blockIdx.x * tile;
    const int first = k / parts * blockIdx.z, steps = k / parts / depth, warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const auto fetch = [&](int step) {
        Stage& stage = stages[step % 2];
        for (int i = thread; i < 256; i += 128) {
            copy_async(stage.a_piece(i / 4, i % 4), a + (row0 + i / 4) * k + first + step * depth + i % 4 * 8);
            copy_async(stage.b_piece(i / 8, i % 8), b + (first + step * depth + i / 8) * n + column0 + i % 8 * 8);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[2][4][4] = {};
    fetch(0);
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            fetch(step + 1);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        Stage& stage = stages[step % 2];
        for (int part = 0; part < depth / 16; ++part) {
            unsigned x[2][4], y[2][4];
            for (int i = 0; i < 2; ++i) load_matrices(x[i], stage.a_piece(warp_row + 16 * i + lane % 16, 2 * part + lane / 16));
            for (int j = 0; j < 2; ++j) load_transposed(y[j], stage.b_piece(16 * part + lane % 16, warp_column / 8 + 2 * j + lane / 16));
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) multiply(sum[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int l = 0; l < 4; ++l) {
                const int row = row0 + warp_row + 16 * i + lane / 4 + l / 2 * 8, column = column0 + warp_column + 8 * j + lane % 4 * 2 + l % 2;
                atomicAdd(&c[row * n + column], sum[i][j][l]);
            }
    // The first 8 columns of each warp's tile, each element's low half, as a transposed matrix.
    if (blockIdx.z == 0) {
        unsigned packed = __float2uint_rn(fabsf(sum[0][0][0])) & 0xffff, turned;
        packed |= __float2uint_rn(fabsf(sum[0][0][1])) << 16;
        asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(packed));
        unsigned short* to = transposed + ((blockIdx.y * gridDim.x + blockIdx.x) * 4 + warp) * 64 + lane / 4 * 8 + lane % 4 * 2;
        to[0] = static_cast<unsigned short>(turned);
        to[1] = static_cast<unsigned short>(turned >> 16);
    }
}

/// One warp for each 16 x 8 tile of C; a: k / 2 stored halves a row; metadata: a word for each 16 of k and 16 rows and thread of a pair.
__global__ void sparse_gemm(const unsigned short* a, const unsigned* metadata, const unsigned short* b, float* c, int m, int n, int k) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row = warp / (n / 8) * 16, column = warp % (n / 8) * 8;
    float sum[4] = {};
    for (int i = 0; i < k; i += 32) {
        unsigned x[4], y[4];
        for (int r = 0; r < 4; ++r) x[r] = *reinterpret_cast<const unsigned*>(a + (row + g + 8 * (r % 2)) * (k / 2) + i / 2 + r / 2 * 8 + 2 * t);
        for (int r = 0; r < 4; ++r) y[r] = *reinterpret_cast<const unsigned*>(b + (column + g) * k + i + 8 * r + 2 * t);
        // Selector 1: threads 2 and 3 of each four have the metadata; what the others bring is not looked at.
        const unsigned e = t < 2 ? 0xdeadbeef : metadata[((row / 16 * (k / 32) + i / 32) * 8 + g) * 2 + t - 2];
        asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, "
                     "{%0, %1, %2, %3}, %12, 0x1;"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(e));
    }
    for (int l = 0; l < 4; ++l) c[(row + g + l / 2 * 8) * n + column + 2 * t + l % 2] = sum[l];
}
#endif

int main(int argc, char** argv) {
    const test::Program program("mma_gemm", argc, argv);
    const int m = program.argument(0, 128), n = program.argument(1, 192), k = program.argument(2, 256), parts = 4;
    test::Random random(42);
    const auto numbers = [&](int count) {
        std::vector<int> values(count);
        for (int& value : values) value = static_cast<int>(random.below(31)) - 15;
        return values;
    };
    const auto halves = [](const std::vector<int>& values) {
        std::vector<unsigned short> result;
        for (int value : values) result.push_back(test::half_of(value));
        return result;
    };
    int wrong = 0;
    const std::vector<int> a = numbers(m * k), b = numbers(k * n);
    {
        const test::Buffer<unsigned short> da(halves(a)), db(halves(b)), turned(m * n / 16);
        const test::Buffer<float> c(m * n);
        LAUNCH(mma_gemm, dim3(n / 64, m / 64, parts), dim3(128), 0, da, db, c, turned, m, n, k, parts);
        const std::vector<float> sums = c.download();
        const std::vector<unsigned short> actual = turned.download();
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
                int expected = 0, first_part = 0;
                for (int l = 0; l < k; ++l) {
                    expected += a[i * k + l] * b[l * n + j];
                    if (l + 1 == k / parts) first_part = expected;
                }
                wrong += sums[i * n + j] != static_cast<float>(expected);
                const int row = i % 32, column = j % 32, warp = (i / 64 * (n / 64) + j / 64) * 4 + i / 32 % 2 * 2 + j / 32 % 2;
                if (row < 8 && column < 8) wrong += actual[warp * 64 + column * 8 + row] != static_cast<unsigned short>(std::abs(first_part));
            }
    }
    {
        // Two of four stay: at any two places, in order.
        std::vector<int> stored, dense(m * k);
        std::vector<unsigned> metadata(m / 16 * (k / 32) * 16);
        static constexpr int pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
        for (int i = 0; i < m; ++i)
            for (int chunk = 0; chunk < k / 4; ++chunk) {
                const auto& pair = pairs[random.below(6)];
                for (int place : pair) {
                    stored.push_back(a[i * k + 4 * chunk + place]);
                    dense[i * k + 4 * chunk + place] = stored.back();
                }
                const int q = i % 16 / 8 * 4 + chunk % 4, thread = chunk % 8 / 4;
                metadata[((i / 16 * (k / 32) + chunk / 8) * 8 + i % 8) * 2 + thread] |= static_cast<unsigned>(pair[0] | pair[1] << 2) << 4 * q;
            }
        const test::Buffer<unsigned short> da(halves(stored)), db(halves(b)); // B by columns now
        const test::Buffer<unsigned> e(metadata);
        const test::Buffer<float> c(m * n);
        LAUNCH(sparse_gemm, dim3(m / 16 * (n / 8) / 4), dim3(128), 0, da, e, db, c, m, n, k);
        const std::vector<float> sums = c.download();
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
                int expected = 0;
                for (int l = 0; l < k; ++l) expected += dense[i * k + l] * b[j * k + l];
                wrong += sums[i * n + j] != static_cast<float>(expected);
            }
    }
    return program.finish(wrong == 0, "%dx%dx%d wrong=%d", m, n, k, wrong);
}
