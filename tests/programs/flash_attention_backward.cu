// SPDX-License-Identifier: Apache-2.0
// Gradients of attention without its matrices in memory: probabilities are made again from the sums that the forward pass leaves. One kernel for
// keys and values, a warp for 16 keys, and one for queries, a warp for 16 queries; causal or not. nvcc: -arch=sm_80
#include "common/program.h"
#include "common/small_floats.h"

struct Attention {
    const unsigned short *q, *k, *v, *gradient; ///< of the output
    const float *logarithm, *product;           ///< of a query: log2 of the sum of its exponentials; its output times its gradient
    int length, causal;
};

KERNEL void gradients_of_keys(Attention given, float* of_k, float* of_v);
KERNEL void gradients_of_queries(Attention given, float* of_q);

constexpr int width = 64, rows = 64, columns = 32; // of a head, of a block, of a round
constexpr float scale = 0.125f, to_log2 = 1.44269504f;

#ifdef __CUDACC__
#include <cuda_fp16.h>

__device__ void load_matrices(unsigned (&d)[4], const void* row) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(address) : "memory");
}
__device__ void load_transposed(unsigned (&d)[4], const void* row) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(address) : "memory");
}
__device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ unsigned pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
}

using Tile = unsigned short[columns][width + 8];

/// A block's rows are keys (their values beside them) and its rounds' columns queries (and gradients), or the other way round.
template <bool keys_are_rows> __device__ void accumulate(const Attention& given, float* first_sum, float* second_sum) {
    __shared__ __align__(16) unsigned short of_rows[rows][width + 8];
    __shared__ __align__(16) Tile scored, weighted;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * rows, own_row = warp * 16 + lane / 4;
    const std::size_t head = std::size_t(blockIdx.y) * given.length;
    const unsigned short *row_scores = keys_are_rows ? given.k : given.q, *row_weights = keys_are_rows ? given.v : given.gradient,
                         *column_scores = keys_are_rows ? given.q : given.k, *column_weights = keys_are_rows ? given.gradient : given.v;
    const auto fill = [&](unsigned short (*to)[width + 8], const unsigned short* from, int begin, int count) {
        for (int i = threadIdx.x; i < count * width / 8; i += 128)
            *reinterpret_cast<uint4*>(&to[i / 8][i % 8 * 8]) = *reinterpret_cast<const uint4*>(from + (head + begin) * width + i * 8);
    };
    unsigned scores[width / 16][4], weights[width / 16][4];
    fill(of_rows, row_scores, first, rows);
    __syncthreads();
    for (int i = 0; i < width / 16; ++i) load_matrices(scores[i], &of_rows[warp * 16 + lane % 16][16 * i + lane / 16 * 8]);
    __syncthreads();
    fill(of_rows, row_weights, first, rows);
    __syncthreads();
    for (int i = 0; i < width / 16; ++i) load_matrices(weights[i], &of_rows[warp * 16 + lane % 16][16 * i + lane / 16 * 8]);
    float sum1[width / 8][4] = {}, sum2[width / 8][4] = {};
    for (int begin = 0; begin < given.length; begin += columns) {
        __syncthreads();
        fill(scored, column_scores, begin, columns);
        fill(weighted, column_weights, begin, columns);
        __syncthreads();
        float score[columns / 8][4] = {}, change[columns / 8][4] = {};
        for (int i = 0; i < width / 16; ++i)
            for (int j = 0; j < columns / 16; ++j) {
                unsigned b[4];
                load_matrices(b, &scored[16 * j + lane % 16][16 * i + lane / 16 * 8]);
                multiply(score[2 * j], scores[i], b[0], b[2]);
                multiply(score[2 * j + 1], scores[i], b[1], b[3]);
                load_matrices(b, &weighted[16 * j + lane % 16][16 * i + lane / 16 * 8]);
                multiply(change[2 * j], weights[i], b[0], b[2]);
                multiply(change[2 * j + 1], weights[i], b[1], b[3]);
            }
        for (int j = 0; j < columns / 8; ++j)
            for (int l = 0; l < 4; ++l) {
                const int row = first + own_row + l / 2 * 8, column = begin + 8 * j + lane % 4 * 2 + l % 2;
                const int query = keys_are_rows ? column : row, key = keys_are_rows ? row : column;
                const float p = given.causal && key > query ? 0 : exp2f(score[j][l] * (scale * to_log2) - given.logarithm[head + query]);
                score[j][l] = p;
                change[j][l] = p * (change[j][l] - given.product[head + query]) * scale;
            }
        for (int i = 0; i < columns / 16; ++i) {
            const unsigned p[4] = {pack(score[2 * i][0], score[2 * i][1]), pack(score[2 * i][2], score[2 * i][3]),
                                   pack(score[2 * i + 1][0], score[2 * i + 1][1]), pack(score[2 * i + 1][2], score[2 * i + 1][3])};
            const unsigned d[4] = {pack(change[2 * i][0], change[2 * i][1]), pack(change[2 * i][2], change[2 * i][3]),
                                   pack(change[2 * i + 1][0], change[2 * i + 1][1]), pack(change[2 * i + 1][2], change[2 * i + 1][3])};
            for (int j = 0; j < width / 16; ++j) {
                unsigned b[4];
                load_transposed(b, &scored[16 * i + lane % 16][16 * j + lane / 16 * 8]);
                multiply(sum1[2 * j], d, b[0], b[1]);
                multiply(sum1[2 * j + 1], d, b[2], b[3]);
                if (!keys_are_rows) continue;
                load_transposed(b, &weighted[16 * i + lane % 16][16 * j + lane / 16 * 8]);
                multiply(sum2[2 * j], p, b[0], b[1]);
                multiply(sum2[2 * j + 1], p, b[2], b[3]);
            }
        }
    }
    for (int j = 0; j < width / 8; ++j)
        for (int l = 0; l < 4; ++l) {
            const std::size_t at = (head + first + own_row + l / 2 * 8) * width + 8 * j + lane % 4 * 2 + l % 2;
            first_sum[at] = sum1[j][l];
            if (keys_are_rows) second_sum[at] = sum2[j][l];
        }
}

