// SPDX-License-Identifier: Apache-2.0
// Groups of products against the same products one after the other by the portable code.
#include "runtime/tensor_core/product_group.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

namespace {

using namespace ptarmigan::runtime::tensor_core;
namespace abi = ptarmigan::abi;
using enum Format;

constexpr MatrixProduct forms[] = {
    {f16, f16, f32, f32, Unit::fused, 16, 8, 16},        {f16, f16, f16, f16, Unit::fused, 16, 8, 16},
    {f16, f16, f32, f32, Unit::fused, 16, 8, 8},         {bf16, bf16, f32, f32, Unit::fused, 16, 8, 16},
    {bf16, bf16, f32, f32, Unit::fused, 32, 8, 16},      {tf32, tf32, f32, f32, Unit::fused, 16, 8, 8},
    {tf32, tf32, f32, f32, Unit::fused, 16, 8, 4},       {tf32, tf32, f32, f32, Unit::two_fused, 16, 16, 8},
    {f16, f16, f32, f32, Unit::fused, 16, 16, 16},       {f16, f16, f16, f16, Unit::fused, 8, 32, 16},
    {e4m3, e5m2, f32, f32, Unit::fp8_by_f16, 16, 8, 32}, {e4m3, e4m3, f16, f16, Unit::fp8_by_f16, 16, 8, 32},
    {e5m2, e4m3, f32, f32, Unit::fp8_by_f16, 16, 8, 16}, {s8, s8, s32, s32, Unit::integer, 16, 8, 32},
    {u8, s8, s32, s32, Unit::integer, 16, 8, 16},        {s8, u8, s32, s32, Unit::integer, 8, 8, 16},
    {s4, u4, s32, s32, Unit::integer, 16, 8, 64},        {u8, u8, s32, s32, Unit::integer, 16, 16, 16},
    {bf16, bf16, f32, f32, Unit::fused, 16, 16, 16},     {tf32, tf32, f32, f32, Unit::fused, 16, 16, 8},
    {e4m3, e5m2, f32, f32, Unit::fp8_by_f16, 16, 16, 32}, {s8, s8, s32, s32, Unit::integer, 16, 16, 32},
    {u8, s8, s32, s32, Unit::integer, 16, 16, 16},       {f16, f16, f16, f16, Unit::fused, 16, 16, 16},
    {f64, f64, f64, f64, Unit::chain_f64, 16, 8, 8},     {b1, b1, s32, s32, Unit::bits_xor, 16, 8, 256},
};

enum class Kind { bits, near_one };

/// A matrix of random bits, or of numbers that lie near each other, by the bytes of its elements.
void fill(Format format, Kind kind, std::vector<std::uint64_t>& words, std::size_t bytes, std::mt19937& random) {
    words.assign(bytes / 8 + 1, 0);
    auto* to = reinterpret_cast<std::uint8_t*>(words.data());
    const bool is_small_float = format == e4m3 || format == e5m2;
    for (std::size_t i = 0; i < bytes; i += 4) {
        std::uint32_t word = static_cast<std::uint32_t>(random());
        if (kind != Kind::bits) {
            const float value = std::ldexp(1.0f + static_cast<float>(random() % 1024) / 1024, -static_cast<int>(random() % 8));
            if (format == f32 || format == tf32) {
                std::memcpy(&word, &value, 4);
                word |= random() % 2 << 31;
            } else if (format == bf16) {
                word = (word & 0x807f807f) | 0x3f003f00 | random() % 2 << 7 | random() % 2 << 24;
            } else if (format == f16) {
                word = (word & 0x83ff83ff) | 0x38003800 | random() % 2 << 10 | random() % 2 << 27;
            } else if (is_small_float) {
                word = (word & 0x87878787) | 0x30303030;
            }
        }
        std::memcpy(to + i, &word, bytes - i < 4 ? bytes - i : 4);
    }
}

/// Numbers as programs have them, and worse: about which exponent, how far apart, which part is zero or 2^-40 as large,
/// which is infinite or NaN (one in so many; 0: none).
struct Spread {
    const char* name;
    int exponent, spread, zeros, tiny, special;
};
constexpr Spread spreads[] = {
    {"near 1", 0, 3, 0, 0, 0},        {"normal deviates", 0, 9, 0, 0, 0}, {"ReLU", -2, 8, 2, 0, 0}, {"softmax", -1, 24, 5, 3, 0},
    {"small", -13, 12, 9, 0, 0},      {"gradients", -40, 30, 9, 9, 0},    {"large", 13, 4, 0, 5, 0}, {"huge", 60, 30, 7, 7, 0},
    {"all exponents", 100, 230, 7, 0, 0}, {"zeros", 0, 1, 1, 0, 0},       {"specials", 0, 6, 4, 0, 40},
};

/// `value` cut to a format; what is too large becomes the largest number, special ones stay.
std::uint32_t bits_of(Format format, float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (format == f32 || format == tf32) return bits;
    if (format == bf16) return bits >> 16;
    const bool is_half = format == f16, has_infinity = format != e4m3;
    const int exponent_bits = is_half || format == e5m2 ? 5 : 4, fraction_bits = is_half ? 10 : format == e5m2 ? 2 : 3;
    const int bias = (1 << (exponent_bits - 1)) - 1, top = has_infinity ? (1 << exponent_bits) - 2 : 15;
    const std::uint32_t sign = bits >> 31 << (exponent_bits + fraction_bits);
    if (std::isnan(value)) return sign | ((1u << (exponent_bits + fraction_bits)) - 1);
    if (std::isinf(value) && has_infinity) return sign | ((1u << exponent_bits) - 1) << fraction_bits;
    const double units = std::floor(std::ldexp(std::abs(double{value}), bias - 1 + fraction_bits)); // of subnormal numbers
    if (units < double(1 << fraction_bits)) return sign | static_cast<std::uint32_t>(units);
    const int field = std::ilogb(value) + bias;
    const auto fraction = bits >> (23 - fraction_bits) & ((1u << fraction_bits) - 1);
    const std::uint32_t most = static_cast<std::uint32_t>(top) << fraction_bits | (has_infinity ? (1u << fraction_bits) - 1 : 6);
    return sign | std::min(most, field > top ? most : static_cast<std::uint32_t>(field) << fraction_bits | fraction);
}

void fill(Format format, const Spread& kind, std::vector<std::uint64_t>& words, std::size_t bytes, std::mt19937& random) {
    words.assign(bytes / 8 + 1, 0);
    auto* to = reinterpret_cast<std::uint8_t*>(words.data());
    const auto one_in = [&](int n) { return n != 0 && random() % static_cast<unsigned>(n) == 0; };
    const std::size_t size = format == f32 || format == tf32 ? 4 : format == f16 || format == bf16 ? 2 : 1;
    for (std::size_t i = 0; i < bytes; i += size) {
        float value = 1.0f + static_cast<float>(random() >> 9) / 8388608.0f;
        value = std::ldexp(value, kind.exponent - static_cast<int>(random() % static_cast<unsigned>(kind.spread)));
        if (one_in(kind.tiny)) value = std::ldexp(value, -40);
        if (one_in(kind.zeros)) value = 0;
        if (one_in(kind.special)) value = random() % 2 ? INFINITY : NAN;
        const std::uint32_t bits = bits_of(format, random() % 2 ? -value : value);
        std::memcpy(to + i, &bits, size);
    }
}

struct Group {
    std::vector<std::uint64_t> a, b, accumulators;
    std::vector<abi::MatrixStep> steps;
    std::vector<abi::MatrixChain> chains;
    ProductGroup group{};

