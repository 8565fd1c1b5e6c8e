// SPDX-License-Identifier: Apache-2.0
// Sums of Blackwell's formats (fp8, fp6, fp4, with and without block scales) against another way to compute them: values as doubles, which
// hold each of them, and addends cut one by one.
#include "runtime/tensor_core/matrix_product.h"
#include "runtime/tensor_core/product_code.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace ptarmigan::runtime::tensor_core;

struct Layout {
    Format format;
    int exponent_bits, fraction_bits, shift, bits;
};
constexpr Layout layouts[] = {{Format::e4m3, 4, 3, 0, 8}, {Format::e5m2, 5, 2, 0, 8}, {Format::e3m2, 3, 2, 0, 8}, {Format::e2m3, 2, 3, 0, 8},
                              {Format::e2m1_in_byte, 2, 1, 2, 8}, {Format::e2m1, 2, 1, 0, 4}};

/// A number, and the exponent that a tensor core sees.
struct Value {
    double number = 0;
    int exponent = 0;
};

Value value_of(const Layout& layout, unsigned bits) {
    bits >>= layout.shift;
    const int bias = (1 << (layout.exponent_bits - 1)) - 1;
    int field = int(bits >> layout.fraction_bits & ((1u << layout.exponent_bits) - 1));
    const int fraction = int(bits & ((1u << layout.fraction_bits) - 1));
    const bool negative = bits >> (layout.exponent_bits + layout.fraction_bits) & 1;
    Value value;
    if (layout.format == Format::e4m3 && field == 15 && fraction == 7) {
        value.number = NAN;
    } else if (layout.format == Format::e5m2 && field == 31) {
        value.number = fraction ? NAN : INFINITY;
    } else {
        const int hidden = field == 0 ? 0 : 1 << layout.fraction_bits;
        if (field == 0) field = 1;
        value.exponent = field - bias;
        value.number = std::ldexp(hidden + fraction, value.exponent - layout.fraction_bits);
    }
    if (negative) value.number = -value.number;
    return value;
}

Value float_value(std::uint32_t bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    const int field = int(bits >> 23 & 0xff);
    return {number, field == 0 ? -126 : field - 127};
}

/// Addends (exact), cut at 2^(most - kept), and the result cut to f32.
std::uint32_t sum_of(const std::vector<Value>& addends, int kept) {
    bool nan = false, plus = false, minus = false;
    int most = -133;
    for (const Value& addend : addends) {
        nan |= std::isnan(addend.number);
        plus |= addend.number == INFINITY;
        minus |= addend.number == -INFINITY;
        if (addend.exponent != INT32_MIN) most = std::max(most, addend.exponent);
    }
    if (nan || (plus && minus)) return 0x7fffffff;
    if (plus || minus) return plus ? 0x7f800000 : 0xff800000;
    __extension__ typedef __int128 Wide;
    Wide sum = 0;
    for (const Value& addend : addends) sum += Wide(std::trunc(std::ldexp(addend.number, kept - most)));
    if (sum == 0) return 0;
    const bool negative = sum < 0;
    unsigned __int128 magnitude = negative ? -sum : sum;
    int exponent = most - kept; // of the lowest bit
    int top = exponent;
    for (unsigned __int128 rest = magnitude; rest > 1; rest >>= 1) ++top;
    const int lowest = std::max(top, -126) - 23;
    if (lowest > exponent) magnitude >>= lowest - exponent;
    const double result = std::ldexp(double(magnitude), std::max(lowest, exponent));
    if (magnitude == 0) return 0;
    if (result >= std::ldexp(1.0, 128)) return negative ? 0xff800000 : 0x7f800000;
    const auto number = float(negative ? -result : result);
    std::uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

struct Test {
    Layout a, b;
    unsigned k, scales;
    ScaleFormat scale;
    bool groups;
};

} // namespace

