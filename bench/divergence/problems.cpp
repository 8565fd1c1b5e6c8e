// SPDX-License-Identifier: Apache-2.0
// The problems of portable_kernels.h and their natural OpenMP forms, one thread of the kernel per iteration.
#include "bench/divergence/lane_forms.h"

#include <cmath>
#include <random>

/// The words of path_tracer.h: tables that the compiler can't look through.
namespace path_tracer {
#define FUNCTION static
#define GLOBAL
#define FMA std::fma
#define SQRT std::sqrt
#define TABLE
#include "bench/divergence/path_tracer.h"
} // namespace path_tracer

namespace bench {
namespace {

template <typename T> Bytes bytes(const std::vector<T>& values) {
    Bytes result(values.size() * sizeof(T));
    std::memcpy(result.data(), values.data(), result.size());
    return result;
}

void set_grid(KernelCase& c, int count) {
    c.grid = {unsigned(count + 255) / 256, 1, 1};
    c.block = {256, 1, 1};
}

KernelCase mandelbrot_case(int size) {
    constexpr int limit = 256;
    KernelCase c;
    c.name = c.kernel = "mandelbrot";
    c.buffers = {Bytes(std::size_t(size) * size * 4)};
    c.arguments = {buffer(0), scalar(size), scalar(size), scalar(limit)};
    c.grid = {unsigned(size) / 32, unsigned(size) / 8, 1};
    c.block = {32, 8, 1};
    c.output_is_float = false;
    c.unit = "Mpixel/s";
    c.work = 1e-6 * size * size;
    c.openmp = [size](std::vector<Bytes>& b) {
        int* out = as<int>(b[0]);
#pragma omp parallel for schedule(dynamic, 8)
        for (int py = 0; py < size; ++py)
            for (int px = 0; px < size; ++px) {
                float cx = -2.0f + 3.0f * px / size, cy = -1.5f + 3.0f * py / size, x = 0, y = 0;
                int i = 0;
                while (i < limit && std::fma(x, x, y * y) < 4.0f) {
                    float t = std::fma(x, x, std::fma(-y, y, cx));
                    y = std::fma(2.0f * x, y, cy);
                    x = t;
                    ++i;
                }
                out[py * size + px] = i;
            }
    };
    c.lanes = [size](std::vector<Bytes>& b) { lane_forms::mandelbrot(as<int>(b[0]), size, limit); };
    return c;
}

/// Lists of `least` to `most` numbers below `count` for each of `count` owners.
void random_lists(int count, unsigned least, unsigned most, unsigned seed, std::vector<int>& first,
                  std::vector<int>& members) {
    std::mt19937 engine(seed);
    for (int i = 0; i < count; ++i) {
        first.push_back(int(members.size()));
        for (unsigned n = least + engine() % (most - least + 1); n != 0; --n)
            members.push_back(int(engine() % unsigned(count)));
    }
    first.push_back(int(members.size()));
}

KernelCase bfs_case(int count) {
    std::vector<int> first, neighbours, levels(std::size_t(count), -1);
    random_lists(count, 0, 24, 21, first, neighbours);
    // The levels as they are when half of the vertices have been found.
    std::vector<int> frontier{0};
    levels[0] = 0;
    int level = 0;
    for (std::size_t found = 1; !frontier.empty(); ++level) {
        if (found + frontier.size() * 12 > std::size_t(count) / 2) break;
        std::vector<int> next;
        for (int v : frontier)
            for (int e = first[v]; e < first[v + 1]; ++e)
                if (levels[neighbours[e]] < 0) {
                    levels[neighbours[e]] = level + 1;
                    next.push_back(neighbours[e]);
                }
        found += next.size();
        frontier = std::move(next);
    }
    KernelCase c;
    c.name = "bfs";
    c.kernel = "bfs_level";
    c.buffers = {bytes(first), bytes(neighbours), bytes(levels), bytes(levels)};
    c.arguments = {buffer(0), buffer(1), buffer(2), buffer(3), scalar(count), scalar(level)};
    set_grid(c, count);
    c.output = 3;
    c.output_is_float = false;
    c.unit = "Mvertex/s";
    c.work = 1e-6 * count;
    c.openmp = [=](std::vector<Bytes>& b) {
        const int *first = as<int>(b[0]), *neighbours = as<int>(b[1]), *levels = as<int>(b[2]);
        int* next = as<int>(b[3]);
#pragma omp parallel for schedule(static, 4096)
        for (int v = 0; v < count; ++v) {
            if (levels[v] != level) continue;
            for (int e = first[v]; e < first[v + 1]; ++e)
                if (levels[neighbours[e]] < 0) __atomic_store_n(&next[neighbours[e]], level + 1, __ATOMIC_RELAXED);
        }
    };
    c.lanes = [=](std::vector<Bytes>& b) {
        lane_forms::bfs_level(as<int>(b[0]), as<int>(b[1]), as<int>(b[2]), as<int>(b[3]), count, level);
    };
    return c;
}

KernelCase spmv_case(int count) {
    std::vector<int> first, columns;
    random_lists(count, 0, 80, 22, first, columns);
    std::mt19937 engine(23);
    std::vector<float> values(columns.size()), x(static_cast<std::size_t>(count));
    for (auto* list : {&values, &x})
        for (float& value : *list) value = float(engine() % 2001) / 1000 - 1;
    KernelCase c;
    c.name = c.kernel = "spmv";
    c.work = 2e-9 * double(columns.size());
    c.buffers = {bytes(first), bytes(columns), bytes(values), bytes(x), Bytes(std::size_t(count) * 4)};
    c.arguments = {buffer(0), buffer(1), buffer(2), buffer(3), buffer(4), scalar(count)};
    set_grid(c, count);
    c.output = 4;
    c.unit = "GFLOP/s";
    c.openmp = [count](std::vector<Bytes>& b) {
        const int *first = as<int>(b[0]), *columns = as<int>(b[1]);
        const float *values = as<float>(b[2]), *x = as<float>(b[3]);
        float* y = as<float>(b[4]);
#pragma omp parallel for schedule(static, 1024)
        for (int row = 0; row < count; ++row) {
            float sum = 0;
            for (int e = first[row]; e < first[row + 1]; ++e) sum = std::fma(values[e], x[columns[e]], sum);
            y[row] = sum;
        }
    };
    c.lanes = [count](std::vector<Bytes>& b) {
        lane_forms::spmv(as<int>(b[0]), as<int>(b[1]), as<float>(b[2]), as<float>(b[3]), as<float>(b[4]), count);
    };
    return c;
}

KernelCase ray_case(int rays) {
    constexpr int size = 1024;
    std::mt19937 engine(24);
    std::vector<int> solid(std::size_t(size) * size);
    for (int& cell : solid) cell = engine() % 200 == 0;
    KernelCase c;
    c.name = "ray casting";
    c.kernel = "cast_rays";
    c.buffers = {bytes(solid), Bytes(std::size_t(rays) * 4)};
    c.arguments = {buffer(0), buffer(1), scalar(size), scalar(rays)};
    set_grid(c, rays);
    c.output = 1;
    c.output_is_float = false;
    c.unit = "Mray/s";
    c.work = 1e-6 * rays;
    c.openmp = [rays](std::vector<Bytes>& b) {
        const int* solid = as<int>(b[0]);
        int* steps = as<int>(b[1]);
#pragma omp parallel for schedule(dynamic, 1024)
        for (int ray = 0; ray < rays; ++ray) {
            float dx = 1.0f - 2.0f * ((ray * 37) & 1023) / 1023.0f, dy = 1.0f - 2.0f * ((ray * 101) & 1023) / 1023.0f;
            if (dx == 0) dx = 0.001f;
            if (dy == 0) dy = 0.001f;
            int cx = size / 2 + (ray & 31), cy = size / 2 + (ray >> 5 & 31);
            const int step_x = dx > 0 ? 1 : -1, step_y = dy > 0 ? 1 : -1;
            const float wide_x = std::fabs(1.0f / dx), wide_y = std::fabs(1.0f / dy);
            float at_x = 0.5f * wide_x, at_y = 0.5f * wide_y;
            int count = 0;
            while (cx >= 0 && cy >= 0 && cx < size && cy < size && solid[cy * size + cx] == 0) {
                if (at_x < at_y) {
                    at_x += wide_x;
                    cx += step_x;
                } else {
                    at_y += wide_y;
                    cy += step_y;
                }
                ++count;
            }
            steps[ray] = count;
        }
    };
    c.lanes = [rays](std::vector<Bytes>& b) { lane_forms::cast_rays(as<int>(b[0]), as<int>(b[1]), size, rays); };
    return c;
}

KernelCase match_case(int count) {
    const std::string pattern = "abacabab";
    const int length = int(pattern.size());
    std::mt19937 engine(25);
    std::vector<unsigned char> text(std::size_t(count) * 64 + pattern.size());
    for (unsigned char& letter : text) letter = static_cast<unsigned char>("aabc"[engine() % 4]);
    KernelCase c;
    c.name = "string matching";
    c.kernel = "match_string";
    c.buffers = {bytes(text), bytes(std::vector<char>(pattern.begin(), pattern.end())), Bytes(std::size_t(count) * 4)};
    c.arguments = {buffer(0), buffer(1), buffer(2), scalar(count), scalar(length)};
    set_grid(c, count);
    c.output = 2;
    c.output_is_float = false;
    c.unit = "MB/s";
    c.work = 64e-6 * count;
    c.openmp = [=](std::vector<Bytes>& b) {
        const auto *text = as<unsigned char>(b[0]), *pattern = as<unsigned char>(b[1]);
        int* found = as<int>(b[2]);
#pragma omp parallel for schedule(static, 1024)
        for (int i = 0; i < count; ++i) {
            int matches = 0;
            for (int start = i * 64; start < i * 64 + 64; ++start) {
                int k = 0;
                while (k < length && text[start + k] == pattern[k]) ++k;
                matches += k == length;
            }
            found[i] = matches;
        }
    };
    c.lanes = [=](std::vector<Bytes>& b) {
        lane_forms::match_string(as<unsigned char>(b[0]), as<unsigned char>(b[1]), as<int>(b[2]), count, length);
    };
    return c;
}

KernelCase path_case(int size) {
    std::vector<float> shapes = {0, 0, 0, -0.5f, 1, 0, 0.8f, 0.8f, 0.7f, 0};
    std::mt19937 engine(26);
    const auto number = [&] { return float(engine() % 1000) / 1000; };
    for (int i = 0; i < 15; ++i) {
        const float radius = 0.3f + 0.3f * number();
        shapes.insert(shapes.end(), {4 * number() - 2, radius - 0.5f + number(), -3 * number(), radius, 0});
        const int material = i % 4;
        shapes.insert(shapes.end(), {float(material), 0.5f + 0.5f * number(), 0.5f + 0.5f * number(),
                                     0.5f + 0.5f * number(), material == 2 ? 1.5f : 0.1f});
    }
    const int count = int(shapes.size()) / SHAPE_WORDS;
    KernelCase c;
    c.name = "path tracing";
    c.kernel = "trace_paths";
    c.buffers = {bytes(shapes), Bytes(std::size_t(size) * size * 4)};
    c.arguments = {buffer(0), buffer(1), scalar(count), scalar(size)};
    c.grid = {unsigned(size) / 32, unsigned(size) / 8, 1};
    c.block = {32, 8, 1};
    c.output = 1;
    c.unit = "Mpath/s";
    c.work = 1e-6 * size * size;
    c.openmp = [=](std::vector<Bytes>& b) {
        const float* shapes = as<float>(b[0]);
        float* picture = as<float>(b[1]);
#pragma omp parallel for schedule(dynamic, 8)
        for (int py = 0; py < size; ++py)
            for (int px = 0; px < size; ++px)
                picture[py * size + px] = path_tracer::trace_path(shapes, count, px, py, size);
    };
    return c;
}

} // namespace

std::vector<KernelCase> all_cases(int scale) {
    return {mandelbrot_case(1024 / (scale > 1 ? 2 : 1)),
            bfs_case((512 << 10) / scale),
            spmv_case((128 << 10) / scale),
            ray_case((256 << 10) / scale),
            match_case((64 << 10) / scale),
            path_case(512 / (scale > 1 ? 2 : 1))};
}

} // namespace bench