    Group(const MatrixProduct& product, Kind kind, std::mt19937& random) : Group(product, kind, kind, kind, random) {}

    template <class KindA, class KindB, class KindC>
    Group(const MatrixProduct& product, KindA kind_a, KindB kind_b, KindC kind_c, std::mt19937& random) {
        // A tile of a warp, or steps and chains of any matrices and accumulators.
        const bool is_tile = random() % 2 == 0;
        const unsigned of_a = 1 + random() % 3, of_b = 1 + random() % 4, depth = 1 + random() % 5;
        group.a_count = is_tile ? of_a * depth : 1 + random() % 4;
        group.b_count = is_tile ? of_b * depth : 1 + random() % 5;
        const unsigned count = is_tile ? of_a * of_b : 1 + random() % 8;
        fill(product.a, kind_a, a, bytes_of_a(product) * group.a_count, random);
        fill(product.b, kind_b, b, bytes_of_b(product) * group.b_count, random);
        fill(product.c, kind_c, accumulators, bytes_of_accumulator(product) * count, random);
        for (unsigned i = 0; i < count; ++i) {
            const auto steps_of_chain = static_cast<std::uint16_t>(is_tile ? depth : 1 + random() % 4);
            chains.push_back({static_cast<std::uint16_t>(steps.size()), steps_of_chain, static_cast<std::uint8_t>(is_tile ? i : random() % count),
                              static_cast<std::uint8_t>(i)});
            for (unsigned j = 0; j < steps_of_chain; ++j)
                steps.push_back({static_cast<std::uint8_t>(is_tile ? j * of_a + i / of_b : random() % group.a_count),
                                 static_cast<std::uint8_t>(is_tile ? j * of_b + i % of_b : random() % group.b_count)});
        }
        group.a = a.data();
        group.b = b.data();
        group.steps = steps.data();
        group.chains = chains.data();
        group.chain_count = count;
    }
    ProductGroup on(std::vector<std::uint64_t>& results) const {
        ProductGroup copy = group;
        copy.accumulators = results.data();
        return copy;
    }
};

std::vector<Code> vector_codes() {
    std::vector<Code> vectors;
    for (const Code code : {Code::avx2, Code::avx512, Code::amx, Code::neon})
        if (can_run(code)) vectors.push_back(code);
    return vectors;
}

} // namespace

