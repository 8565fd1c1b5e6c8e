// SPDX-License-Identifier: Apache-2.0
// Attention in one pass (softmax(Q K^T) V with running maxima and sums), halves with sums in f32: queries' fragments stay in registers, keys and
// values come through shared memory, ldmatrix gives K as it lies and V transposed, probabilities go from one product's result to the next one's
// operand; causal or not. nvcc: -arch=sm_80
#include "common/program.h"
#include "common/small_floats.h"

KERNEL void attention(const unsigned short* q, const unsigned short* k, const unsigned short* v, float* output, int length, int causal);

constexpr int width = 64, queries = 64, keys = 32; // of a head, of a block, of a round

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

/// Four warps of 16 queries; a row of shared memory has 8 halves more than it holds.
__global__ void __launch_bounds__(128) attention(const unsigned short* q, const unsigned short* k, const unsigned short* v, float* output, int length,
                                                 int causal) {
    __shared__ __align__(16) unsigned short tile[queries][width + 8], values[keys][width + 8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * queries, row = first + warp * 16 + lane / 4;
    const std::size_t head = std::size_t(blockIdx.y) * length * width;
    const auto fill = [&](unsigned short (*to)[width + 8], const unsigned short* from, int rows) {
        for (int i = threadIdx.x; i < rows * width / 8; i += 128)
            *reinterpret_cast<uint4*>(&to[i / 8][i % 8 * 8]) = *reinterpret_cast<const uint4*>(from + head + i * 8);
    };
    fill(tile, q + first * width, queries);
    __syncthreads();
    unsigned a[width / 16][4];
    for (int i = 0; i < width / 16; ++i) load_matrices(a[i], &tile[warp * 16 + lane % 16][16 * i + lane / 16 * 8]);
    float result[width / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    const float scale = 0.125f * 1.44269504f; // to powers of two
    const int end = causal ? first + queries : length;
    for (int begin = 0; begin < end; begin += keys) {
        __syncthreads();
        fill(tile, k + begin * width, keys);
        fill(values, v + begin * width, keys);
        __syncthreads();
        float score[keys / 8][4] = {};
        for (int i = 0; i < width / 16; ++i)
            for (int j = 0; j < keys / 16; ++j) {
                unsigned b[4]; // keys 16 j and on: two columns of the product
                load_matrices(b, &tile[16 * j + lane % 16][16 * i + lane / 16 * 8]);
                multiply(score[2 * j], a[i], b[0], b[2]);
                multiply(score[2 * j + 1], a[i], b[1], b[3]);
            }
        for (int half = 0; half < 2; ++half) {
            float best = most[half];
            for (int j = 0; j < keys / 8; ++j)
                for (int l = 0; l < 2; ++l) {
                    float& value = score[j][2 * half + l];
                    if (causal && begin + 8 * j + lane % 4 * 2 + l > row + 8 * half) value = -INFINITY;
                    best = fmaxf(best, value);
                }
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
            const float rest = exp2f((most[half] - best) * scale);
            most[half] = best;
            sum[half] *= rest;
            for (int j = 0; j < width / 8; ++j)
                for (int l = 0; l < 2; ++l) result[j][2 * half + l] *= rest;
            for (int j = 0; j < keys / 8; ++j)
                for (int l = 0; l < 2; ++l) {
                    float& value = score[j][2 * half + l];
                    value = exp2f((value - best) * scale);
                    sum[half] += value;
                }
        }
        for (int i = 0; i < keys / 16; ++i) {
            const unsigned p[4] = {pack(score[2 * i][0], score[2 * i][1]), pack(score[2 * i][2], score[2 * i][3]),
                                   pack(score[2 * i + 1][0], score[2 * i + 1][1]), pack(score[2 * i + 1][2], score[2 * i + 1][3])};
            for (int j = 0; j < width / 16; ++j) {
                unsigned b[4];
                load_transposed(b, &values[16 * i + lane % 16][16 * j + lane / 16 * 8]);
                multiply(result[2 * j], p, b[0], b[1]);
                multiply(result[2 * j + 1], p, b[2], b[3]);
            }
        }
    }
    for (int half = 0; half < 2; ++half) {
        sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
        sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
        for (int j = 0; j < width / 8; ++j)
            for (int l = 0; l < 2; ++l)
                output[head + (row + 8 * half) * width + 8 * j + lane % 4 * 2 + l] = result[j][2 * half + l] / sum[half];
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("flash_attention", argc, argv);
    const int length = program.argument(0, 192), heads = program.argument(1, 2);
    test::Random random(43);
    const int count = heads * length * width;
    std::vector<unsigned short> inputs[3];
    std::vector<double> exact[3];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < count; ++j) {
            // Halves of a few bits: multiples of 1/8, made of integers by their exponents.
            const int eighths = static_cast<int>(random.below(33)) - 16;
            inputs[i].push_back(eighths == 0 ? 0 : static_cast<unsigned short>(test::half_of(eighths) - (3 << 10)));
            exact[i].push_back(eighths / 8.0);
        }
    const test::Buffer<unsigned short> q(inputs[0]), k(inputs[1]), v(inputs[2]);
    const test::Buffer<float> output(count);
    double worst = 0;
    for (int causal = 0; causal < 2; ++causal) {
        LAUNCH(attention, dim3(length / queries, heads), dim3(128), 0, q, k, v, output, length, causal);
        std::vector<double> expected(count);
        for (int head = 0; head < heads; ++head)
            for (int i = 0; i < length; ++i) {
                const int end = causal ? i + 1 : length;
                std::vector<double> score(end);
                double best = -INFINITY, sum = 0;
                const std::size_t base = std::size_t(head) * length;
                for (int j = 0; j < end; ++j) {
                    for (int l = 0; l < width; ++l) score[j] += exact[0][(base + i) * width + l] * exact[1][(base + j) * width + l];
                    score[j] *= 0.125;
                    best = std::max(best, score[j]);
                }
                for (double& value : score) sum += value = std::exp(value - best);
                for (int j = 0; j < end; ++j)
                    for (int l = 0; l < width; ++l) expected[(base + i) * width + l] += score[j] / sum * exact[2][(base + j) * width + l];
            }
        worst = std::max(worst, test::worst_error(output.download(), expected));
    }
    return program.finish(worst < 2e-3, "%d heads of %d error=%.2g", heads, length, worst);
}
