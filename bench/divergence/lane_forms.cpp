// SPDX-License-Identifier: Apache-2.0
// Counts are multiples of the gang. Loads of lanes that are off read element 0.
#include "bench/divergence/lane_forms.h"

#include <cmath>
#include <type_traits>

namespace bench::lane_forms {
namespace {

#ifdef __AVX512F__
constexpr int width = 16;
#else
constexpr int width = 8;
#endif
using Floats = float __attribute__((vector_size(width * 4)));
using Ints = int __attribute__((vector_size(width * 4))); ///< as a mask: -1 where a lane is on
using Words = long long __attribute__((vector_size(width * 4)));

bool any(Ints mask) {
    const Words words = reinterpret_cast<Words>(mask);
    long long all = 0;
    for (int i = 0; i < width / 2; ++i) all |= words[i];
    return all != 0;
}
Ints lane_numbers() {
    Ints numbers;
    for (int i = 0; i < width; ++i) numbers[i] = i;
    return numbers;
}
template <typename T> auto gather(const T* from, Ints index, Ints mask) {
    std::conditional_t<std::is_same_v<T, float>, Floats, Ints> result;
    index &= mask;
    for (int i = 0; i < width; ++i) result[i] = from[index[i]];
    return result;
}
template <typename V, typename T> V load(const T* from) {
    V result;
    std::memcpy(&result, from, sizeof result);
    return result;
}
template <typename V, typename T> void store(T* to, V value) {
    std::memcpy(to, &value, sizeof value);
}
Floats fma(Floats a, Floats b, Floats c) {
    Floats result;
    for (int i = 0; i < width; ++i) result[i] = std::fma(a[i], b[i], c[i]);
    return result;
}
Floats to_floats(Ints value) {
    return __builtin_convertvector(value, Floats);
}

} // namespace

void mandelbrot(int* out, int size, int limit) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < size; ++py)
        for (int px = 0; px < size; px += width) {
            const Floats cx = -2.0f + 3.0f * to_floats(px + lane_numbers()) / float(size);
            const Floats cy = Floats{} + (-1.5f + 3.0f * float(py) / float(size));
            Floats x{}, y{};
            Ints count{}, on = ~Ints{};
            for (int i = 0; i < limit; ++i) {
                on &= fma(x, x, y * y) < 4.0f;
                if (!any(on)) break;
                const Floats t = fma(x, x, fma(-y, y, cx)), u = fma(2.0f * x, y, cy);
                y = on ? u : y;
                x = on ? t : x;
                count -= on;
            }
            store(out + py * size + px, count);
        }
}

void bfs_level(const int* first, const int* neighbours, const int* levels, int* next, int count, int level) {
#pragma omp parallel for schedule(static, 512)
    for (int gang = 0; gang < count / width; ++gang) {
        const int v = gang * width;
        Ints on = load<Ints>(levels + v) == level;
        if (!any(on)) continue;
        Ints e = load<Ints>(first + v);
        const Ints end = load<Ints>(first + v + 1);
        for (on &= e < end; any(on); on &= e < end) {
            const Ints n = gather(neighbours, e, on), found = on & (gather(levels, n, on) < 0);
            for (int i = 0; i < width; ++i)
                if (found[i]) __atomic_store_n(&next[n[i]], level + 1, __ATOMIC_RELAXED);
            e -= on;
        }
    }
}

void spmv(const int* first, const int* columns, const float* values, const float* x, float* y, int count) {
#pragma omp parallel for schedule(static, 128)
    for (int gang = 0; gang < count / width; ++gang) {
        Ints e = load<Ints>(first + gang * width);
        const Ints end = load<Ints>(first + gang * width + 1);
        Floats sum{};
        for (Ints on = e < end; any(on); on &= e < end) {
            const Floats next = fma(gather(values, e, on), gather(x, gather(columns, e, on), on), sum);
            sum = on ? next : sum;
            e -= on;
        }
        store(y + gang * width, sum);
    }
}

void cast_rays(const int* solid, int* steps, int size, int rays) {
#pragma omp parallel for schedule(dynamic, 128)
    for (int gang = 0; gang < rays / width; ++gang) {
        const Ints ray = gang * width + lane_numbers();
        Floats dx = 1.0f - 2.0f * to_floats((ray * 37) & 1023) / 1023.0f,
               dy = 1.0f - 2.0f * to_floats((ray * 101) & 1023) / 1023.0f;
        dx = dx == 0.0f ? Floats{} + 0.001f : dx;
        dy = dy == 0.0f ? Floats{} + 0.001f : dy;
        Ints cx = size / 2 + (ray & 31), cy = size / 2 + (ray >> 5 & 31), count{};
        const Ints step_x = dx > 0.0f ? Ints{} + 1 : Ints{} - 1, step_y = dy > 0.0f ? Ints{} + 1 : Ints{} - 1;
        const Floats inverse_x = 1.0f / dx, inverse_y = 1.0f / dy;
        const Floats wide_x = inverse_x < 0.0f ? -inverse_x : inverse_x,
                     wide_y = inverse_y < 0.0f ? -inverse_y : inverse_y;
        Floats at_x = 0.5f * wide_x, at_y = 0.5f * wide_y;
        for (Ints on = ~Ints{};;) {
            on &= (cx >= 0) & (cy >= 0) & (cx < size) & (cy < size);
            on &= gather(solid, cy * size + cx, on) == 0;
            if (!any(on)) break;
            const Ints in_x = on & (at_x < at_y), in_y = on & ~in_x;
            at_x = in_x ? at_x + wide_x : at_x;
            at_y = in_y ? at_y + wide_y : at_y;
            cx += step_x & in_x;
            cy += step_y & in_y;
            count -= on;
        }
        store(steps + gang * width, count);
    }
}

void match_string(const unsigned char* text, const unsigned char* pattern, int* found, int count, int length) {
#pragma omp parallel for schedule(static, 128)
    for (int gang = 0; gang < count / width; ++gang) {
        const Ints begin = (gang * width + lane_numbers()) * 64;
        Ints matches{};
        for (int offset = 0; offset < 64; ++offset) {
            Ints on = ~Ints{};
            for (int k = 0; k < length; ++k) {
                on &= gather(text, begin + offset + k, on) == int(pattern[k]);
                if (!any(on)) break;
            }
            matches -= on;
        }
        store(found + gang * width, matches);
    }
}

} // namespace bench::lane_forms