TEST_CASE("tensor core: small formats and block scales") {
    std::mt19937 random(23);
    std::vector<Test> tests;
    for (const Layout& a : layouts)
        for (const Layout& b : layouts) {
            if (a.bits != b.bits) continue;
            if (a.bits == 8) {
                tests.push_back({a, b, 32, 0, {}, false});
                tests.push_back({a, b, 32, 1, ScaleFormat::ue8m0, false});
            } else {
                tests.push_back({a, b, 64, 2, ScaleFormat::ue8m0, true});
                tests.push_back({a, b, 64, 4, ScaleFormat::ue8m0, true});
                tests.push_back({a, b, 64, 4, ScaleFormat::ue4m3, true});
            }
        }
    for (const Test& test : tests)
        for (unsigned round = 0; round < 6; ++round) {
            const bool special = round >= 3;
            const unsigned n = round % 2 ? 8 : 16; // where rows of A are the lanes, and where columns of B are
            constexpr unsigned m = 16;
            MatrixProduct product{test.a.format, test.b.format, Format::f32, Format::f32,
                                  test.groups ? Unit::scaled_groups : test.scales ? Unit::scaled : Unit::fused, m, std::uint16_t(n), std::uint16_t(test.k)};
            product.scales = std::uint8_t(test.scales);
            product.scale = test.scale;
            product.negate_product = random() % 2;
            const unsigned row_bytes = test.k * unsigned(test.a.bits) / 8;
            std::vector<std::uint8_t> a(m * row_bytes + 8), b(n * row_bytes + 8), scales_a(m * 4), scales_b(n * 4);
            std::vector<std::uint32_t> c(m * n), d(m * n);
            const auto draw = [&](const Layout& layout, std::vector<std::uint8_t>& matrix) {
                for (std::uint8_t& byte : matrix) {
                    do
                        byte = std::uint8_t(random());
                    while (!special && layout.bits == 8 && !std::isfinite(value_of(layout, byte).number));
                    if (random() % 5 == 0) byte = 0;
                }
            };
            draw(test.a, a);
            draw(test.b, b);
            const int spread = random() % 2 ? 6 : 40;
            for (auto* scales : {&scales_a, &scales_b})
                for (std::uint8_t& byte : *scales) {
                    if (test.scale == ScaleFormat::ue4m3)
                        byte = std::uint8_t(random() % (special ? 256 : 127));
                    else
                        byte = std::uint8_t(127 - spread / 2 + int(random() % unsigned(spread)));
                    if (special && random() % 40 == 0) byte = 255;
                }
            for (std::uint32_t& word : c) {
                const auto number = std::ldexp(1.0f + float(random() % 8192) / 8192.0f, int(random() % 40) - 20) * (random() % 2 ? 1.0f : -1.0f);
                std::memcpy(&word, &number, 4);
                if (random() % 6 == 0) word = 0;
                if (special && random() % 20 == 0) word = 0x7f800000 + unsigned(random() % 2);
            }
            for (const Code code : codes) {
                if (!can_run(code)) continue;
                multiplier(code, product)(product, {a.data(), b.data(), c.data(), d.data(), nullptr, {scales_a.data(), scales_b.data()}});
                for (unsigned row = 0; row < m; ++row)
                    for (unsigned column = 0; column < n; ++column) {
                        const auto element = [&](const Layout& layout, const std::vector<std::uint8_t>& matrix, unsigned line, unsigned i) {
                            if (layout.bits == 8) return value_of(layout, matrix[line * row_bytes + i]);
                            return value_of(layout, matrix[line * row_bytes + i / 2] >> 4 * (i % 2) & 15);
                        };
                        const auto scale = [&](const std::vector<std::uint8_t>& scales, unsigned line, unsigned i) {
                            const unsigned byte = scales[line * test.scales + i / (test.k / test.scales)];
                            if (test.scale == ScaleFormat::ue4m3) return value_of(layouts[0], byte & 0x7f);
                            return Value{byte == 255 ? NAN : std::ldexp(1.0, int(byte) - 127), int(byte) - 127};
                        };
                        std::vector<Value> addends{float_value(c[row * n + column])};
                        if (addends[0].number == 0) addends[0].exponent = INT32_MIN;
                        const unsigned group = test.groups ? 16 : 1;
                        for (unsigned i = 0; i < test.k; i += group) {
                            Value addend;
                            for (unsigned j = i; j < i + group; ++j) {
                                const Value x = element(test.a, a, row, j), y = element(test.b, b, column, j);
                                addend.number += product.negate_product ? -(x.number * y.number) : x.number * y.number;
                                if (!test.groups) addend.exponent = x.exponent + y.exponent;
                            }
                            if (test.scales) {
                                const Value x = scale(scales_a, row, i), y = scale(scales_b, column, i);
                                addend.number *= x.number * y.number;
                                addend.exponent += x.exponent + y.exponent;
                                if (test.groups && x.number * y.number == 0) addend.exponent = INT32_MIN;
                            }
                            if (!test.groups && addend.number == 0) addend.exponent = INT32_MIN;
                            addends.push_back(addend);
                        }
                        INFO(int(code) << " " << int(test.a.format) << " " << int(test.b.format) << " " << test.scales << " " << row << " " << column);
                        REQUIRE(d[row * n + column] == sum_of(addends, test.groups ? 35 : 25));
                    }
            }
        }
}
