// SPDX-License-Identifier: Apache-2.0
// Renders the Mandelbrot set with the kernel of mandelbrot.ptx through the driver API, checks a
// sample of it against the host, writes a PNG, and shows a small preview on a terminal.
#include "tests/support/cuda_driver.h"
#include "tools/gallery/png_writer.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct View {
    int width = 1920, height = 1080, limit = 500;
    float centre_x = -0.7436f, centre_y = 0.1318f, scale = 0.0000065f;
};

void check(CUresult result, const char* what) {
    if (result == 0) return;
    const char* text = nullptr;
    cuGetErrorString(result, &text);
    std::fprintf(stderr, "gallery: %s: %s\n", what, text ? text : "unknown error");
    std::exit(1);
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int host_count(const View& view, int x, int y) {
    float re = view.centre_x + (static_cast<float>(x) - 0.5f * view.width) * view.scale;
    float im = view.centre_y + (static_cast<float>(y) - 0.5f * view.height) * view.scale;
    float zr = 0, zi = 0, rr = 0, ii = 0;
    int count = 0;
    while (count < view.limit && rr + ii <= 256.0f) {
        zi = 2.0f * zr * zi + im;
        zr = rr - ii + re;
        rr = zr * zr;
        ii = zi * zi;
        ++count;
    }
    return count;
}

/// Two pixels per character cell: the upper one as foreground, the lower one as background.
void show_preview(const View& view, const std::vector<std::uint8_t>& rgba) {
    constexpr int columns = 96, rows = 54;
    auto pixel = [&](int column, int row) {
        std::size_t x = static_cast<std::size_t>(column) * view.width / columns;
        std::size_t y = static_cast<std::size_t>(row) * view.height / rows;
        return &rgba[4 * (y * view.width + x)];
    };
    for (int row = 0; row < rows; row += 2) {
        for (int column = 0; column < columns; ++column) {
            const std::uint8_t *top = pixel(column, row), *bottom = pixel(column, row + 1);
            std::printf("\x1b[38;2;%d;%d;%dm\x1b[48;2;%d;%d;%dm\u2580", top[0], top[1], top[2], bottom[0], bottom[1],
                        bottom[2]);
        }
        std::printf("\x1b[0m\n");
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2 || std::strcmp(argv[1], "--help") == 0) {
        std::printf("usage: gallery FILE.png\n\nRenders the Mandelbrot set with a CUDA kernel and "
                    "writes it as a PNG.\n");
        return argc == 2 ? 0 : 2;
    }
    View view;
    std::ifstream file(GALLERY_PTX);
    std::string ptx((std::istreambuf_iterator<char>(file)), {});

    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr pixels = 0, counts = 0;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuModuleLoadData(&module, ptx.c_str()), "loading the kernel");
    check(cuModuleGetFunction(&kernel, module, "render"), "finding the kernel");
    std::size_t count = static_cast<std::size_t>(view.width) * view.height;
    check(cuMemAlloc_v2(&pixels, 4 * count), "cuMemAlloc");
    check(cuMemAlloc_v2(&counts, 4 * count), "cuMemAlloc");

    void* parameters[] = {&pixels,        &counts,        &view.width, &view.height,
                          &view.centre_x, &view.centre_y, &view.scale, &view.limit};
    unsigned grid_x = (view.width + 15) / 16, grid_y = (view.height + 15) / 16;
    double times[2]; // with and without compiling
    for (double& time : times) {
        auto start = std::chrono::steady_clock::now();
        check(cuLaunchKernel(kernel, grid_x, grid_y, 1, 16, 16, 1, 0, nullptr, parameters, nullptr), "the launch");
        check(cuCtxSynchronize(), "the kernel");
        time = milliseconds_since(start);
    }

    std::vector<std::uint8_t> image(4 * count);
    std::vector<int> iterations(count);
    check(cuMemcpyDtoH_v2(image.data(), pixels, image.size()), "copying the picture");
    check(cuMemcpyDtoH_v2(iterations.data(), counts, 4 * count), "copying the counts");
    std::size_t checked = 0, wrong = 0;
    for (std::size_t i = 0; i < count; i += 101, ++checked)
        wrong += iterations[i] != host_count(view, static_cast<int>(i % view.width), static_cast<int>(i / view.width));
    if (!write_png(argv[1], image, view.width, view.height)) {
        std::fprintf(stderr, "gallery: cannot write %s\n", argv[1]);
        return 1;
    }
    if (isatty(STDOUT_FILENO)) show_preview(view, image);
    std::printf("%s: %dx%d, 4 samples a pixel, first launch %.0f ms (compiles), second %.0f ms; "
                "%zu pixels checked against the host, %zu differ\n",
                argv[1], view.width, view.height, times[0], times[1], checked, wrong);
    return wrong == 0 ? 0 : 1;
}
