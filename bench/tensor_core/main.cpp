// SPDX-License-Identifier: Apache-2.0
// Products of one instruction's matrices that stay in the cache, by each kind of code that this CPU can run, and groups
// of such, beside OpenBLAS on the same core: bench_tensor_core [TEXT] (forms whose name contains it).
#include "runtime/tensor_core/product_code.h"
#include "runtime/tensor_core/product_group.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifdef PTARMIGAN_BENCH_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

namespace {

using namespace ptarmigan::runtime::tensor_core;
using enum Format;

/// Operations a second of CPU time of the fastest of some rounds.
template <typename Body> double rate_of(double operations, const Body& body) {
    double best = 0;
    unsigned repetitions = 1;
    for (unsigned round = 0; round < 15;) {
        const std::clock_t start = std::clock();
        for (unsigned i = 0; i < repetitions; ++i) body();
        const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
        if (seconds < 2e-3) {
            repetitions *= 2;
            continue;
        }
        best = std::max(best, operations * repetitions / seconds);
        ++round;
    }
    return best;
}

struct Case {
    const char* name;
    MatrixProduct product;
};

constexpr Case cases[] = {
    {"mma.m16n8k16 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 8, 16}},
    {"mma.m16n8k16 f16 -> f16", {f16, f16, f16, f16, Unit::fused, 16, 8, 16}},
    {"mma.m16n8k8 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 8, 8}},
    {"mma.m16n8k16 bf16 -> f32", {bf16, bf16, f32, f32, Unit::fused, 16, 8, 16}},
    {"mma.m16n8k8 tf32 -> f32", {tf32, tf32, f32, f32, Unit::fused, 16, 8, 8}},
    {"mma.m16n8k32 e4m3 -> f32", {e4m3, e4m3, f32, f32, Unit::fp8_by_f16, 16, 8, 32}},
    {"mma.sp.m16n8k32 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 8, 32, true}},
    {"wmma.m16n16k16 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 16, 16}},
    {"wmma.m16n16k16 f16 -> f16", {f16, f16, f16, f16, Unit::fused, 16, 16, 16}},
    {"wgmma.m64n256k16 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 64, 256, 16}},
    {"wgmma.m64n128k16 bf16 -> f32", {bf16, bf16, f32, f32, Unit::fused, 64, 128, 16}},
    {"wgmma.m64n24k16 bf16 -> f32", {bf16, bf16, f32, f32, Unit::fused, 64, 24, 16}},
    {"wgmma.m64n128k8 tf32 -> f32", {tf32, tf32, f32, f32, Unit::fused, 64, 128, 8}},
    {"wgmma.m64n128k32 e4m3 -> f32", {e4m3, e4m3, f32, f32, Unit::fused_fp8, 64, 128, 32}},
    {"mma.m8n8k4 f16 -> f32", {f16, f16, f32, f32, Unit::scalar_f16, 8, 8, 4}},
    {"mma.m8n8k4 f64", {f64, f64, f64, f64, Unit::chain_f64, 8, 8, 4}},
    {"mma.m16n8k16 f64", {f64, f64, f64, f64, Unit::chain_f64, 16, 8, 16}},
    {"mma.m16n8k32 s8", {s8, s8, s32, s32, Unit::integer, 16, 8, 32}},
    {"mma.m16n8k64 s4", {s4, s4, s32, s32, Unit::integer, 16, 8, 64}},
    {"wmma.m16n16k16 u8", {u8, u8, s32, s32, Unit::integer, 16, 16, 16}},
    {"wgmma.m64n128k32 s8", {s8, s8, s32, s32, Unit::integer, 64, 128, 32}},
    {"mma.m16n8k256 b1", {b1, b1, s32, s32, Unit::bits_xor, 16, 8, 256}},
};

/// Forms whose groups are measured too.
constexpr Case grouped[] = {
    {"group of mma.m16n8k16 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 8, 16}},
    {"group of mma.m16n8k16 f16 -> f16", {f16, f16, f16, f16, Unit::fused, 16, 8, 16}},
    {"group of mma.m16n8k16 bf16 -> f32", {bf16, bf16, f32, f32, Unit::fused, 16, 8, 16}},
    {"group of mma.m16n8k8 tf32 -> f32", {tf32, tf32, f32, f32, Unit::fused, 16, 8, 8}},
    {"group of mma.m16n8k32 e4m3 -> f32", {e4m3, e4m3, f32, f32, Unit::fp8_by_f16, 16, 8, 32}},
    {"group of wmma.m16n16k16 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 16, 16}},
    {"group of mma.m16n8k32 s8", {s8, s8, s32, s32, Unit::integer, 16, 8, 32}},
    {"group of pairs of mma.m16n8k16 f16 -> f32", {f16, f16, f32, f32, Unit::fused, 16, 16, 16}},
    {"group of pairs of mma.m16n8k16 bf16 -> f32", {bf16, bf16, f32, f32, Unit::fused, 16, 16, 16}},
    {"group of pairs of mma.m16n8k8 tf32 -> f32", {tf32, tf32, f32, f32, Unit::fused, 16, 16, 8}},
    {"group of pairs of mma.m16n8k32 e4m3 -> f32", {e4m3, e4m3, f32, f32, Unit::fp8_by_f16, 16, 16, 32}},
    {"group of pairs of mma.m16n8k32 s8", {s8, s8, s32, s32, Unit::integer, 16, 16, 32}},
};

/// Normal deviates, as weights and activations are; random bits of integers.
void fill(Format format, std::size_t elements, std::vector<std::uint64_t>& matrix, std::mt19937& random) {
    matrix.assign(elements, 0);
    std::normal_distribution<float> normal;
    auto* bytes = reinterpret_cast<std::uint8_t*>(matrix.data());
    for (std::size_t i = 0; i < elements; ++i) {
        const float value = normal(random);
        const double wide = value;
        std::uint32_t bits;
        std::memcpy(&bits, &value, 4);
        const std::uint32_t sign = bits >> 31;
        const int exponent = static_cast<int>(bits >> 23 & 255) - 127;
        const auto small = [&](int exponent_bits, int fraction_bits) { // toward zero; tiny ones become zero
            const int field = exponent + (1 << (exponent_bits - 1)) - 1;
            return sign << (exponent_bits + fraction_bits) |
                   (field <= 0 ? 0
                               : static_cast<std::uint32_t>(field) << fraction_bits |
                                     (bits >> (23 - fraction_bits) & ((1u << fraction_bits) - 1)));
        };
        switch (format) {
        case f64: std::memcpy(bytes + i * 8, &wide, 8); break;
        case f16:
            bits = small(5, 10);
            std::memcpy(bytes + i * 2, &bits, 2);
            break;
        case bf16:
            bits >>= 16;
            std::memcpy(bytes + i * 2, &bits, 2);
            break;
        case e4m3: bytes[i] = static_cast<std::uint8_t>(small(4, 3)); break;
        case e5m2: bytes[i] = static_cast<std::uint8_t>(small(5, 2)); break;
        case f32:
        case tf32: std::memcpy(bytes + i * 4, &bits, 4); break;
        default: bits = static_cast<std::uint32_t>(random()); std::memcpy(bytes + i * 4, &bits, 4);
        }
    }
}

#if defined(__x86_64__)
// What the core can do at most: multiply-adds of registers, and products of tiles that stay where they are.
[[gnu::target("avx2,fma")]] void multiply_add_avx2() {
    const __m256 x = _mm256_set1_ps(0.5f);
    __m256 sums[12] = {};
    for (unsigned i = 0; i < 1000; ++i)
#pragma GCC unroll 12
        for (__m256& sum : sums) {
            sum = _mm256_fmadd_ps(sum, x, x);
            __asm__ volatile("" : "+v"(sum));
        }
}
[[gnu::target("avx512f")]] void multiply_add_avx512() {
    const __m512 x = _mm512_set1_ps(0.5f);
    __m512 sums[12] = {};
    for (unsigned i = 0; i < 1000; ++i)
#pragma GCC unroll 12
        for (__m512& sum : sums) {
            sum = _mm512_fmadd_ps(sum, x, x);
            __asm__ volatile("" : "+v"(sum));
        }
}
struct alignas(64) FullTiles {
    std::uint8_t palette = 1, first_row = 0, unused[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
[[gnu::target("amx-tile,amx-bf16")]] void multiply_tiles_of_bf16() {
    const FullTiles shapes;
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
    for (unsigned i = 0; i < 250; ++i)
        __asm__ volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n"
                         "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n tdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::);
    __asm__ volatile("tilerelease" ::: "memory");
}

void print_limits() {
    const auto print = [](bool can, double operations, void (*body)()) {
        if (can)
            std::printf(" %.0f |", rate_of(operations, body));
        else
            std::printf(" - |");
    };
    std::printf("| limit: f32 multiply-adds of registers, bf16 of tiles | | | |");
    print(can_run(Code::avx2), 2e-9 * 12 * 1000 * 8, multiply_add_avx2);
    print(can_run(Code::avx512), 2e-9 * 12 * 1000 * 16, multiply_add_avx512);
    print(can_run(Code::amx), 2e-9 * 1000 * 16 * 16 * 32, multiply_tiles_of_bf16);
    std::printf("\n");
}
#endif

} // namespace

int main(int argc, char** argv) {
    const std::string only = argc > 1 ? argv[1] : "";
    std::printf(
        "| Gop/s of one core | portable | AVX2 | AVX-512 | fast, AVX2 | fast, AVX-512 | fast or bytes, AMX |\n| --- | --- | --- | --- | --- | --- | --- |\n");
#if defined(__x86_64__)
    print_limits();
#endif
    std::mt19937 random(1);
    for (const Case& given : cases) {
        if (std::string(given.name).find(only) == std::string::npos) continue;
        const MatrixProduct& p = given.product;
        const unsigned m = p.m, n = p.n, k = p.k;
        std::vector<std::uint64_t> a, b, c, d(m * n);
        fill(p.a, m * k, a, random);
        fill(p.b, n * k, b, random);
        fill(p.c, m * n, c, random);
        std::vector<std::uint8_t> selected(2 * m * k);
        for (unsigned i = 0; i < m * p.stored(); ++i)
            selected[i] = static_cast<std::uint8_t>(i % p.stored() / 2 * 4 + i % 2 * 2 + random() % 2);
        std::printf("| %s |", given.name);
        const auto print_rate = [&](Code code, Accuracy accuracy) {
            if (!can_run(code)) {
                std::printf(" - |");
                return;
            }
            const Multiply multiply = multiplier(code, p, accuracy);
            const Operands operands{a.data(), b.data(), c.data(), d.data(), selected.data()};
            std::printf(" %.2f |", rate_of(2e-9 * m * n * p.stored(), [&] { multiply(p, operands); }));
        };
        for (const Code code : {Code::portable, Code::avx2, Code::avx512}) print_rate(code, Accuracy::exact);
        for (const Code code : {Code::avx2, Code::avx512}) print_rate(code, Accuracy::fast);
        std::printf(" - |\n");
    }
    // A warp's tile of 64 x 64: two products for each of the accumulators, or eight.
    constexpr unsigned of_a = 4;
    const auto print_group = [&](const std::string& name, const MatrixProduct& p, unsigned depth) {
        if (name.find(only) == std::string::npos) return;
        const unsigned of_b = 64 / p.n;
        std::vector<std::uint64_t> a, b, d;
        fill(p.a, std::size_t{p.m} * p.k * of_a * depth, a, random);
        fill(p.b, std::size_t{p.n} * p.k * of_b * depth, b, random);
        fill(p.c, std::size_t{p.m} * p.n * of_a * of_b, d, random);
        std::vector<ptarmigan::abi::MatrixStep> steps;
        std::vector<ptarmigan::abi::MatrixChain> chains;
        for (unsigned i = 0; i < of_a * of_b; ++i) {
            const auto number = static_cast<std::uint8_t>(i);
            chains.push_back(
                {static_cast<std::uint16_t>(steps.size()), static_cast<std::uint16_t>(depth), number, number});
            for (unsigned k = 0; k < depth; ++k)
                steps.push_back(
                    {static_cast<std::uint8_t>(k * of_a + i / of_b), static_cast<std::uint8_t>(k * of_b + i % of_b)});
        }
        const ProductGroup group{a.data(),     b.data(),     d.data(),      of_a * depth,
                                 of_b * depth, steps.data(), chains.data(), of_a * of_b};
        std::printf("| %s | - |", name.c_str());
        const auto print_rate = [&](Code code, Accuracy accuracy) {
            const MultiplyGroup multiply = can_run(code) ? group_multiplier(code, p, accuracy) : nullptr;
            if (!multiply) {
                std::printf(" - |");
                return;
            }
            std::printf(" %.2f |", rate_of(2e-9 * p.m * p.n * p.k * of_a * of_b * depth, [&] { multiply(p, group); }));
        };
        for (const Accuracy accuracy : {Accuracy::exact, Accuracy::fast})
            for (const Code code : {Code::avx2, Code::avx512}) print_rate(code, accuracy);
        print_rate(Code::amx, Accuracy::fast);
        std::printf("\n");
    };
    for (const Case& given : grouped) print_group(given.name, given.product, 2);
    for (const Case& given : grouped)
        if (given.product.n == 16) print_group(given.name + std::string(", 8 deep"), given.product, 8);
#ifdef PTARMIGAN_BENCH_OPENBLAS
    openblas_set_num_threads(1);
    for (const int size : {256, 1024}) {
        const auto elements = static_cast<std::size_t>(size) * size;
        std::vector<float> a(elements, 1), b(elements, 1), c(elements);
        std::printf("| OpenBLAS sgemm, %d x %d x %d | | | | | %.2f | |\n", size, size, size,
                    rate_of(2e-9 * size * size * size, [&] {
                        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, a.data(), size,
                                    b.data(), size, 0, c.data(), size);
                    }));
    }
#endif
}
