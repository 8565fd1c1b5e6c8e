// SPDX-License-Identifier: Apache-2.0
// The problems and their natural OpenMP C++ forms (compiled -O3 for this CPU, no fast-math).
#include "bench/kernels/kernel_case.h"

#include <cmath>
#include <random>

#ifdef PTARMIGAN_BENCH_OPENBLAS
#include <cblas.h>
#endif

namespace bench {
namespace {

Bytes floats(std::size_t count, unsigned seed, float low = -1.0f, float high = 1.0f) {
    Bytes bytes(count * 4);
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> value(low, high);
    for (std::size_t i = 0; i < count; ++i) as<float>(bytes)[i] = value(engine);
    return bytes;
}

Bytes zeros(std::size_t count) {
    return Bytes(count * 4);
}

unsigned groups(std::size_t count, unsigned size) {
    return unsigned((count + size - 1) / size);
}

KernelCase saxpy_case(std::string name, int n, int repeats) {
    KernelCase c;
    c.name = std::move(name);
    c.kernel = "saxpy";
    c.buffers = {floats(n, 1), floats(n, 2)};
    c.arguments = {buffer(0), buffer(1), scalar(1.5f), scalar(n)};
    c.grid = {groups(n, 256), 1, 1};
    c.block = {256, 1, 1};
    c.repeats = repeats;
    c.output = 1;
    c.tolerance = 1e-6f; // C++ may not contract, PTX does
    c.unit = "GB/s";
    c.work = 12e-9 * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float* x = as<float>(b[0]);
        float* y = as<float>(b[1]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) y[i] = 1.5f * x[i] + y[i];
    };
    return c;
}

KernelCase sgemm_case(std::string name, std::string kernel, int n, unsigned tile) {
    KernelCase c;
    c.name = std::move(name);
    c.kernel = std::move(kernel);
    c.buffers = {floats(std::size_t(n) * n, 3), floats(std::size_t(n) * n, 4), zeros(std::size_t(n) * n)};
    c.arguments = {buffer(0), buffer(1), buffer(2), scalar(n)};
    c.grid = {unsigned(n) / tile, unsigned(n) / tile, 1};
    c.block = {16, 16, 1};
    c.output = 2;
    c.tolerance = 1e-5f;
    c.unit = "GFLOP/s";
    c.work = 2e-9 * n * n * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float *A = as<float>(b[0]), *B = as<float>(b[1]);
        float* C = as<float>(b[2]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float* row = C + std::size_t(i) * n;
            for (int j = 0; j < n; ++j) row[j] = 0;
            for (int k = 0; k < n; ++k) {
                float a = A[std::size_t(i) * n + k];
                for (int j = 0; j < n; ++j) row[j] = std::fma(a, B[std::size_t(k) * n + j], row[j]);
            }
        }
    };
#ifdef PTARMIGAN_BENCH_OPENBLAS
    c.blas = [n](std::vector<Bytes>& b) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, as<float>(b[0]), n, as<float>(b[1]), n,
                    0.0f, as<float>(b[2]), n);
    };
#endif
    return c;
}

KernelCase stencil_case(int w, int h) {
    KernelCase c;
    c.name = c.kernel = "stencil";
    c.buffers = {floats(std::size_t(w) * h, 5), zeros(std::size_t(w) * h)};
    c.arguments = {buffer(0), buffer(1), scalar(w), scalar(h)};
    c.grid = {groups(w, 32), groups(h, 8), 1};
    c.block = {32, 8, 1};
    c.output = 1;
    c.tolerance = 1e-6f;
    c.unit = "GB/s";
    c.work = 8e-9 * w * h;
    c.openmp = [w, h](std::vector<Bytes>& b) {
        const float* in = as<float>(b[0]);
        float* out = as<float>(b[1]);
#pragma omp parallel for
        for (int y = 1; y < h - 1; ++y)
            for (int x = 1; x < w - 1; ++x) {
                int i = y * w + x;
                out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
            }
    };
    return c;
}

KernelCase histogram_case(int n) {
    KernelCase c;
    c.name = c.kernel = "histogram";
    c.buffers = {zeros(n), zeros(256)};
    std::mt19937 engine(6);
    for (int i = 0; i < n; ++i) as<std::uint32_t>(c.buffers[0])[i] = std::uint32_t(engine());
    c.arguments = {buffer(0), buffer(1), scalar(n)};
    c.grid = {128, 1, 1};
    c.block = {256, 1, 1};
    c.output = 1;
    c.output_is_float = false;
    c.unit = "GB/s";
    c.work = 4e-9 * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const std::uint32_t* data = as<std::uint32_t>(b[0]);
        std::uint32_t* bins = as<std::uint32_t>(b[1]);
#pragma omp parallel
        {
            std::uint32_t own[256] = {};
#pragma omp for
            for (int i = 0; i < n; ++i) ++own[data[i] & 255];
#pragma omp critical
            for (int i = 0; i < 256; ++i) bins[i] += own[i];
        }
    };
    return c;
}

