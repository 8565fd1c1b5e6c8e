// SPDX-License-Identifier: Apache-2.0
// Vector code against the portable one, on matrices that the recording (tests/recordings/tensor_core) has few of; and what
// multiply() promises besides bits.
#include "runtime/tensor_core/matrix_product.h"
#include "runtime/tensor_core/product_code.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

// Rounding, flushing, subnormal numbers as zeros; AArch64: default NaNs, too.
#if defined(__x86_64__)
constexpr unsigned modes[] = {0x9fc0, 0xffc0, 0x3f80, 0x5f80, 0x7fc0};
unsigned float_mode() {
    return _mm_getcsr() & ~0x3fu;
}
void set_float_mode(unsigned mode) {
    _mm_setcsr(mode);
}
#else
constexpr unsigned modes[] = {1u << 24, 0xfu << 22, 1u << 22, 2u << 22, 0xdu << 22};
unsigned float_mode() {
    unsigned long mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return static_cast<unsigned>(mode);
}
void set_float_mode(unsigned long mode) {
    asm volatile("msr fpcr, %0" ::"r"(mode));
}
#endif

using namespace ptarmigan::runtime::tensor_core;

std::uint32_t bits_of(float value) {
    return std::bit_cast<std::uint32_t>(value);
}

struct Matrices {
    std::vector<std::uint64_t> a, b, c, d;
    std::vector<std::uint8_t> selected;

    explicit Matrices(const MatrixProduct& p)
        : a(p.m * p.stored()), b(p.n * p.k), c(p.m * p.n), d(p.m * p.n), selected(2 * p.m * p.stored()) {}
    Operands operands() { return {a.data(), b.data(), c.data(), d.data(), selected.data()}; }
};

/// Numbers of a matrix: 2^exponent times something between 1 and 2, by row or column.
struct Kind {
    const char* name;
    int exponent;    ///< about which all lie
    int spread;      ///< of single elements
    int line_spread; ///< of rows or columns
    int zeros;       ///< one in so many elements is zero; 0: none
    int tiny;        ///< one in so many is 2^-90 times as large
    int special;     ///< one in so many is infinite or NaN
};

constexpr Kind kinds[] = {
    {"near 1", 0, 4, 0, 0, 0, 0},          {"ReLU", -3, 6, 0, 2, 0, 0},          {"weights of a softmax", -2, 30, 6, 0, 3, 0},
    {"gradients", -60, 12, 10, 9, 0, 0},   {"far below", -100, 20, 3, 5, 0, 0},  {"large", 60, 20, 20, 5, 7, 0},
    {"near overflow", 62, 3, 2, 0, 0, 0},  {"all exponents", 0, 120, 0, 7, 0, 0}, {"few infinities", 0, 5, 0, 3, 0, 60},
    {"zero rows", 0, 3, 0, 1, 0, 0},
};

void fill(Format format, const Kind& kind, unsigned lines, unsigned k, std::vector<std::uint64_t>& matrix, std::mt19937& random) {
    const auto one_in = [&](int n) { return n != 0 && random() % static_cast<unsigned>(n) == 0; };
    for (unsigned line = 0; line < lines; ++line) {
        const int of_line = kind.line_spread ? static_cast<int>(random() % static_cast<unsigned>(kind.line_spread)) : 0;
        const bool zero_line = kind.zeros == 1 && random() % 2;
        for (unsigned i = 0; i < k; ++i) {
            const int below = static_cast<int>(random() % static_cast<unsigned>(kind.spread));
            float value = std::ldexp(1.0f + static_cast<float>(random() % 8192) / 8192.0f, kind.exponent - of_line - below);
            if (one_in(kind.tiny)) value = std::ldexp(value, -90);
            if (zero_line || (kind.zeros > 1 && one_in(kind.zeros))) value = 0;
            if (random() % 2) value = -value;
            if (one_in(kind.special)) value = random() % 2 ? INFINITY : NAN;
            const std::uint32_t bits = bits_of(value);
            store_element(format == Format::bf16 ? Format::f16 : Format::f32, matrix.data(), line * k + i,
                          format == Format::bf16 ? bits >> 16 : bits);
        }
    }
}

std::vector<Code> vector_codes() {
    std::vector<Code> vectors;
    for (const Code code : codes)
        if (code != Code::portable && can_run(code)) vectors.push_back(code);
    return vectors;
}

void compare(const MatrixProduct& product, Matrices& matrices) {
    multiply_portably(product, matrices.operands());
    const auto expected = matrices.d;
    for (const Code code : vector_codes()) {
        matrices.d.assign(matrices.d.size(), 0xdddddddddddddddd);
        multiplier(code, product)(product, matrices.operands());
        const std::size_t bytes = std::size_t{product.m} * product.n * (product.d == Format::f16 ? 2 : 4);
        const bool same = std::memcmp(expected.data(), matrices.d.data(), bytes) == 0;
        INFO("code " << static_cast<int>(code));
        CHECK(same);
    }
}

} // namespace