TEST_CASE("tensor core: groups have the bits of their products one after the other") {
    std::mt19937 random(1);
    for (const MatrixProduct& form : forms)
        for (const bool saturate : {false, true})
            for (const Kind kind : {Kind::bits, Kind::near_one, Kind::near_one, Kind::near_one}) {
                MatrixProduct product = form;
                if (saturate && product.unit != Unit::integer) continue;
                product.saturate = saturate;
                const Group group(product, kind, random);
                auto expected = group.accumulators;
                multiply_one_by_one(multiply_portably, product, group.on(expected));
                for (const Code code : vector_codes()) {
                    auto results = group.accumulators;
                    INFO("form " << &form - forms << " code " << static_cast<int>(code) << " kind " << static_cast<int>(kind));
                    if (const MultiplyGroup multiply = group_multiplier(code, product, Accuracy::exact))
                        multiply(product, group.on(results));
                    else
                        multiply_one_by_one(multiplier(code, product), product, group.on(results));
                    const bool same = results == expected;
                    CHECK(same);
                }
            }
}

TEST_CASE("tensor core: groups of numbers of all sizes have the portable code's bits") {
    std::mt19937 random(3);
    const bool is_long = std::getenv("PTARMIGAN_LONG_TESTS") != nullptr;
    for (unsigned i = 0; i < std::size(forms) * (is_long ? 20 : 1); ++i) {
        const MatrixProduct& product = forms[i % std::size(forms)];
        if (product.a == f64 || product.unit == Unit::integer || product.unit == Unit::bits_xor) continue;
        for (const Spread& of_a : spreads)
            for (const Spread& of_b : spreads) {
                if (!is_long && random() % 3 != 0) continue;
                const Spread of_c{"C", of_a.exponent + of_b.exponent + static_cast<int>(random() % 40) - 20, 1 + static_cast<int>(random() % 50),
                                  static_cast<int>(random() % 4), 9, of_a.special ? 50 : 0};
                const Group group(product, of_a, of_b, of_c, random);
                auto expected = group.accumulators;
                multiply_one_by_one(multiply_portably, product, group.on(expected));
                for (const Code code : vector_codes()) {
                    auto results = group.accumulators;
                    INFO("form " << &product - forms << " code " << static_cast<int>(code) << ": " << of_a.name << " times " << of_b.name);
                    const MultiplyGroup multiply = group_multiplier(code, product, Accuracy::exact);
                    REQUIRE(multiply);
                    multiply(product, group.on(results));
                    const bool same = results == expected;
                    CHECK(same);
                    results = group.accumulators;
                    multiply_one_by_one(multiplier(code, product), product, group.on(results));
                    const bool also = results == expected;
                    CHECK(also);
                }
            }
    }
}