__global__ void __launch_bounds__(128) gradients_of_keys(Attention given, float* of_k, float* of_v) {
    accumulate<true>(given, of_k, of_v);
}
__global__ void __launch_bounds__(128) gradients_of_queries(Attention given, float* of_q) {
    accumulate<false>(given, of_q, nullptr);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("flash_attention_backward", argc, argv);
    const int length = program.argument(0, 128), heads = program.argument(1, 2), count = heads * length * width;
    test::Random random(47);
    std::vector<unsigned short> inputs[4];
    std::vector<double> exact[4];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < count; ++j) {
            const int eighths = static_cast<int>(random.below(33)) - 16;
            inputs[i].push_back(eighths == 0 ? 0 : static_cast<unsigned short>(test::half_of(eighths) - (3 << 10)));
            exact[i].push_back(eighths / 8.0);
        }
    const test::Buffer<unsigned short> q(inputs[0]), k(inputs[1]), v(inputs[2]), gradient(inputs[3]);
    const test::Buffer<float> of_q(count), of_k(count), of_v(count);
    double worst = 0;
    for (int causal = 0; causal < 2; ++causal) {
        std::vector<double> expected[3];
        for (auto& matrix : expected) matrix.resize(count);
        std::vector<float> logarithms(heads * length), products(heads * length);
        const auto dot = [&](int one, std::size_t i, int other, std::size_t j) {
            double sum = 0;
            for (int l = 0; l < width; ++l) sum += exact[one][i * width + l] * exact[other][j * width + l];
            return sum;
        };
        for (int head = 0; head < heads; ++head)
            for (int query = 0; query < length; ++query) {
                const std::size_t base = std::size_t(head) * length, i = base + query;
                const int end = causal ? query + 1 : length;
                std::vector<double> p(end), change(end);
                double best = -INFINITY, sum = 0, product = 0;
                for (int j = 0; j < end; ++j) best = std::max(best, p[j] = dot(0, i, 1, base + j) * 0.125);
                for (double& value : p) sum += value = std::exp(value - best);
                for (int j = 0; j < end; ++j) product += (p[j] /= sum) * (change[j] = dot(3, i, 2, base + j));
                logarithms[i] = static_cast<float>((best + std::log(sum)) / std::log(2.0));
                products[i] = static_cast<float>(product);
                for (int j = 0; j < end; ++j)
                    for (int l = 0; l < width; ++l) {
                        const double d = p[j] * (change[j] - product) * 0.125;
                        expected[0][i * width + l] += d * exact[1][(base + j) * width + l];
                        expected[1][(base + j) * width + l] += d * exact[0][i * width + l];
                        expected[2][(base + j) * width + l] += p[j] * exact[3][i * width + l];
                    }
            }
        const test::Buffer<float> logarithm(logarithms), product(products);
        const Attention given{q, k, v, gradient, logarithm, product, length, causal};
        LAUNCH(gradients_of_keys, dim3(length / rows, heads), dim3(128), 0, given, of_k, of_v);
        LAUNCH(gradients_of_queries, dim3(length / rows, heads), dim3(128), 0, given, of_q);
        worst = std::max({worst, test::worst_error(of_q.download(), expected[0]), test::worst_error(of_k.download(), expected[1]),
                          test::worst_error(of_v.download(), expected[2])});
    }
    return program.finish(worst < 5e-3, "%d heads of %d error=%.2g", heads, length, worst);
}