TEST_CASE("tensor core: products of bf16 and tf32 of all sizes have the portable code's bits") {
    std::mt19937 random(7);
    const MatrixProduct products[] = {
        {Format::bf16, Format::bf16, Format::f32, Format::f32, Unit::fused, 16, 8, 16},
        {Format::bf16, Format::bf16, Format::f32, Format::f32, Unit::fused, 64, 32, 16},
        {Format::bf16, Format::bf16, Format::f32, Format::f32, Unit::fused, 64, 24, 16},
        {Format::tf32, Format::tf32, Format::f32, Format::f32, Unit::fused, 16, 8, 8},
        {Format::tf32, Format::tf32, Format::f32, Format::f32, Unit::two_fused, 16, 16, 8},
    };
    for (const MatrixProduct& given : products) {
        for (const Kind& a : kinds) {
            for (const Kind& b : kinds) {
                INFO(a.name << " times " << b.name << ", " << given.m << "x" << given.n << "x" << given.k);
                MatrixProduct product = given;
                product.negate_product = given.unit == Unit::fused && random() % 4 == 0;
                product.c_is_zero = random() % 4 == 0;
                Matrices matrices(product);
                fill(product.a, a, product.m, product.k, matrices.a, random);
                fill(product.b, b, product.n, product.k, matrices.b, random);
                const Kind about{"C", a.exponent + b.exponent + static_cast<int>(random() % 60) - 30, 40, 0, 3, 9, 0};
                fill(Format::f32, about, product.m, product.n, matrices.c, random);
                compare(product, matrices);
            }
        }
    }
}

TEST_CASE("tensor core: products far below the largest that cancel but for a subnormal rest") {
    const MatrixProduct product{Format::bf16, Format::bf16, Format::f32, Format::f32, Unit::fused, 16, 16, 16};
    Matrices matrices(product);
    const auto put = [](std::vector<std::uint64_t>& matrix, unsigned line, unsigned k, float value) {
        store_element(Format::f16, matrix.data(), line * 16 + k, bits_of(value) >> 16);
    };
    put(matrices.a, 0, 5, std::ldexp(1.0f, -13)); // what the window follows
    put(matrices.b, 0, 5, std::ldexp(1.0f, -13));
    put(matrices.a, 3, 0, std::ldexp(129.0f, -66)); // (1 - 2^-14) * 2^-118
    put(matrices.b, 7, 0, std::ldexp(127.0f, -66));
    put(matrices.a, 3, 1, std::ldexp(-255.0f, -67)); // -255 * 2^-126
    put(matrices.b, 7, 1, std::ldexp(1.0f, -59));
    multiply_portably(product, matrices.operands());
    std::uint32_t rest = 0;
    std::memcpy(&rest, reinterpret_cast<const char*>(matrices.d.data()) + 4 * (3 * 16 + 7), 4);
    CHECK(rest == 0x007e0000); // 63/64 * 2^-126
    compare(product, matrices);
}

TEST_CASE("tensor core: bits don't depend on the thread's floating-point mode, which stays") {
    std::mt19937 random(11);
    const MatrixProduct products[] = {
        {Format::f16, Format::f16, Format::f32, Format::f32, Unit::fused, 16, 8, 16},
        {Format::f16, Format::f16, Format::f16, Format::f16, Unit::fused, 16, 16, 16},
        {Format::f16, Format::f16, Format::f32, Format::f32, Unit::scalar_f16, 8, 8, 4},
        {Format::e4m3, Format::e5m2, Format::f32, Format::f32, Unit::fp8_by_f16, 16, 8, 32},
        {Format::e5m2, Format::e4m3, Format::f32, Format::f32, Unit::fused_fp8, 64, 16, 32},
        {Format::bf16, Format::bf16, Format::f32, Format::f32, Unit::fused, 16, 8, 8},
        {Format::f64, Format::f64, Format::f64, Format::f64, Unit::chain_f64, 8, 8, 4},
    };
    for (const MatrixProduct& product : products) {
        Matrices matrices(product);
        for (auto* matrix : {&matrices.a, &matrices.b, &matrices.c})
            for (auto& word : *matrix) word = (random() & 0xbfffbfffu) | std::uint64_t{random() & 0xbfffbfffu} << 32; // mostly finite
        for (const Code code : codes) {
            if (!can_run(code)) continue;
            const Multiply multiply = multiplier(code, product);
            multiply_portably(product, matrices.operands());
            const auto expected = matrices.d;
            for (const unsigned mode : modes) {
                const unsigned before = float_mode();
                set_float_mode(mode);
                multiply(product, matrices.operands());
                const unsigned after = float_mode();
                set_float_mode(before);
                const bool same = matrices.d == expected;
                INFO("unit " << static_cast<int>(product.unit) << ", code " << static_cast<int>(code) << ", mode " << mode);
                CHECK(same);
                CHECK(after == mode);
            }
        }
    }
}