namespace {

double number(Format format, const std::vector<std::uint64_t>& matrix, std::size_t i) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(matrix.data());
    if (format == f32 || format == tf32 || format == bf16) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes + i * (format == bf16 ? 2 : 4), format == bf16 ? 2 : 4);
        word = format == bf16 ? word << 16 : format == tf32 ? word & ~0x1fffu : word;
        float value;
        std::memcpy(&value, &word, 4);
        return value;
    }
    std::uint16_t bits = bytes[i];
    if (format == f16) std::memcpy(&bits, bytes + 2 * i, 2);
    const int fraction_bits = format == f16 ? 10 : format == e5m2 ? 2 : 3, exponent_bits = format == e4m3 ? 4 : 5;
    const int field = bits >> fraction_bits & ((1 << exponent_bits) - 1), fraction = bits & ((1 << fraction_bits) - 1);
    const int significand = field == 0 ? fraction : fraction | 1 << fraction_bits;
    const double value = std::ldexp(significand, std::max(field, 1) - (1 << (exponent_bits - 1)) + 1 - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -value : value;
}

/// How many results of a group's last chains are further from the exact sum than `ptarmigan isa` says. Each chain has
/// its own accumulator.
unsigned far_of(const MatrixProduct& p, const Group& group, const std::vector<std::uint64_t>& results) {
    unsigned far = 0;
    const std::size_t size = std::size_t{p.m} * p.n;
    for (const abi::MatrixChain& chain : group.chains)
        for (unsigned row = 0; row < p.m; ++row)
            for (unsigned column = 0; column < p.n; ++column) {
                const std::size_t at = chain.d * size + row * p.n + column;
                double sum = number(f32, group.accumulators, at), all = std::abs(sum);
                for (unsigned step = 0; step < chain.count; ++step) {
                    const abi::MatrixStep& matrices = group.steps[chain.first + step];
                    for (unsigned k = 0; k < p.k; ++k) {
                        const double term = number(p.a, group.a, (std::size_t{matrices.a} * p.m + row) * p.k + k) *
                                            number(p.b, group.b, (std::size_t{matrices.b} * p.n + column) * p.k + k);
                        sum += term;
                        all += std::abs(term);
                    }
                }
                const double bound = (chain.count * (p.k + 2)) * std::ldexp(all, -24) + std::ldexp(1.0, -126);
                far += !(std::abs(number(f32, results, at) - sum) <= bound);
            }
    return far;
}

} // namespace

TEST_CASE("tensor core: fast groups, and products of wgmma, are as close as `ptarmigan isa` says") {
    std::mt19937 random(2);
    std::vector<MatrixProduct> products(std::begin(forms), std::end(forms));
    for (const std::uint16_t n : {std::uint16_t{8}, std::uint16_t{24}, std::uint16_t{64}}) {
        products.push_back({f16, f16, f32, f32, Unit::fused, 16, n, 16});
        products.push_back({bf16, bf16, f32, f32, Unit::fused, 64, n, 16});
        products.push_back({tf32, tf32, f32, f32, Unit::fused, 64, n, 8});
        products.push_back({e4m3, e5m2, f32, f32, Unit::fused_fp8, 16, n, 32});
    }
    for (const MatrixProduct& product : products) {
        if (product.d != f32) continue;
        for (const Spread& kind : {spreads[0], spreads[1], spreads[2], spreads[3], spreads[6]}) {
            Group group(product, kind, kind, kind, random);
            for (abi::MatrixChain& chain : group.chains) chain.c = chain.d;
            for (const Code code : vector_codes()) {
                INFO("form " << &product - products.data() << " code " << static_cast<int>(code) << ": " << kind.name);
                if (const MultiplyGroup multiply = group_multiplier(code, product, Accuracy::fast)) {
                    auto fast = group.accumulators;
                    multiply(product, group.on(fast));
                    CHECK(far_of(product, group, fast) == 0);
                }
                auto fast = group.accumulators;
                multiply_one_by_one(multiplier(code, product, Accuracy::fast), product, group.on(fast));
                CHECK(far_of(product, group, fast) == 0);
            }
        }
    }
}