KernelCase reduce_case(int n) {
    KernelCase c;
    c.name = c.kernel = "reduce";
    c.buffers = {floats(n, 7, 0.0f, 1.0f), zeros(128)};
    c.arguments = {buffer(0), buffer(1), scalar(n)};
    c.grid = {128, 1, 1};
    c.block = {256, 1, 1};
    c.output = 1;
    c.tolerance = 1e-4f;
    c.reduce_output = true;
    c.unit = "GB/s";
    c.work = 4e-9 * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float* in = as<float>(b[0]);
        float* out = as<float>(b[1]);
        // A float sum has a fixed order in C++, so the natural loop does not vectorise; 128 partial sums as the
        // kernel has, each over a contiguous piece.
#pragma omp parallel for
        for (int g = 0; g < 128; ++g) {
            float sum = 0;
            for (int i = int(std::int64_t(n) * g / 128); i < int(std::int64_t(n) * (g + 1) / 128); ++i) sum += in[i];
            out[g] = sum;
        }
    };
    return c;
}

KernelCase mandelbrot_case(int size) {
    KernelCase c;
    c.name = c.kernel = "mandelbrot";
    c.buffers = {zeros(std::size_t(size) * size)};
    c.arguments = {buffer(0), scalar(size), scalar(size), scalar(256)};
    c.grid = {groups(size, 32), groups(size, 8), 1};
    c.block = {32, 8, 1};
    c.output_is_float = false;
    c.allowed_mismatches = 0.02; // nvcc contracts to fma, C++ here does not
    c.unit = "Mpixel/s";
    c.work = 1e-6 * size * size;
    c.openmp = [size](std::vector<Bytes>& b) {
        int* out = as<int>(b[0]);
#pragma omp parallel for schedule(dynamic, 8)
        for (int py = 0; py < size; ++py)
            for (int px = 0; px < size; ++px) {
                float cx = -2.0f + 3.0f * px / size, cy = -1.5f + 3.0f * py / size, x = 0, y = 0;
                int i = 0;
                while (i < 256 && x * x + y * y < 4.0f) {
                    float t = x * x - y * y + cx;
                    y = 2.0f * x * y + cy;
                    x = t;
                    ++i;
                }
                out[py * size + px] = i;
            }
    };
    return c;
}

KernelCase nbody_case(int n) {
    KernelCase c;
    c.name = c.kernel = "nbody";
    c.buffers = {floats(4 * std::size_t(n), 8, 0.0f, 1.0f), zeros(4 * std::size_t(n))};
    c.arguments = {buffer(0), buffer(1), scalar(n)};
    c.grid = {unsigned(n) / 256, 1, 1};
    c.block = {256, 1, 1};
    c.output = 1;
    c.tolerance = 1e-4f;
    c.unit = "GFLOP/s";
    c.work = 20e-9 * n * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float* p = as<float>(b[0]);
        float* acc = as<float>(b[1]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float px = p[4 * i], py = p[4 * i + 1], pz = p[4 * i + 2], ax = 0, ay = 0, az = 0;
            for (int j = 0; j < n; ++j) {
                float dx = p[4 * j] - px, dy = p[4 * j + 1] - py, dz = p[4 * j + 2] - pz;
                float inv = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + 1e-3f);
                float s = p[4 * j + 3] * inv * inv * inv;
                ax += dx * s;
                ay += dy * s;
                az += dz * s;
            }
            acc[4 * i] = ax;
            acc[4 * i + 1] = ay;
            acc[4 * i + 2] = az;
            acc[4 * i + 3] = 0;
        }
    };
    return c;
}

