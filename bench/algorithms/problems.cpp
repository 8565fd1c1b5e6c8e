// SPDX-License-Identifier: Apache-2.0
// The problems of portable_kernels.h and their natural OpenMP C++ forms (compiled -O3 for this CPU, no fast-math).
#include "bench/kernels/kernel_case.h"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace bench {
namespace {

using std::uint32_t;

Bytes floats(std::size_t count, unsigned seed, float low = -1.0f, float high = 1.0f) {
    Bytes bytes(count * 4);
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> value(low, high);
    for (std::size_t i = 0; i < count; ++i) as<float>(bytes)[i] = value(engine);
    return bytes;
}

Bytes words(std::size_t count, unsigned seed, uint32_t mask = ~0u) {
    Bytes bytes(count * 4);
    std::mt19937 engine(seed);
    for (std::size_t i = 0; i < count; ++i) as<uint32_t>(bytes)[i] = uint32_t(engine()) & mask;
    return bytes;
}

Bytes zeros(std::size_t count) {
    return Bytes(count * 4);
}

template <typename T> Bytes bytes_of(const std::vector<T>& items) {
    Bytes bytes(items.size() * sizeof(T));
    std::memcpy(bytes.data(), items.data(), bytes.size());
    return bytes;
}

unsigned groups(std::size_t count, unsigned size) {
    return unsigned((count + size - 1) / size);
}

/// What most cases share; `work` in 1e9 of the unit.
KernelCase make(const char* name, std::vector<Bytes> buffers, std::vector<Argument> scalars, int output,
                const char* unit, double work) {
    KernelCase c;
    c.name = c.kernel = name;
    c.buffers = std::move(buffers);
    for (int i = 0; i < int(c.buffers.size()); ++i) c.arguments.push_back(buffer(i));
    c.arguments.insert(c.arguments.end(), scalars.begin(), scalars.end());
    c.output = output;
    c.unit = unit;
    c.work = work;
    return c;
}

void launch(KernelCase& c, std::array<unsigned, 3> grid, std::array<unsigned, 3> block) {
    c.grid = grid;
    c.block = block;
}

KernelCase bitonic_case(int n) {
    KernelCase c = make("bitonic_sort", {words(n, 1)}, {}, 0, "Gkeys/s", 1e-9 * n);
    c.output_is_float = false;
    launch(c, {unsigned(n) / 1024, 1, 1}, {512, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        uint32_t* data = as<uint32_t>(b[0]);
        // The kernel is run on what it has sorted, too; a sort that notices would be no twin.
#pragma omp parallel for
        for (int group = 0; group < n / 1024; ++group) {
            uint32_t* keys = data + group * 1024;
            for (int size = 2; size <= 1024; size <<= 1)
                for (int stride = size / 2; stride > 0; stride >>= 1)
                    for (int t = 0; t < 512; ++t) {
                        const int at = 2 * t - (t & (stride - 1));
                        const uint32_t x = keys[at], y = keys[at + stride];
                        const bool swaps = (x > y) == ((t & (size / 2)) == 0);
                        keys[at] = swaps ? y : x;
                        keys[at + stride] = swaps ? x : y;
                    }
        }
    };
    return c;
}

KernelCase scan_case(int n) {
    KernelCase c = make("block_scan", {words(n, 2), zeros(n)}, {}, 1, "GB/s", 8e-9 * n);
    c.output_is_float = false;
    launch(c, {unsigned(n) / 512, 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        const uint32_t* in = as<uint32_t>(b[0]);
        uint32_t* out = as<uint32_t>(b[1]);
#pragma omp parallel for
        for (int group = 0; group < n / 512; ++group)
            std::exclusive_scan(in + group * 512, in + group * 512 + 512, out + group * 512, 0u);
    };
    return c;
}

KernelCase look_back_case(int n) {
    const int tiles = n / 1024;
    KernelCase c = make("look_back_scan", {words(n, 2), zeros(n), zeros(1 + 3 * std::size_t(tiles))}, {scalar(tiles)},
                        1, "GB/s", 8e-9 * n);
    c.output_is_float = false;
    launch(c, {unsigned(tiles), 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        const uint32_t* in = as<uint32_t>(b[0]);
        uint32_t* out = as<uint32_t>(b[1]);
        // Each thread's sum, then all again from what is before it.
        std::vector<uint32_t> sums;
#pragma omp parallel
        {
            const int threads = omp_get_num_threads(), me = omp_get_thread_num();
#pragma omp single
            sums.assign(std::size_t(threads) + 1, 0);
            const std::size_t first = std::size_t(n) * me / threads, end = std::size_t(n) * (me + 1) / threads;
            sums[me + 1] = std::accumulate(in + first, in + end, 0u);
#pragma omp barrier
#pragma omp single
            std::partial_sum(sums.begin(), sums.end(), sums.begin());
            std::exclusive_scan(in + first, in + end, out + first, sums[me]);
        }
    };
    return c;
}

KernelCase radix_case(int n) {
    const int shift = 4;
    KernelCase c = make("radix_split", {words(n, 3), zeros(n)}, {scalar(shift)}, 1, "Gkeys/s", 1e-9 * n);
    c.output_is_float = false;
    launch(c, {unsigned(n) / 256, 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        const uint32_t* in = as<uint32_t>(b[0]);
        uint32_t* out = as<uint32_t>(b[1]);
#pragma omp parallel for
        for (int group = 0; group < n / 256; ++group) {
            const uint32_t* keys = in + group * 256;
            int counts[16] = {}, place[16];
            for (int i = 0; i < 256; ++i) ++counts[keys[i] >> shift & 15];
            std::exclusive_scan(counts, counts + 16, place, 0);
            for (int i = 0; i < 256; ++i) out[group * 256 + place[keys[i] >> shift & 15]++] = keys[i];
        }
    };
    return c;
}

KernelCase fft_case(int n) {
    std::vector<float> roots(2 * 512);
    for (int k = 0; k < 512; ++k) {
        roots[2 * k] = float(std::cos(-2 * M_PI * k / 1024));
        roots[2 * k + 1] = float(std::sin(-2 * M_PI * k / 1024));
    }
    // Each launch transforms what the last one left: small numbers stay in range for some launches, zeros for all.
    KernelCase c =
        make("fft", {floats(2 * std::size_t(n), 4, -1e-6f, 1e-6f), bytes_of(roots)}, {}, 0, "GFLOP/s", 5e-9 * n * 10);
    c.tolerance = 1e-5f;
    launch(c, {unsigned(n) / 1024, 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        float* data = as<float>(b[0]);
        const float* roots = as<float>(b[1]);
#pragma omp parallel for
        for (int group = 0; group < n / 1024; ++group) {
            float re[1024], im[1024];
            for (uint32_t i = 0; i < 1024; ++i) {
                uint32_t r = 0;
                for (int bit = 0; bit < 10; ++bit) r |= (i >> bit & 1) << (9 - bit);
                re[r] = data[std::size_t(group) * 2048 + 2 * i];
                im[r] = data[std::size_t(group) * 2048 + 2 * i + 1];
            }
            for (int half = 1; half < 1024; half *= 2)
                for (int first = 0; first < 1024; first += 2 * half)
                    for (int k = 0; k < half; ++k) {
                        const int i = first + k, j = i + half, w = k * (512 / half);
                        const float cosine = roots[2 * w], sine = roots[2 * w + 1];
                        const float x = re[j] * cosine - im[j] * sine, y = re[j] * sine + im[j] * cosine;
                        re[j] = re[i] - x;
                        im[j] = im[i] - y;
                        re[i] += x;
                        im[i] += y;
                    }
            for (int i = 0; i < 1024; ++i) {
                data[std::size_t(group) * 2048 + 2 * i] = re[i];
                data[std::size_t(group) * 2048 + 2 * i + 1] = im[i];
            }
        }
    };
    return c;
}

KernelCase rows_case(int w, int h) {
    const std::size_t n = std::size_t(w) * h;
    KernelCase c =
        make("convolve_rows", {floats(n, 5), zeros(n), floats(17, 6)}, {scalar(w)}, 1, "GFLOP/s", 34e-9 * double(n));
    c.tolerance = 1e-5f;
    launch(c, {unsigned(w) / 128, unsigned(h), 1}, {128, 1, 1});
    c.openmp = [w, h](std::vector<Bytes>& b) {
        const float *in = as<float>(b[0]), *weights = as<float>(b[2]);
        float* out = as<float>(b[1]);
#pragma omp parallel for
        for (int y = 0; y < h; ++y) {
            const float* row = in + std::size_t(y) * w;
            for (int x = 0; x < w; ++x) {
                float sum = 0;
                if (x >= 8 && x + 8 < w)
                    for (int k = 0; k < 17; ++k) sum = std::fma(weights[k], row[x + k - 8], sum);
                else
                    for (int k = 0; k < 17; ++k)
                        if (x + k >= 8 && x + k - 8 < w) sum = std::fma(weights[k], row[x + k - 8], sum);
                out[std::size_t(y) * w + x] = sum;
            }
        }
    };
    return c;
}

KernelCase columns_case(int w, int h) {
    const std::size_t n = std::size_t(w) * h;
    KernelCase c = make("convolve_columns", {floats(n, 7), zeros(n), floats(17, 8)}, {scalar(w), scalar(h)}, 1,
                        "GFLOP/s", 34e-9 * double(n));
    c.tolerance = 1e-5f;
    launch(c, {groups(w, 32), groups(h, 8), 1}, {32, 8, 1});
    c.openmp = [w, h](std::vector<Bytes>& b) {
        const float *in = as<float>(b[0]), *weights = as<float>(b[2]);
        float* out = as<float>(b[1]);
#pragma omp parallel for
        for (int y = 0; y < h; ++y) {
            float* row = out + std::size_t(y) * w;
            for (int x = 0; x < w; ++x) row[x] = 0;
            for (int k = std::max(-8, -y); k <= std::min(8, h - 1 - y); ++k)
                for (int x = 0; x < w; ++x) row[x] = std::fma(weights[k + 8], in[std::size_t(y + k) * w + x], row[x]);
        }
    };
    return c;
}

KernelCase bilateral_case(int w, int h) {
    const std::size_t n = std::size_t(w) * h;
    KernelCase c = make("bilateral", {floats(n, 9, 0, 1), zeros(n), floats(49, 10, 0.1f, 1)},
                        {scalar(8.0f), scalar(w), scalar(h)}, 1, "Gtaps/s", 49e-9 * double(n));
    c.tolerance = 1e-4f;
    launch(c, {groups(w, 16), groups(h, 16), 1}, {16, 16, 1});
    c.openmp = [w, h](std::vector<Bytes>& b) {
        const float *in = as<float>(b[0]), *spatial = as<float>(b[2]);
        float* out = as<float>(b[1]);
#pragma omp parallel for
        for (int y = 0; y < h; ++y)
            for (int x = 0; x < w; ++x) {
                const float middle = in[y * w + x];
                float sum = 0, weights = 0;
                for (int dy = -3; dy <= 3; ++dy)
                    for (int dx = -3; dx <= 3; ++dx) {
                        const float value = in[std::clamp(y + dy, 0, h - 1) * w + std::clamp(x + dx, 0, w - 1)];
                        const float d = value - middle;
                        const float weight = spatial[(dy + 3) * 7 + dx + 3] * std::exp(-d * d * 8.0f);
                        sum = std::fma(weight, value, sum);
                        weights += weight;
                    }
                out[y * w + x] = sum / weights;
            }
    };
    return c;
}

KernelCase kmeans_case(int n) {
    const int k = 64;
    KernelCase c = make("kmeans_assign", {floats(4 * std::size_t(n), 11), floats(4 * k, 12), zeros(n)},
                        {scalar(n), scalar(k)}, 2, "GFLOP/s", 12e-9 * n * k);
    c.output_is_float = false;
    launch(c, {groups(n, 256), 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        const float *points = as<float>(b[0]), *centres = as<float>(b[1]);
        int* nearest = as<int>(b[2]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float best = 3e38f;
            for (int at = 0; at < k; ++at) {
                float d = 0;
                for (int j = 0; j < 4; ++j) {
                    const float difference = points[4 * i + j] - centres[4 * at + j];
                    d = std::fma(difference, difference, d);
                }
                if (d < best) best = d, nearest[i] = at;
            }
        }
    };
    return c;
}

KernelCase pagerank_case(int n) {
    std::mt19937 engine(13);
    std::vector<int> rows(n + 1), columns;
    for (int i = 0; i < n; ++i) {
        const int degree = int(64.0 / double(1 + engine() % 63)) + int(engine() % 4); // few with many
        for (int j = 0; j < degree; ++j) columns.push_back(int(engine() % unsigned(n)));
        rows[i + 1] = int(columns.size());
    }
    const double links = double(columns.size());
    KernelCase c = make("pagerank", {bytes_of(rows), bytes_of(columns), floats(n, 14, 0, 1), zeros(n)}, {scalar(n)}, 3,
                        "Glinks/s", 1e-9 * links);
    c.tolerance = 1e-6f;
    launch(c, {groups(n, 256), 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        const int *rows = as<int>(b[0]), *columns = as<int>(b[1]);
        const float* share = as<float>(b[2]);
        float* rank = as<float>(b[3]);
#pragma omp parallel for schedule(dynamic, 1024)
        for (int i = 0; i < n; ++i) {
            float sum = 0;
            for (int j = rows[i]; j < rows[i + 1]; ++j) sum += share[columns[j]];
            rank[i] = 0.15f / n + 0.85f * sum;
        }
    };
    return c;
}

KernelCase alignment_case(int pairs) {
    const std::size_t letters = std::size_t(pairs) * 64;
    KernelCase c = make("smith_waterman", {words(letters, 15, 3), words(letters, 16, 3), zeros(pairs)}, {}, 2,
                        "Gcells/s", 64e-9 * double(letters));
    c.output_is_float = false;
    launch(c, {unsigned(pairs), 1, 1}, {64, 1, 1});
    c.openmp = [pairs](std::vector<Bytes>& b) {
        const int *first = as<int>(b[0]), *second = as<int>(b[1]);
        int* scores = as<int>(b[2]);
#pragma omp parallel for
        for (int pair = 0; pair < pairs; ++pair) {
            int row[65] = {}, highest = 0;
            for (int i = 0; i < 64; ++i) {
                int corner = 0;
                for (int j = 0; j < 64; ++j) {
                    const int match = first[pair * 64 + i] == second[pair * 64 + j] ? 3 : -2;
                    const int score = std::max({corner + match, 0, row[j + 1] - 2, row[j] - 2});
                    corner = row[j + 1];
                    row[j + 1] = score;
                    highest = std::max(highest, score);
                }
            }
            scores[pair] = highest;
        }
    };
    return c;
}

KernelCase lu_case(int tiles) {
    Bytes data = floats(std::size_t(tiles) * 1024, 17);
    for (int tile = 0; tile < tiles; ++tile)
        for (int i = 0; i < 32; ++i) as<float>(data)[tile * 1024 + i * 33] += 64.0f;
    KernelCase c = make("lu_tiles", {data}, {}, 0, "GFLOP/s", 2e-9 / 3 * 32768 * tiles);
    c.tolerance = 1e-5f;
    launch(c, {unsigned(tiles), 1, 1}, {32, 1, 1});
    c.openmp = [tiles](std::vector<Bytes>& b) {
        float* data = as<float>(b[0]);
#pragma omp parallel for
        for (int tile = 0; tile < tiles; ++tile) {
            float* a = data + std::size_t(tile) * 1024;
            for (int k = 0; k < 31; ++k)
                for (int row = k + 1; row < 32; ++row) {
                    a[row * 32 + k] /= a[k * 32 + k];
                    for (int column = k + 1; column < 32; ++column)
                        a[row * 32 + column] = std::fma(-a[row * 32 + k], a[k * 32 + column], a[row * 32 + column]);
                }
        }
    };
    return c;
}

KernelCase cholesky_case(int tiles) {
    Bytes data(std::size_t(tiles) * 4096);
    const Bytes parts = floats(std::size_t(tiles) * 1024, 21);
    for (int tile = 0; tile < tiles; ++tile)
        for (int row = 0; row < 32; ++row)
            for (int column = 0; column < 32; ++column) { // symmetric, large on the diagonal
                const float* part = as<float>(parts) + std::size_t(tile) * 1024;
                as<float>(data)[tile * 1024 + row * 32 + column] =
                    0.5f * (part[row * 32 + column] + part[column * 32 + row]) + (row == column ? 40.0f : 0.0f);
            }
    KernelCase c =
        make("cholesky_tiles", {data, zeros(std::size_t(tiles) * 1024)}, {}, 1, "GFLOP/s", 1e-9 / 3 * 32768 * tiles);
    c.tolerance = 1e-5f;
    launch(c, {unsigned(tiles), 1, 1}, {32, 1, 1});
    c.openmp = [tiles](std::vector<Bytes>& b) {
        const float* in = as<float>(b[0]);
        float* out = as<float>(b[1]);
#pragma omp parallel for
        for (int tile = 0; tile < tiles; ++tile) {
            float a[32][32];
            std::memcpy(a, in + std::size_t(tile) * 1024, sizeof a);
            for (int k = 0; k < 32; ++k) {
                a[k][k] = std::sqrt(a[k][k]);
                for (int row = k + 1; row < 32; ++row) a[row][k] /= a[k][k];
                for (int row = k + 1; row < 32; ++row)
                    for (int column = k + 1; column <= row; ++column)
                        a[row][column] = std::fma(-a[row][k], a[column][k], a[row][column]);
            }
            for (int row = 0; row < 32; ++row)
                for (int column = 0; column < 32; ++column)
                    out[std::size_t(tile) * 1024 + row * 32 + column] = column <= row ? a[row][column] : 0.0f;
        }
    };
    return c;
}

KernelCase cg_case(int w, int h) {
    const std::size_t n = std::size_t(w) * h;
    KernelCase c = make("cg_apply", {floats(n, 18), zeros(n), zeros(n / 256)}, {scalar(w), scalar(h)}, 2, "GB/s",
                        8e-9 * double(n));
    c.tolerance = 1e-4f;
    launch(c, {groups(n, 256), 1, 1}, {256, 1, 1});
    c.openmp = [w, h](std::vector<Bytes>& b) {
        const float* p = as<float>(b[0]);
        float *q = as<float>(b[1]), *parts = as<float>(b[2]);
        const int n = w * h;
#pragma omp parallel for
        for (int part = 0; part < n / 256; ++part) {
            float total = 0;
            for (int i = part * 256; i < part * 256 + 256; ++i) {
                const int x = i % w, y = i / w;
                float sum = 4 * p[i];
                if (x > 0) sum -= p[i - 1];
                if (x < w - 1) sum -= p[i + 1];
                if (y > 0) sum -= p[i - w];
                if (y < h - 1) sum -= p[i + w];
                q[i] = sum;
                total += p[i] * sum;
            }
            parts[part] = total;
        }
    };
    return c;
}

KernelCase fdtd_case(int w, int h) {
    const std::size_t n = std::size_t(w) * h;
    KernelCase c = make("fdtd_e", {floats(n, 19), floats(n, 20), floats(n, 21), floats(n, 22)}, {scalar(w), scalar(h)},
                        0, "GB/s", 20e-9 * double(n));
    c.tolerance = 1e-5f;
    launch(c, {groups(w, 32), groups(h, 8), 1}, {32, 8, 1});
    c.openmp = [w, h](std::vector<Bytes>& b) {
        float* e = as<float>(b[0]);
        const float *hx = as<float>(b[1]), *hy = as<float>(b[2]), *factor = as<float>(b[3]);
#pragma omp parallel for
        for (int y = 1; y < h; ++y)
            for (int x = 1; x < w; ++x) {
                const int i = y * w + x;
                e[i] = e[i] + factor[i] * ((hy[i] - hy[i - 1]) - (hx[i] - hx[i - w]));
            }
    };
    return c;
}

KernelCase lbm_case(int w, int h) {
    const std::size_t n = std::size_t(w) * h;
    KernelCase c = make("lbm", {floats(9 * n, 23, 0.1f, 0.12f), zeros(9 * n)}, {scalar(1.7f), scalar(w), scalar(h)}, 1,
                        "GB/s", 72e-9 * double(n));
    c.tolerance = 1e-5f;
    launch(c, {groups(w, 64), groups(h, 4), 1}, {64, 4, 1});
    c.openmp = [w, h](std::vector<Bytes>& b) {
        const float* f = as<float>(b[0]);
        float* g = as<float>(b[1]);
        const float omega = 1.7f;
        const int n = w * h;
#pragma omp parallel for
        for (int y = 0; y < h; ++y) {
            const int down = (y > 0 ? y - 1 : h - 1) * w, up = (y < h - 1 ? y + 1 : 0) * w, here = y * w;
            for (int x = 0; x < w; ++x) {
                const int l = x > 0 ? x - 1 : w - 1, r = x < w - 1 ? x + 1 : 0, i = here + x;
                const float f0 = f[i], f1 = f[n + here + l], f2 = f[2 * n + down + x], f3 = f[3 * n + here + r],
                            f4 = f[4 * n + up + x], f5 = f[5 * n + down + l], f6 = f[6 * n + down + r],
                            f7 = f[7 * n + up + r], f8 = f[8 * n + up + l];
                const float rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8, inverse = 1 / rho;
                const float vx = (f1 - f3 + f5 - f6 - f7 + f8) * inverse, vy = (f2 - f4 + f5 + f6 - f7 - f8) * inverse;
                const float s = 1 - 1.5f * (vx * vx + vy * vy), p = vx + vy, m = vx - vy;
                const auto relax = [&](float old, float weight, float v) {
                    return old + omega * (rho * weight * (s + 3 * v + 4.5f * v * v) - old);
                };
                g[i] = relax(f0, 4.0f / 9, 0);
                g[n + i] = relax(f1, 1.0f / 9, vx);
                g[2 * n + i] = relax(f2, 1.0f / 9, vy);
                g[3 * n + i] = relax(f3, 1.0f / 9, -vx);
                g[4 * n + i] = relax(f4, 1.0f / 9, -vy);
                g[5 * n + i] = relax(f5, 1.0f / 36, p);
                g[6 * n + i] = relax(f6, 1.0f / 36, -m);
                g[7 * n + i] = relax(f7, 1.0f / 36, -p);
                g[8 * n + i] = relax(f8, 1.0f / 36, m);
            }
        }
    };
    return c;
}

std::vector<uint32_t> sha_constants() {
    // The first 32 bits of the fractions of the cube roots of the first 64 primes.
    std::vector<uint32_t> k;
    for (int p = 2; k.size() < 64; ++p) {
        bool prime = true;
        for (int d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
        if (prime) k.push_back(uint32_t(std::int64_t(std::cbrt((long double)p) * 4294967296.0L)));
    }
    return k;
}

KernelCase sha_case(int n) {
    KernelCase c =
        make("sha256", {words(16 * std::size_t(n), 24), bytes_of(sha_constants()), zeros(8 * std::size_t(n))},
             {scalar(n)}, 2, "Gblocks/s", 1e-9 * n);
    c.output_is_float = false;
    launch(c, {groups(n, 128), 1, 1}, {128, 1, 1});
    c.openmp = [n](std::vector<Bytes>& bytes) {
        const uint32_t *messages = as<uint32_t>(bytes[0]), *k = as<uint32_t>(bytes[1]);
        uint32_t* digests = as<uint32_t>(bytes[2]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            static const uint32_t start[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                              0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
            uint32_t w[64], s[8];
            for (int j = 0; j < 16; ++j) w[j] = messages[j * n + i];
            for (int j = 16; j < 64; ++j) {
                const uint32_t p = w[j - 15], q = w[j - 2];
                w[j] = w[j - 16] + (std::rotr(p, 7) ^ std::rotr(p, 18) ^ p >> 3) + w[j - 7] +
                       (std::rotr(q, 17) ^ std::rotr(q, 19) ^ q >> 10);
            }
            std::copy(start, start + 8, s);
            for (int j = 0; j < 64; ++j) {
                const uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                                    ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[j] + w[j];
                const uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                                    ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
                for (int m = 7; m > 0; --m) s[m] = s[m - 1];
                s[4] += t1;
                s[0] = t1 + t2;
            }
            for (int m = 0; m < 8; ++m) digests[m * n + i] = s[m] + start[m];
        }
    };
    return c;
}

KernelCase aes_case(int n) {
    KernelCase c =
        make("aes_rounds", {words(4 * std::size_t(n), 25), zeros(4 * std::size_t(n)), words(256, 26), words(44, 27)},
             {scalar(n)}, 1, "GB/s", 16e-9 * n);
    c.output_is_float = false;
    launch(c, {groups(n, 256), 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& bytes) {
        const uint32_t *in = as<uint32_t>(bytes[0]), *box = as<uint32_t>(bytes[2]), *keys = as<uint32_t>(bytes[3]);
        uint32_t* out = as<uint32_t>(bytes[1]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            uint32_t s[4];
            for (int j = 0; j < 4; ++j) s[j] = in[4 * i + j] ^ keys[j];
            for (int round = 1; round <= 10; ++round) {
                uint32_t next[4];
                for (int j = 0; j < 4; ++j)
                    next[j] = box[s[j] & 255] ^ std::rotl(box[s[(j + 1) & 3] >> 8 & 255], 8) ^
                              std::rotl(box[s[(j + 2) & 3] >> 16 & 255], 16) ^
                              std::rotl(box[s[(j + 3) & 3] >> 24], 24) ^ keys[4 * round + j];
                std::copy(next, next + 4, s);
            }
            std::copy(s, s + 4, out + 4 * i);
        }
    };
    return c;
}

KernelCase softmax_case(int rows, int columns) {
    const std::size_t n = std::size_t(rows) * columns;
    KernelCase c = make("softmax", {floats(n, 28, -4, 4), zeros(n)}, {scalar(columns)}, 1, "GB/s", 8e-9 * double(n));
    c.tolerance = 1e-4f;
    launch(c, {unsigned(rows), 1, 1}, {128, 1, 1});
    c.openmp = [rows, columns](std::vector<Bytes>& b) {
        const float* all = as<float>(b[0]);
        float* out = as<float>(b[1]);
#pragma omp parallel for
        for (int row = 0; row < rows; ++row) {
            const float* in = all + std::size_t(row) * columns;
            float *to = out + std::size_t(row) * columns, highest = -3e38f, sum = 0;
            for (int i = 0; i < columns; ++i) highest = std::max(highest, in[i]);
            for (int i = 0; i < columns; ++i) sum += to[i] = std::exp(in[i] - highest);
            for (int i = 0; i < columns; ++i) to[i] *= 1 / sum;
        }
    };
    return c;
}

KernelCase norm_case(int rows, int columns) {
    const std::size_t n = std::size_t(rows) * columns;
    KernelCase c = make("layer_norm", {floats(n, 29), floats(columns, 30), floats(columns, 31), zeros(n)},
                        {scalar(columns)}, 3, "GB/s", 8e-9 * double(n));
    c.tolerance = 1e-4f;
    launch(c, {unsigned(rows), 1, 1}, {128, 1, 1});
    c.openmp = [rows, columns](std::vector<Bytes>& b) {
        const float *all = as<float>(b[0]), *gain = as<float>(b[1]), *bias = as<float>(b[2]);
        float* out = as<float>(b[3]);
#pragma omp parallel for
        for (int row = 0; row < rows; ++row) {
            const float* in = all + std::size_t(row) * columns;
            float sum = 0, square = 0;
            for (int i = 0; i < columns; ++i) sum += in[i], square = std::fma(in[i], in[i], square);
            const float mean = sum / columns, scale = 1 / std::sqrt(square / columns - mean * mean + 1e-5f);
            for (int i = 0; i < columns; ++i)
                out[std::size_t(row) * columns + i] = (in[i] - mean) * scale * gain[i] + bias[i];
        }
    };
    return c;
}

KernelCase attention_case(int heads, int n) {
    const std::size_t size = std::size_t(heads) * n * 32;
    constexpr float scale = 0.1767767f;
    KernelCase c = make("attention", {floats(size, 32), floats(size, 33), floats(size, 34), zeros(size)},
                        {scalar(n), scalar(scale)}, 3, "GFLOP/s", 128e-9 * heads * n * n);
    c.tolerance = 1e-4f;
    launch(c, {unsigned(n) / 64, unsigned(heads), 1}, {64, 1, 1});
    c.openmp = [heads, n](std::vector<Bytes>& b) {
        const float *q = as<float>(b[0]), *k = as<float>(b[1]), *v = as<float>(b[2]);
        float* out = as<float>(b[3]);
#pragma omp parallel for
        for (int i = 0; i < heads * n; ++i) {
            const std::size_t head = std::size_t(i / n) * n * 32, at = std::size_t(i) * 32;
            float query[32], sum[32] = {}, highest = -3e38f, total = 0;
            for (int d = 0; d < 32; ++d) query[d] = q[at + d] * scale;
            for (int j = 0; j < n; ++j) {
                float s = 0;
                for (int d = 0; d < 32; ++d) s = std::fma(query[d], k[head + j * 32 + d], s);
                const float above = std::max(highest, s), old = std::exp(highest - above), e = std::exp(s - above);
                total = total * old + e;
                for (int d = 0; d < 32; ++d) sum[d] = std::fma(e, v[head + j * 32 + d], sum[d] * old);
                highest = above;
            }
            for (int d = 0; d < 32; ++d) out[at + d] = sum[d] / total;
        }
    };
    return c;
}

KernelCase bytes_case(int n, int words_) {
    KernelCase c =
        make("gemm_bytes",
             {words(std::size_t(n) * words_, 35), words(std::size_t(n) * words_, 36), zeros(std::size_t(n) * n)},
             {scalar(n), scalar(words_)}, 2, "GOP/s", 8e-9 * n * n * words_);
    c.output_is_float = false;
    launch(c, {unsigned(n) / 16, unsigned(n) / 16, 1}, {16, 16, 1});
    c.openmp = [n, words_](std::vector<Bytes>& b) {
        const std::int8_t *a = as<std::int8_t>(b[0]), *t = as<std::int8_t>(b[1]);
        int* out = as<int>(b[2]);
#pragma omp parallel for
        for (int row = 0; row < n; ++row)
            for (int column = 0; column < n; ++column) {
                int sum = 0;
                for (int k = 0; k < 4 * words_; ++k)
                    sum += a[std::size_t(row) * 4 * words_ + k] * t[std::size_t(column) * 4 * words_ + k];
                out[std::size_t(row) * n + column] = sum;
            }
    };
    return c;
}

/// Halves of magnitude 2^-4 to 1.
uint32_t random_half(std::mt19937& engine) {
    return (uint32_t(engine()) & 0x83ff) | (11 + uint32_t(engine()) % 4) << 10;
}

float half_value(std::uint16_t half) {
    return std::bit_cast<float>((uint32_t(half) & 0x8000) << 16 | (((uint32_t(half) & 0x7fff) << 13) + (112u << 23)));
}

KernelCase half_case(int rows, int columns) {
    std::mt19937 engine(37);
    std::vector<std::uint16_t> matrix(std::size_t(rows) * columns);
    for (std::uint16_t& half : matrix) half = std::uint16_t(random_half(engine));
    KernelCase c = make("gemv_half", {bytes_of(matrix), floats(columns, 38), zeros(rows)},
                        {scalar(rows), scalar(columns)}, 2, "GB/s", 2e-9 * rows * columns);
    c.tolerance = 1e-4f;
    launch(c, {groups(rows, 256), 1, 1}, {256, 1, 1});
    c.openmp = [rows, columns](std::vector<Bytes>& b) {
        const std::uint16_t* a = as<std::uint16_t>(b[0]);
        const float* x = as<float>(b[1]);
        float* y = as<float>(b[2]);
        const int piece = 256;
#pragma omp parallel for
        for (int first = 0; first < rows; first += piece) {
            for (int row = first; row < first + piece; ++row) y[row] = 0;
            for (int k = 0; k < columns; ++k)
                for (int row = first; row < first + piece; ++row)
                    y[row] = std::fma(half_value(a[std::size_t(k) * rows + row]), x[k], y[row]);
        }
    };
    return c;
}

KernelCase nearest_case(int n) {
    KernelCase c = make("nearest", {floats(2 * std::size_t(n), 39), floats(2 * std::size_t(n), 40), zeros(n)},
                        {scalar(n)}, 2, "Gpairs/s", 1e-9 * n * n);
    c.output_is_float = false;
    c.allowed_mismatches = 1e-3; // of two points as near as each other
    launch(c, {unsigned(n) / 256, 1, 1}, {256, 1, 1});
    c.openmp = [n](std::vector<Bytes>& b) {
        const float *points = as<float>(b[0]), *queries = as<float>(b[1]);
        int* indices = as<int>(b[2]);
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float best = 3e38f;
            for (int j = 0; j < n; ++j) {
                const float dx = points[2 * j] - queries[2 * i], dy = points[2 * j + 1] - queries[2 * i + 1];
                const float d = std::fma(dx, dx, dy * dy);
                if (d < best) best = d, indices[i] = j;
            }
        }
    };
    return c;
}

} // namespace

std::vector<KernelCase> all_cases(int scale) {
    const int side = scale >= 16 ? 4 : scale >= 4 ? 2 : 1;
    return {
        bitonic_case((4 << 20) / scale),
        scan_case((8 << 20) / scale),
        look_back_case((8 << 20) / scale),
        radix_case((4 << 20) / scale),
        fft_case((2 << 20) / scale),
        rows_case(2048 / side, 2048 / side),
        columns_case(2048 / side, 2048 / side),
        bilateral_case(1024 / side, 512 / side),
        kmeans_case((1 << 20) / scale),
        pagerank_case((512 << 10) / scale),
        alignment_case(16384 / scale),
        lu_case(8192 / scale),
        cholesky_case(8192 / scale),
        cg_case(4096 / side, 2048 / side),
        fdtd_case(2048 / side, 2048 / side),
        lbm_case(1024 / side, 1024 / side),
        sha_case((512 << 10) / scale),
        aes_case((1 << 20) / scale),
        softmax_case(4096 / scale, 1024),
        norm_case(4096 / scale, 1024),
        attention_case(8, 1024 / side),
        bytes_case(512 / side, 256),
        half_case(4096, 4096 / scale),
        nearest_case(8192 / side),
    };
}

} // namespace bench
