// SPDX-License-Identifier: Apache-2.0
// Iteration counts of the Mandelbrot set, computed without fused operations so that the host gets the same numbers.
// Arguments: width, height, iterations, and a file for the picture (PNG).
#include "common/png.h"
#include "common/program.h"

KERNEL void mandelbrot(int* counts, int width, int height, float left, float top, float step, int limit);

#ifdef __CUDACC__
__global__ void mandelbrot(int* counts, int width, int height, float left, float top, float step, int limit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float re = __fadd_rn(left, __fmul_rn(x, step)), im = __fadd_rn(top, __fmul_rn(y, step));
    float zr = 0, zi = 0;
    int count = 0;
    while (count < limit) {
        const float rr = __fmul_rn(zr, zr), ii = __fmul_rn(zi, zi);
        if (__fadd_rn(rr, ii) > 4.0f) break;
        zi = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, zr), zi), im);
        zr = __fadd_rn(__fsub_rn(rr, ii), re);
        ++count;
    }
    counts[y * width + x] = count;
}
#endif

static int host_count(float re, float im, int limit) {
    volatile float zr = 0, zi = 0; // volatile keeps the compiler from fusing
    for (int count = 0; count < limit; ++count) {
        const volatile float rr = zr * zr, ii = zi * zi;
        if (rr + ii > 4.0f) return count;
        const volatile float doubled = 2.0f * zr, product = doubled * zi, difference = rr - ii;
        zi = product + im;
        zr = difference + re;
    }
    return limit;
}

int main(int argc, char** argv) {
    const test::Program program("mandelbrot", argc, argv);
    const int width = program.argument(0, 640), height = program.argument(1, 400), limit = program.argument(2, 200);
    const float left = -2.2f, top = -1.2f, step = 3.2f / width;
    const test::Buffer<int> counts(width * height);
    LAUNCH(mandelbrot, dim3(test::blocks_for(width, 16), test::blocks_for(height, 16)), dim3(16, 16), 0, counts, width,
           height, left, top, step, limit);
    const std::vector<int> actual = counts.download();
    int wrong = 0, checked = 0;
    for (int i = 0; i < width * height; i += 7, ++checked) {
        const volatile float dx = static_cast<float>(i % width) * step, dy = static_cast<float>(i / width) * step;
        wrong += actual[i] != host_count(left + dx, top + dy, limit);
    }
    const std::string path = program.text(3);
    if (!path.empty()) {
        std::vector<std::uint8_t> pixels(actual.size());
        for (std::size_t i = 0; i < pixels.size(); ++i)
            pixels[i] = static_cast<std::uint8_t>(actual[i] == limit ? 0 : 255 - actual[i] * 7 % 256);
        if (!test::write_png(path, pixels, width, height)) return program.finish(false, "cannot write %s", path.c_str());
    }
    return program.finish(wrong == 0, "%dx%d limit=%d checked=%d wrong=%d", width, height, limit, checked, wrong);
}