float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * std::fabs(d));
    float c = 0.39894228040143267794f * std::exp(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

KernelCase black_scholes_case(int n) {
    KernelCase c;
    c.name = c.kernel = "black_scholes";
    c.buffers = {floats(n, 9, 5.0f, 30.0f), floats(n, 10, 1.0f, 100.0f), floats(n, 11, 0.25f, 10.0f), zeros(n),
                 zeros(n)};
    c.arguments = {buffer(0), buffer(1), buffer(2), buffer(3), buffer(4), scalar(0.02f), scalar(0.3f), scalar(n)};
    c.grid = {groups(n, 256), 1, 1};
    c.block = {256, 1, 1};
    c.output = 3;
    c.tolerance = 1e-5f;
    c.unit = "Moption/s";
    c.work = 1e-6 * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float *price = as<float>(b[0]), *strike = as<float>(b[1]), *years = as<float>(b[2]);
        float *call = as<float>(b[3]), *put = as<float>(b[4]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float s = price[i], x = strike[i], t = years[i], root = std::sqrt(t);
            float d1 = (std::log(s / x) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root), d2 = d1 - 0.3f * root;
            float n1 = cumulative_normal(d1), n2 = cumulative_normal(d2), discount = x * std::exp(-0.02f * t);
            call[i] = s * n1 - discount * n2;
            put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
        }
    };
    return c;
}

KernelCase transpose_case(int n) {
    KernelCase c;
    c.name = c.kernel = "transpose";
    c.buffers = {floats(std::size_t(n) * n, 12), zeros(std::size_t(n) * n)};
    c.arguments = {buffer(0), buffer(1), scalar(n), scalar(n)};
    c.grid = {unsigned(n) / 32, unsigned(n) / 32, 1};
    c.block = {32, 8, 1};
    c.output = 1;
    c.unit = "GB/s";
    c.work = 8e-9 * n * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float* in = as<float>(b[0]);
        float* out = as<float>(b[1]);
#pragma omp parallel for collapse(2)
        for (int ty = 0; ty < n; ty += 32)
            for (int tx = 0; tx < n; tx += 32)
                for (int y = ty; y < ty + 32; ++y)
                    for (int x = tx; x < tx + 32; ++x) out[std::size_t(x) * n + y] = in[std::size_t(y) * n + x];
    };
    return c;
}

KernelCase spmv_case(int n) {
    KernelCase c;
    c.name = c.kernel = "spmv";
    std::mt19937 engine(13);
    std::vector<int> rows(n + 1), columns;
    for (int i = 0; i < n; ++i) {
        rows[i] = int(columns.size());
        int count = 4 + int(engine() % 25);
        for (int j = 0; j < count; ++j) columns.push_back(int(engine() % unsigned(n)));
    }
    rows[n] = int(columns.size());
    auto bytes = [](const std::vector<int>& v) {
        Bytes b(v.size() * 4);
        std::memcpy(b.data(), v.data(), b.size());
        return b;
    };
    c.buffers = {bytes(rows), bytes(columns), floats(columns.size(), 14), floats(n, 15), zeros(n)};
    c.arguments = {buffer(0), buffer(1), buffer(2), buffer(3), buffer(4), scalar(n)};
    c.grid = {groups(n, 256), 1, 1};
    c.block = {256, 1, 1};
    c.output = 4;
    c.tolerance = 1e-5f;
    c.unit = "GFLOP/s";
    c.work = 2e-9 * double(columns.size());
    c.openmp = [n](std::vector<Bytes>& b) {
        const int *rows = as<int>(b[0]), *columns = as<int>(b[1]);
        const float *values = as<float>(b[2]), *x = as<float>(b[3]);
        float* y = as<float>(b[4]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float sum = 0;
            for (int j = rows[i]; j < rows[i + 1]; ++j) sum = std::fma(values[j], x[columns[j]], sum);
            y[i] = sum;
        }
    };
    return c;
}

KernelCase add_strided_case(std::string name, int n, int stride) {
    KernelCase c;
    c.name = std::move(name);
    c.kernel = "add_strided";
    const std::size_t size = std::size_t(n) * unsigned(stride);
    c.buffers = {floats(size, 16), floats(size, 17), zeros(size)};
    c.arguments = {buffer(0), scalar(stride), buffer(1), scalar(stride), buffer(2), scalar(stride), scalar(n)};
    c.grid = {groups(n, 128), 1, 1};
    c.block = {128, 1, 1};
    c.output = 2;
    c.unit = "GB/s";
    c.work = 12e-9 * n;
    c.openmp = [n, stride](std::vector<Bytes>& b) {
        const float *x = as<float>(b[0]), *y = as<float>(b[1]);
        float* z = as<float>(b[2]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) z[i * stride] = x[i * stride] + y[i * stride];
    };
    return c;
}

