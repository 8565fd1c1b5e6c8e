// SPDX-License-Identifier: Apache-2.0
// 5x5 integer blur of an RGBA image; the weights are in constant memory.
#include "common/program.h"

struct Weights {
    int values[25];
};

KERNEL void image_blur(const unsigned* input, unsigned* output, int width, int height);

#ifdef __CUDACC__
__constant__ Weights weights;

__global__ void image_blur(const unsigned* input, unsigned* output, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int sums[4] = {};
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            const int sx = min(max(x + dx, 0), width - 1), sy = min(max(y + dy, 0), height - 1);
            const uchar4 pixel = reinterpret_cast<const uchar4*>(input)[sy * width + sx];
            const int weight = weights.values[(dy + 2) * 5 + dx + 2];
            sums[0] += weight * pixel.x;
            sums[1] += weight * pixel.y;
            sums[2] += weight * pixel.z;
            sums[3] += weight * pixel.w;
        }
    reinterpret_cast<uchar4*>(output)[y * width + x] =
        make_uchar4(sums[0] >> 8, sums[1] >> 8, sums[2] >> 8, sums[3] >> 8);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("image_blur", argc, argv);
    const int width = program.argument(0, 321), height = program.argument(1, 240);
    const Weights kernel = {{1, 4, 6, 4, 1, 4, 16, 24, 16, 4, 6, 24, 36, 24, 6, 4, 16, 24, 16, 4, 1, 4, 6, 4, 1}};
    test::Random random(14);
    std::vector<unsigned> image(width * height);
    for (unsigned& pixel : image) pixel = random.bits();
    const test::Buffer<unsigned> input(image), output(image.size());
    SET_SYMBOL(weights, kernel);
    LAUNCH(image_blur, dim3(test::blocks_for(width, 32), test::blocks_for(height, 8)), dim3(32, 8), 0, input, output,
           width, height);
    const std::vector<unsigned> actual = output.download();
    int wrong = 0;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            for (int channel = 0; channel < 4; ++channel) {
                int sum = 0;
                for (int k = 0; k < 25; ++k) {
                    const int sx = std::min(std::max(x + k % 5 - 2, 0), width - 1);
                    const int sy = std::min(std::max(y + k / 5 - 2, 0), height - 1);
                    sum += kernel.values[k] * static_cast<int>(image[sy * width + sx] >> 8 * channel & 255);
                }
                wrong += static_cast<int>(actual[y * width + x] >> 8 * channel & 255) != sum >> 8;
            }
    return program.finish(wrong == 0, "%dx%d wrong=%d", width, height, wrong);
}
