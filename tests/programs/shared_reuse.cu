// SPDX-License-Identifier: Apache-2.0
// Blocks that read words of shared memory behind a barrier and write them again with no other barrier between: soft-max
// of rows, a block reduction that is called twice, words that change hands each round. By the guide these are races; on a
// GPU all warps read soon behind the barrier, long before the first writes.
#include "common/program.h"

constexpr int columns = 700, rows = 12;

/// Takes a while: what is computed from a word that was read is written long behind the read.
#ifdef __CUDACC__
__host__ __device__
#endif
inline unsigned mixed(unsigned value) {
    for (int i = 0; i < 256; ++i) value = (value ^ (value >> 15)) * 2654435769u + 12345u;
    return value;
}

KERNEL void softmax_rows(const float* in, float* out, int count);
KERNEL void normalize_rows(const float* in, float* out);
KERNEL void pass_words_on(unsigned* out, int rounds);
KERNEL void take_numbers(unsigned* out, int rounds);

#ifdef __CUDACC__
__device__ float warp_maximum(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}
__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

/// One block a row. The first thread combines the warps' parts in the first word, which all read.
__global__ void softmax_rows(const float* in, float* out, int count) {
    extern __shared__ float parts[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const float* x = in + (size_t)blockIdx.x * count;
    float* y = out + (size_t)blockIdx.x * count;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < count; i += blockDim.x) largest = fmaxf(largest, x[i]);
    largest = warp_maximum(largest);
    if (lane == 0) parts[warp] = largest;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < warps; ++i) parts[0] = fmaxf(parts[0], parts[i]);
    __syncthreads();
    const float offset = parts[0];
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const float power = expf(x[i] - offset);
        y[i] = power;
        sum += power;
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < warps; ++i) parts[0] += parts[i];
    __syncthreads();
    const float total = parts[0];
    for (int i = threadIdx.x; i < count; i += blockDim.x) y[i] /= total;
}

/// All threads add the warps' parts; nothing keeps the next call from writing them.
__device__ float block_sum(float value) {
    __shared__ float parts[32];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float result = 0;
    for (int i = 0; i < blockDim.x / 32; ++i) result += parts[i];
    return result;
}

/// The same with the parts read by lane, as each warp's first lanes do.
__device__ float block_maximum(float value) {
    __shared__ float parts[32];
    value = warp_maximum(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    return warp_maximum(threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : -INFINITY);
}

__global__ void normalize_rows(const float* in, float* out) {
    const float value = in[blockIdx.x * blockDim.x + threadIdx.x];
    const float mean = block_sum(value) / blockDim.x;
    const float difference = value - mean;
    const float variance = block_sum(difference * difference) / blockDim.x;
    const float scale = block_maximum(fabsf(difference)), largest = block_maximum(value);
    out[blockIdx.x * blockDim.x + threadIdx.x] = difference * rsqrtf(variance + 1e-5f) + scale + largest;
}

/// One barrier a round: the word is read at the end of a round and written at the start of the next, by another thread.
__global__ void pass_words_on(unsigned* out, int rounds) {
    __shared__ volatile unsigned word;
    unsigned hash = 0, value = 1;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == (round * 37) % blockDim.x) word = value;
        __syncthreads();
        value = mixed(word);
        hash = hash * 31 + value;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = hash;
}

/// Threads count themselves; one takes the count and starts the next.
__global__ void take_numbers(unsigned* out, int rounds) {
    __shared__ unsigned counter;
    if (threadIdx.x == 0) counter = 0;
    unsigned hash = 0;
    for (int round = 0; round < rounds; ++round) {
        __syncthreads();
        if ((threadIdx.x + round) % 3 == 0) atomicAdd(&counter, 1u);
        __syncthreads();
        const unsigned value = mixed(counter);
        hash = hash * 31 + value;
        if (threadIdx.x == 0) counter = value % 1000;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = hash;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("shared_reuse", argc, argv);
    const int rounds = program.argument(0, 20);
    test::Random random(3);
    double worst = 0;
    int wrong = 0;
    const std::vector<float> values = random.floats(columns * rows, -8, 8);
    const test::Buffer<float> input(values);
    for (int block : {32, 128, 512, 1024}) {
        const test::Buffer<float> output(columns * rows);
        LAUNCH(softmax_rows, rows, block, block / 32 * sizeof(float), input, output, columns);
        std::vector<double> expected(columns * rows);
        for (int row = 0; row < rows; ++row) {
            const float* x = &values[row * columns];
            const double largest = *std::max_element(x, x + columns);
            double sum = 0;
            for (int i = 0; i < columns; ++i) sum += std::exp(x[i] - largest);
            for (int i = 0; i < columns; ++i) expected[row * columns + i] = std::exp(x[i] - largest) / sum;
        }
        worst = std::max(worst, test::worst_error(output.download(), expected));
    }
    for (int block : {64, 256, 1024}) {
        const int blocks = columns * rows / block;
        const test::Buffer<float> output(blocks * block);
        LAUNCH(normalize_rows, blocks, block, 0, input, output);
        std::vector<double> expected(blocks * block);
        for (int row = 0; row < blocks; ++row) {
            const float* x = &values[row * block];
            double mean = 0, variance = 0, scale = 0;
            for (int i = 0; i < block; ++i) mean += x[i] / block;
            for (int i = 0; i < block; ++i) {
                variance += (x[i] - mean) * (x[i] - mean) / block;
                scale = std::max(scale, std::fabs(x[i] - mean));
            }
            for (int i = 0; i < block; ++i)
                expected[row * block + i] =
                    (x[i] - mean) / std::sqrt(variance + 1e-5) + scale + *std::max_element(x, x + block);
        }
        worst = std::max(worst, test::worst_error(output.download(), expected));
    }
    for (int block : {96, 512}) {
        const test::Buffer<unsigned> words(3 * block), counts(3 * block);
        LAUNCH(pass_words_on, 3, block, 0, words, rounds);
        LAUNCH(take_numbers, 3, block, 0, counts, rounds);
        const std::vector<unsigned> got_words = words.download(), got_counts = counts.download();
        unsigned hash = 0, value = 1, count_hash = 0, counter = 0;
        for (int round = 0; round < rounds; ++round) {
            value = mixed(value);
            hash = hash * 31 + value;
            for (int other = 0; other < block; ++other) counter += (other + round) % 3 == 0;
            const unsigned counted = mixed(counter);
            count_hash = count_hash * 31 + counted;
            counter = counted % 1000;
        }
        for (int i = 0; i < 3 * block; ++i) {
            wrong += got_words[i] != hash;
            wrong += got_counts[i] != count_hash;
        }
    }
    return program.finish(worst < 1e-4 && wrong == 0, "rounds=%d error=%.1e wrong=%d", rounds, worst, wrong);
}
