// SPDX-License-Identifier: Apache-2.0
// C = A * B through nvcuda::wmma: halves, bfloats, tf32, bytes, doubles, bits; fragments from global and shared memory, rows and columns,
// strides, three shapes; a product that begins with what is there. nvcc: -arch=sm_80
#include "common/program.h"
#include "common/small_floats.h"

KERNEL void gemm_half(const unsigned short* a, const unsigned short* b, float* c, int m, int n, int k);
KERNEL void gemm_half_sums(const unsigned short* a, const unsigned short* b, unsigned short* c, int m, int n, int k);
KERNEL void gemm_bfloat(const unsigned short* a, const unsigned short* b, float* c, int m, int n, int k);
KERNEL void gemm_tf32(const float* a, const float* b, float* c, int m, int n, int k);
KERNEL void gemm_bytes(const signed char* a, const signed char* b, int* c, int m, int n, int k);
KERNEL void gemm_double(const double* a, const double* b, double* c, int m, int n, int k);
KERNEL void gemm_bits(const unsigned* a, const unsigned* b, int* c, int m, int n, int k);

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

/// One warp's tile of C; A by rows, B by columns (k x n with stride k).
template <int M, int N, int K, class Type, class Stored, class Sum, class Result>
__device__ void multiply(const Stored* a, const Stored* b, Result* c, int m, int n, int k) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, across = n / N;
    if (warp >= m / M * across) return; // all lanes or none
    const int row = warp / across * M, column = warp % across * N;
    wmma::fragment<wmma::matrix_a, M, N, K, Type, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, M, N, K, Type, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    wmma::load_matrix_sync(sum, reinterpret_cast<const Sum*>(c) + row * n + column, n, wmma::mem_row_major);
    for (int i = 0; i < k; i += K) {
        wmma::load_matrix_sync(x, reinterpret_cast<const Stored*>(a) + row * k + i, k);
        wmma::load_matrix_sync(y, reinterpret_cast<const Stored*>(b) + column * k + i, k);
        wmma::mma_sync(sum, x, y, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] + sum.x[i];
    wmma::store_matrix_sync(reinterpret_cast<Sum*>(c) + row * n + column, sum, n, wmma::mem_row_major);
}