TEST_CASE("tensor core: D may be C") {
    std::mt19937 random(13);
    for (const unsigned n : {8u, 16u, 24u}) {
        const MatrixProduct product{Format::bf16, Format::bf16, Format::f32, Format::f32, Unit::fused, 16, static_cast<std::uint16_t>(n), 16};
        Matrices matrices(product);
        fill(Format::bf16, kinds[8], 16, 16, matrices.a, random); // with infinities, which the portable code does
        fill(Format::bf16, kinds[7], n, 16, matrices.b, random);
        fill(Format::f32, kinds[7], 16, n, matrices.c, random);
        multiply_portably(product, matrices.operands());
        for (const Code code : vector_codes()) {
            auto both = matrices.c;
            Operands operands = matrices.operands();
            operands.c = operands.d = both.data();
            multiplier(code, product)(product, operands);
            const bool same = std::memcmp(both.data(), matrices.d.data(), 16 * n * 4) == 0;
            CHECK(same);
        }
    }
}

TEST_CASE("tensor core: fast sums are close to exact ones") {
    std::mt19937 random(17);
    for (const Format format : {Format::bf16, Format::tf32}) {
        for (const unsigned n : {8u, 16u, 24u}) {
            MatrixProduct product{format, format, Format::f32, Format::f32, Unit::fused, 64, static_cast<std::uint16_t>(n), 8};
            product.negate_product = n == 16;
            Matrices matrices(product);
            fill(format, kinds[0], 64, 8, matrices.a, random);
            fill(format, kinds[1], n, 8, matrices.b, random);
            fill(Format::f32, kinds[0], 64, n, matrices.c, random);
            multiply_portably(product, matrices.operands());
            const auto expected = matrices.d;
            for (const Code code : vector_codes()) {
                matrices.d.assign(matrices.d.size(), 0);
                multiplier(code, product, Accuracy::fast)(product, matrices.operands());
                float most = 0;
                for (unsigned i = 0; i < 64 * n; ++i) {
                    float x, y;
                    std::memcpy(&x, reinterpret_cast<const char*>(expected.data()) + 4 * i, 4);
                    std::memcpy(&y, reinterpret_cast<const char*>(matrices.d.data()) + 4 * i, 4);
                    most = std::max(most, std::abs(x - y));
                }
                CHECK(most < 1e-5f);
            }
        }
    }
}

TEST_CASE("tensor core: fast sums are as close as `ptarmigan isa` says") {
    std::mt19937 random(19);
    const auto number = [](Format format, const std::vector<std::uint64_t>& matrix, unsigned i) {
        const auto bits = static_cast<std::uint32_t>(load_element(format == Format::bf16 ? Format::f16 : Format::f32, matrix.data(), i));
        return double(std::bit_cast<float>(format == Format::bf16 ? bits << 16 : format == Format::tf32 ? bits & ~0x1fffu : bits));
    };
    for (const Format format : {Format::bf16, Format::tf32})
        for (const unsigned kind : {0u, 1u, 2u, 3u, 9u}) {
            const MatrixProduct product{format, format, Format::f32, Format::f32, Unit::fused, 16, 8, static_cast<std::uint16_t>(format == Format::bf16 ? 16 : 8)};
            Matrices matrices(product);
            fill(format, kinds[kind], 16, product.k, matrices.a, random);
            fill(format, kinds[kind], 8, product.k, matrices.b, random);
            fill(Format::f32, kinds[kind], 16, 8, matrices.c, random);
            for (const Code code : vector_codes()) {
                multiplier(code, product, Accuracy::fast)(product, matrices.operands());
                unsigned far = 0;
                for (unsigned i = 0; i < 16 * 8; ++i) {
                    double sum = number(Format::f32, matrices.c, i), all = std::abs(sum);
                    for (unsigned k = 0; k < product.k; ++k) {
                        const double term = number(format, matrices.a, i / 8 * product.k + k) * number(format, matrices.b, i % 8 * product.k + k);
                        sum += term;
                        all += std::abs(term);
                    }
                    far += std::abs(number(Format::f32, matrices.d, i) - sum) > (product.k + 2) * std::ldexp(all, -24) + std::ldexp(1.0, -126);
                }
                INFO(kinds[kind].name << " " << static_cast<int>(format));
                CHECK(far == 0);
            }
        }
}
