// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace bench {
namespace {

#ifdef __AVX512F__
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
typedef float Vector __attribute__((vector_size(vector_bytes)));

template <class Run> double fastest(int rounds, Run run) {
    double best = 1e30;
    for (int round = 0; round < rounds; ++round) {
        auto start = std::chrono::steady_clock::now();
        run();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

/// Twelve independent chains hide the latency of the unit on every current CPU.
double fma_rate() {
    constexpr int chains = 12, repeats = 400000;
    double threads = 0;
    double time = fastest(7, [&] {
        double count = 0;
#pragma omp parallel reduction(+ : count)
        {
            Vector sums[chains] = {}, factor = Vector{} + 0.999f, addend = Vector{} + 0.001f;
            for (int i = 0; i < repeats; ++i)
                for (int c = 0; c < chains; ++c) {
                    sums[c] = sums[c] * factor + addend;
                    asm volatile("" : "+v"(sums[c]));
                }
            count += 1;
        }
        threads = count;
    });
    return threads * 2.0 * chains * repeats * (vector_bytes / 4) / time * 1e-9;
}

double triad_rate() {
    constexpr std::ptrdiff_t count = 16 << 20;
    std::vector<float> a(count), b(count, 1.0f), c(count, 2.0f);
    double time = fastest(9, [&] {
        float* to = a.data();
        const float *x = b.data(), *y = c.data();
#pragma omp parallel for
        for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = x[i] + 3.0f * y[i];
    });
    return 12.0 * count / time * 1e-9;
}

} // namespace

MachineLimits measure_limits() {
    return {fma_rate(), triad_rate()};
}

} // namespace bench