__global__ void gemm_half(const unsigned short* a, const unsigned short* b, float* c, int m, int n, int k) {
    multiply<16, 16, 16, half, half, float>(reinterpret_cast<const half*>(a), reinterpret_cast<const half*>(b), c, m, n, k);
}
__global__ void gemm_half_sums(const unsigned short* a, const unsigned short* b, unsigned short* c, int m, int n, int k) {
    multiply<32, 8, 16, half, half, half>(reinterpret_cast<const half*>(a), reinterpret_cast<const half*>(b), reinterpret_cast<half*>(c), m, n, k);
}
__global__ void gemm_bfloat(const unsigned short* a, const unsigned short* b, float* c, int m, int n, int k) {
    using Bfloat = __nv_bfloat16;
    multiply<8, 32, 16, Bfloat, Bfloat, float>(reinterpret_cast<const Bfloat*>(a), reinterpret_cast<const Bfloat*>(b), c, m, n, k);
}
__global__ void gemm_tf32(const float* a, const float* b, float* c, int m, int n, int k) {
    multiply<16, 16, 8, wmma::precision::tf32, float, float>(a, b, c, m, n, k);
}
__global__ void gemm_double(const double* a, const double* b, double* c, int m, int n, int k) {
    multiply<8, 8, 4, double, double, double>(a, b, c, m, n, k);
}
/// Tiles in shared memory: A by columns, B by rows, C by columns on its way out.
__global__ void gemm_bytes(const signed char* a, const signed char* b, int* c, int m, int n, int k) {
    __shared__ __align__(32) signed char tile_a[32][48], tile_b[16][48];
    __shared__ __align__(32) int tile_c[32][36];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x / (n / 32) * 32, column = blockIdx.x % (n / 32) * 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::col_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 0);
    for (int i = 0; i < k; i += 16) {
        __syncthreads();
        for (int j = threadIdx.x; j < 32 * 16; j += blockDim.x) {
            tile_a[j % 16][j / 16] = a[(row + j / 16) * k + i + j % 16];
            tile_b[j % 16][j / 16] = b[(column + j / 16) * k + i + j % 16];
        }
        __syncthreads();
        wmma::load_matrix_sync(x, &tile_a[0][warp / 2 * 16], 48);
        wmma::load_matrix_sync(y, &tile_b[0][warp % 2 * 16], 48);
        wmma::mma_sync(sum, x, y, sum, /*satf=*/true);
    }
    wmma::store_matrix_sync(&tile_c[warp % 2 * 16][warp / 2 * 16], sum, 36, wmma::mem_col_major);
    __syncwarp();
    for (int i = 0; i < 8; ++i) {
        const int r = warp / 2 * 16 + lane % 16, q = warp % 2 * 16 + lane / 16 * 8 + i;
        c[(row + r) * n + column + q] += tile_c[q][r];
    }
}
/// k counts bits.
__global__ void gemm_bits(const unsigned* a, const unsigned* b, int* c, int m, int n, int k) {
    using namespace wmma::experimental;
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, across = n / 8, row = warp / across * 8, column = warp % across * 8;
    if (row >= m) return;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum;
    wmma::fill_fragment(sum, 0);
    for (int i = 0; i < k; i += 128) {
        wmma::load_matrix_sync(x, a + (row * k + i) / 32, k);
        wmma::load_matrix_sync(y, b + (column * k + i) / 32, k);
        wmma::bmma_sync(sum, x, y, sum, bmmaBitOpXOR);
        wmma::bmma_sync(sum, x, y, sum, bmmaBitOpAND);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
#endif

namespace {

constexpr int m = 64, n = 96, k = 80;

/// Small integers and what their product is, to which `c` was added before all was doubled.
struct Problem {
    std::vector<int> a, b, c, expected;
    Problem(test::Random& random, int most) : a(m * k), b(n * k), c(m * n), expected(m * n) {
        for (auto* matrix : {&a, &b, &c})
            for (int& value : *matrix) value = static_cast<int>(random.below(2 * most + 1)) - most;
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
                int sum = c[i * n + j];
                for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[j * k + l];
                expected[i * n + j] = 2 * sum;
            }
    }
};

template <class To, class Convert> std::vector<To> converted(const std::vector<int>& values, Convert convert) {
    std::vector<To> result;
    for (int value : values) result.push_back(convert(value));
    return result;
}

template <class T> int count_wrong(const std::vector<T>& actual, const std::vector<int>& expected) {
    int wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += actual[i] != static_cast<T>(expected[i]);
    return wrong;
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("wmma_gemm", argc, argv);
    test::Random random(41);
    int wrong = 0;
    const auto threads = [](int tile_m, int tile_n) { return dim3(test::blocks_for(m / tile_m * (n / tile_n), 4)); };
    {
        const Problem problem(random, 9);
        const test::Buffer<unsigned short> a(converted<unsigned short>(problem.a, test::half_of)), b(converted<unsigned short>(problem.b, test::half_of));
        const test::Buffer<float> c(converted<float>(problem.c, [](int v) { return float(v); }));
        LAUNCH(gemm_half, threads(16, 16), dim3(128), 0, a, b, c, m, n, k);
        wrong += count_wrong(c.download(), problem.expected);
    }
    {
        const Problem problem(random, 2); // sums stay exact in halves
        const test::Buffer<unsigned short> a(converted<unsigned short>(problem.a, test::half_of)), b(converted<unsigned short>(problem.b, test::half_of)),
            c(converted<unsigned short>(problem.c, test::half_of));
        LAUNCH(gemm_half_sums, threads(32, 8), dim3(128), 0, a, b, c, m, n, k);
        std::vector<int> values;
        for (unsigned short half : c.download()) values.push_back(static_cast<int>(test::value_of_half(half)));
        wrong += count_wrong(values, problem.expected);
    }
    {
        const Problem problem(random, 100);
        const test::Buffer<unsigned short> a(converted<unsigned short>(problem.a, test::bfloat_of)), b(converted<unsigned short>(problem.b, test::bfloat_of));
        const test::Buffer<float> c(converted<float>(problem.c, [](int v) { return float(v); }));
        LAUNCH(gemm_bfloat, threads(8, 32), dim3(128), 0, a, b, c, m, n, k);
        wrong += count_wrong(c.download(), problem.expected);
    }
    {
        const Problem problem(random, 300);
        const auto number = [](int v) { return float(v); };
        const test::Buffer<float> a(converted<float>(problem.a, number)), b(converted<float>(problem.b, number)), c(converted<float>(problem.c, number));
        LAUNCH(gemm_tf32, threads(16, 16), dim3(128), 0, a, b, c, m, n, k);
        wrong += count_wrong(c.download(), problem.expected);
    }
    {
        const Problem problem(random, 1000);
        const auto number = [](int v) { return double(v); };
        const test::Buffer<double> a(converted<double>(problem.a, number)), b(converted<double>(problem.b, number)), c(converted<double>(problem.c, number));
        LAUNCH(gemm_double, threads(8, 8), dim3(128), 0, a, b, c, m, n, k);
        wrong += count_wrong(c.download(), problem.expected);
    }
    {
        Problem problem(random, 127);
        for (std::size_t i = 0; i < problem.expected.size(); ++i) problem.expected[i] /= 2;
        const auto byte = [](int v) { return static_cast<signed char>(v); };
        const test::Buffer<signed char> a(converted<signed char>(problem.a, byte)), b(converted<signed char>(problem.b, byte));
        const test::Buffer<int> c(problem.c);
        LAUNCH(gemm_bytes, dim3(m / 32 * (n / 32)), dim3(128), 0, a, b, c, m, n, k);
        wrong += count_wrong(c.download(), problem.expected);
    }
    {
        constexpr int bits = 384, words = bits / 32;
        std::vector<unsigned> a(m * words), b(n * words);
        for (auto* matrix : {&a, &b})
            for (unsigned& word : *matrix) word = random.bits();
        std::vector<int> expected(m * n);
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                for (int l = 0; l < words; ++l) {
                    const unsigned x = a[i * words + l], y = b[j * words + l];
                    expected[i * n + j] += __builtin_popcount(x ^ y) + __builtin_popcount(x & y);
                }
        const test::Buffer<unsigned> da(a), db(b);
        const test::Buffer<int> c(m * n);
        LAUNCH(gemm_bits, threads(8, 8), dim3(128), 0, da, db, c, m, n, bits);
        wrong += count_wrong(c.download(), expected);
    }
    return program.finish(wrong == 0, "%dx%dx%d wrong=%d", m, n, k, wrong);
}
