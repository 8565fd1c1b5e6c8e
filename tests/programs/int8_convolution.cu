// SPDX-License-Identifier: Apache-2.0
// A convolution of bytes as a product of matrices without making one: 3 x 3, stride 1 or 2, zeros around, channels last; fragments of mma.sync
// m16n8k32 and m8n8k16 gathered from the image, bias, requantised to bytes with saturation. nvcc: -arch=sm_80
#include "common/program.h"

KERNEL void convolve(const signed char* image, const signed char* weights, const int* bias, signed char* result, int height, int width, int channels,
                     int filters, int stride);
KERNEL void convolve_small(const unsigned char* image, const signed char* weights, const int* bias, int* result, int height, int width, int channels,
                           int filters);

#ifdef __CUDACC__
/// Four channels of the pixel under place `tap` of the window at (y, x): zeros outside.
template <class Byte>
__device__ unsigned pixel(const Byte* image, int height, int width, int channels, int y, int x, int tap, int channel) {
    y += tap / 3 - 1;
    x += tap % 3 - 1;
    if (y < 0 || y >= height || x < 0 || x >= width) return 0;
    return *reinterpret_cast<const unsigned*>(image + (y * width + x) * channels + channel);
}

/// A warp: 16 pixels of the result by 8 filters. Channels are a multiple of 32.
__global__ void convolve(const signed char* image, const signed char* weights, const int* bias, signed char* result, int height, int width, int channels,
                         int filters, int stride) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int out_width = width / stride, pixels = height / stride * out_width, first = warp / (filters / 8) * 16, filter = warp % (filters / 8) * 8;
    if (first >= pixels) return;
    int sum[4] = {bias[filter + 2 * t], bias[filter + 2 * t + 1], bias[filter + 2 * t], bias[filter + 2 * t + 1]};
    for (int tap = 0; tap < 9; ++tap)
        for (int channel = 0; channel < channels; channel += 32) {
            unsigned a[4], b[2];
            for (int r = 0; r < 4; ++r) {
                const int p = first + g + 8 * (r % 2);
                a[r] = p < pixels ? pixel(image, height, width, channels, p / out_width * stride, p % out_width * stride, tap, channel + r / 2 * 16 + 4 * t) : 0;
            }
            for (int r = 0; r < 2; ++r)
                b[r] = *reinterpret_cast<const unsigned*>(weights + ((filter + g) * 9 + tap) * channels + channel + r * 16 + 4 * t);
            asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
    for (int l = 0; l < 4; ++l) {
        const int p = first + g + l / 2 * 8;
        if (p < pixels) result[p * filters + filter + 2 * t + l % 2] = static_cast<signed char>(min(127, max(-128, (sum[l] + 64) >> 7)));
    }
}

/// 8 pixels by 8 filters, unsigned pixels of 16 channels.
__global__ void convolve_small(const unsigned char* image, const signed char* weights, const int* bias, int* result, int height, int width, int channels,
                               int filters) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int pixels = height * width, p = warp / (filters / 8) * 8 + g, filter = warp % (filters / 8) * 8;
    if (p - g >= pixels) return;
    int sum[2] = {bias[filter + 2 * t], bias[filter + 2 * t + 1]};
    for (int tap = 0; tap < 9; ++tap) {
        const unsigned a = p < pixels ? pixel(image, height, width, channels, p / width, p % width, tap, 4 * t) : 0;
        const unsigned b = *reinterpret_cast<const unsigned*>(weights + ((filter + g) * 9 + tap) * channels + 4 * t);
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(sum[0]), "+r"(sum[1]) : "r"(a), "r"(b));
    }
    for (int l = 0; l < 2; ++l)
        if (p < pixels) result[p * filters + filter + 2 * t + l] = sum[l];
}
#endif

namespace {

template <class Byte> std::vector<int> expected_sums(const std::vector<Byte>& image, const std::vector<signed char>& weights, const std::vector<int>& bias,
                                                     int height, int width, int channels, int filters, int stride) {
    std::vector<int> sums;
    for (int y = 0; y < height / stride; ++y)
        for (int x = 0; x < width / stride; ++x)
            for (int f = 0; f < filters; ++f) {
                int sum = bias[f];
                for (int tap = 0; tap < 9; ++tap) {
                    const int from_y = y * stride + tap / 3 - 1, from_x = x * stride + tap % 3 - 1;
                    if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) continue;
                    for (int c = 0; c < channels; ++c)
                        sum += image[(from_y * width + from_x) * channels + c] * weights[(f * 9 + tap) * channels + c];
                }
                sums.push_back(sum);
            }
    return sums;
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("int8_convolution", argc, argv);
    const int height = program.argument(0, 22), width = program.argument(1, 18), filters = 24;
    test::Random random(44);
    int wrong = 0;
    std::vector<int> bias(filters);
    for (int& value : bias) value = static_cast<int>(random.below(4001)) - 2000;
    const test::Buffer<int> dbias(bias);
    for (int stride = 1; stride <= 2; ++stride) {
        const int channels = 64, pixels = height / stride * (width / stride);
        std::vector<signed char> image(height * width * channels), weights(filters * 9 * channels);
        for (auto* bytes : {&image, &weights})
            for (signed char& byte : *bytes) byte = static_cast<signed char>(static_cast<int>(random.below(41)) - 20);
        const test::Buffer<signed char> dimage(image), dweights(weights), result(pixels * filters);
        LAUNCH(convolve, dim3(test::blocks_for(test::blocks_for(pixels, 16) * (filters / 8), 4)), dim3(128), 0, dimage, dweights, dbias, result, height, width,
               channels, filters, stride);
        const std::vector<int> sums = expected_sums(image, weights, bias, height, width, channels, filters, stride);
        const std::vector<signed char> actual = result.download();
        for (std::size_t i = 0; i < sums.size(); ++i) wrong += actual[i] != std::min(127, std::max(-128, (sums[i] + 64) >> 7));
    }
    {
        const int channels = 16;
        std::vector<unsigned char> image(height * width * channels);
        std::vector<signed char> weights(filters * 9 * channels);
        for (unsigned char& byte : image) byte = static_cast<unsigned char>(random.bits());
        for (signed char& byte : weights) byte = static_cast<signed char>(random.bits());
        const test::Buffer<unsigned char> dimage(image);
        const test::Buffer<signed char> dweights(weights);
        const test::Buffer<int> result(height * width * filters);
        LAUNCH(convolve_small, dim3(test::blocks_for(test::blocks_for(height * width, 8) * (filters / 8), 4)), dim3(128), 0, dimage, dweights, dbias, result,
               height, width, channels, filters);
        const std::vector<int> sums = expected_sums(image, weights, bias, height, width, channels, filters, 1);
        const std::vector<int> actual = result.download();
        for (std::size_t i = 0; i < sums.size(); ++i) wrong += actual[i] != sums[i];
    }
    return program.finish(wrong == 0, "%dx%d wrong=%d", height, width, wrong);
}