/// A matrix and a row for all of its rows, as a sum of arrays of unlike shapes.
KernelCase add_matrices_case(int side) {
    KernelCase c;
    c.name = "add, broadcast";
    c.kernel = "add_matrices";
    const int n = side * side;
    c.buffers = {floats(std::size_t(n), 18), floats(std::size_t(side), 19), zeros(std::size_t(n))};
    c.arguments = {buffer(0), scalar(side), scalar(1), buffer(1),    scalar(0), scalar(1),
                   buffer(2), scalar(side), scalar(1), scalar(side), scalar(n)};
    c.grid = {groups(n, 128), 1, 1};
    c.block = {128, 1, 1};
    c.output = 2;
    c.unit = "GB/s";
    c.work = 8e-9 * n;
    c.openmp = [side](std::vector<Bytes>& b) {
        const float *x = as<float>(b[0]), *y = as<float>(b[1]);
        float* z = as<float>(b[2]);
#pragma omp parallel for
        for (int row = 0; row < side; ++row)
            for (int column = 0; column < side; ++column) z[row * side + column] = x[row * side + column] + y[column];
    };
    return c;
}

KernelCase gemv_case(int n) {
    KernelCase c;
    c.name = "gemv by rows";
    c.kernel = "gemv_rows";
    c.buffers = {floats(std::size_t(n) * n, 20), floats(n, 21), zeros(n)};
    c.arguments = {buffer(0), scalar(n), buffer(1), buffer(2), scalar(n)};
    c.grid = {groups(n, 256), 1, 1};
    c.block = {256, 1, 1};
    c.output = 2;
    c.tolerance = 1e-4f;
    c.unit = "GB/s";
    c.work = 4e-9 * n * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float *A = as<float>(b[0]), *x = as<float>(b[1]);
        float* y = as<float>(b[2]);
#pragma omp parallel for
        for (int row = 0; row < n; ++row) {
            float sum = 0;
            for (int k = 0; k < n; ++k) sum = std::fma(A[std::size_t(row) * n + k], x[k], sum);
            y[row] = sum;
        }
    };
    return c;
}

KernelCase syrk_case(int n) {
    KernelCase c;
    c.name = c.kernel = "syrk";
    c.buffers = {floats(std::size_t(n) * n, 22), zeros(std::size_t(n) * n)};
    c.arguments = {buffer(0), buffer(1), scalar(n)};
    c.grid = {groups(n, 32), groups(n, 8), 1};
    c.block = {32, 8, 1};
    c.output = 1;
    c.tolerance = 1e-4f;
    c.unit = "GFLOP/s";
    c.work = 2e-9 * n * n * n;
    c.openmp = [n](std::vector<Bytes>& b) {
        const float* A = as<float>(b[0]);
        float* C = as<float>(b[1]);
#pragma omp parallel for
        for (int row = 0; row < n; ++row)
            for (int column = 0; column < n; ++column) {
                float sum = C[row * n + column];
                for (int k = 0; k < n; ++k) sum = std::fma(A[row * n + k], A[column * n + k], sum);
                C[row * n + column] = sum;
            }
    };
    return c;
}

/// "16M", "128K", or the number where it is no multiple.
std::string count_text(int n) {
    if (n % (1 << 20) == 0) return std::to_string(n >> 20) + "M";
    if (n % (1 << 10) == 0) return std::to_string(n >> 10) + "K";
    return std::to_string(n);
}

KernelCase named_saxpy(int n, int repeats) {
    return saxpy_case("saxpy " + count_text(n), n, repeats);
}

} // namespace

std::vector<KernelCase> all_cases(int scale) {
    // Square problems shrink by a power of two that keeps tiles whole.
    int side = scale >= 16 ? 4 : scale >= 4 ? 2 : 1;
    return {
        named_saxpy((16 << 20) / scale, 1),
        named_saxpy(128 << 10, 20),
        sgemm_case("sgemm tiled", "sgemm_tiled", 1024 / side, 16),
        sgemm_case("sgemm reg-tiled", "sgemm_register_tiled", 1024 / side, 64),
        stencil_case(4096 / side, 4096 / side),
        histogram_case((32 << 20) / scale),
        reduce_case((16 << 20) / scale),
        mandelbrot_case(1024 / side),
        nbody_case(8192 / side),
        black_scholes_case((4 << 20) / scale),
        transpose_case(4096 / side),
        spmv_case((256 << 10) / scale),
        add_strided_case("add, stride 1", (16 << 20) / scale, 1),
        add_strided_case("add, stride 3", (8 << 20) / scale, 3),
        add_matrices_case(4096 / side),
        gemv_case(4096 / side),
        syrk_case(512 / side),
    };
}

} // namespace bench
