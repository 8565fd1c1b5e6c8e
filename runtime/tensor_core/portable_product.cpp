// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/portable_product.h"

#include "runtime/tensor_core/fused_sum.h"
#include "runtime/tensor_core/scalar_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

constexpr unsigned most_products = 128; ///< of an element: s4 of k128

template <typename Bits> Bits load(const void* matrix, std::size_t index) {
    Bits bits;
    std::memcpy(&bits, static_cast<const std::uint8_t*>(matrix) + index * sizeof bits, sizeof bits);
    return bits;
}

/// The pairs of elements that an element of D is made of.
struct Line {
    unsigned count;
    std::uint64_t a[most_products], b[most_products];
};

void load_line(const MatrixProduct& product, const Operands& operands, unsigned row, unsigned column, Line& line) {
    // b1 by words of 32 elements
    const unsigned unit = product.a == Format::b1 ? 32 : 1;
    line.count = product.stored() / unit;
    const std::size_t a = std::size_t{row} * line.count, b = std::size_t{column} * (product.k / unit);
    for (unsigned i = 0; i < line.count; ++i) line.a[i] = load_element(product.a, operands.a, a + i);
    for (unsigned i = 0; i < line.count; ++i) {
        if (!product.sparse) {
            line.b[i] = load_element(product.b, operands.b, b + i);
        } else if (product.b == Format::tf32) {
            const std::uint8_t* halves = operands.selected + 2 * (a + i);
            line.b[i] = load<std::uint16_t>(operands.b, 2 * b + halves[0]) |
                        std::uint32_t{load<std::uint16_t>(operands.b, 2 * b + halves[1])} << 16;
        } else {
            line.b[i] = load_element(product.b, operands.b, b + operands.selected[a + i]);
        }
    }
}

/// The sum of C and `count` products from the one at `first` on.
std::uint32_t sum_of(const SumRule& rule, Format a, Format b, const Line& line, unsigned first, unsigned count,
                     std::uint32_t c) {
    Factor x[most_products], y[most_products];
    for (unsigned i = 0; i < count; ++i) {
        x[i] = factor_of(unpack(a, static_cast<std::uint32_t>(line.a[first + i])));
        y[i] = factor_of(unpack(b, static_cast<std::uint32_t>(line.b[first + i])));
    }
    return fused_sum(rule, count, x, y, c);
}

/// f16, bf16 and tf32.
std::uint32_t native_sum(const MatrixProduct& product, const Line& line, std::uint32_t c) {
    const bool half = product.c == Format::f16 && product.d == Format::f16;
    SumRule rule = sum_rule(product.a, product.b, half ? Format::f16 : Format::f32, 25, 23, product.negate_product);
    rule.c_halvings = product.c_halvings;
    if (half) return sum_of(rule, product.a, product.b, line, 0, line.count, c);
    if (product.c == Format::f16) c = widen_f16(c);
    const unsigned sums = product.unit == Unit::two_fused ? 2 : 1, count = line.count / sums;
    for (unsigned i = 0; i < sums; ++i) c = sum_of(rule, product.a, product.b, line, i * count, count, c);
    return product.d == Format::f16 ? narrow_to_f16(c) : c;
}

/// The scales of a row of A or column of B.
struct LineScales {
    Number numbers[most_products / 16];
    LineScales(const MatrixProduct& product, const std::uint8_t* scales, unsigned line) {
        for (unsigned i = 0; i < product.scales; ++i)
            numbers[i] = unpack_scale(product.scale, scales[std::size_t{line} * product.scales + i]);
    }
};

/// Units scaled and scaled_groups.
std::uint32_t scaled_sum(const MatrixProduct& product, const Line& line, const LineScales& of_a, const LineScales& of_b,
                         std::uint32_t c) {
    Factor x[most_products], y[most_products];
    for (unsigned i = 0; i < line.count; ++i) {
        x[i] = factor_of(unpack(product.a, static_cast<std::uint32_t>(line.a[i])));
        y[i] = factor_of(unpack(product.b, static_cast<std::uint32_t>(line.b[i])));
    }
    if (product.unit == Unit::scaled_groups) {
        const SumRule rule = sum_rule(product.a, product.b, Format::f32, 35, 23, product.negate_product);
        return fused_group_sum(rule, line.count, 16, x, y, {product.scale, product.scales, of_a.numbers, of_b.numbers},
                               c);
    }
    const auto scale = [&](Factor& factor, const Number& number) {
        factor.exponent = static_cast<std::int16_t>(factor.exponent + number.exponent);
        factor.nan |= number.nan;
    };
    for (unsigned i = 0; i < line.count; ++i) {
        const unsigned number = i / (line.count / product.scales);
        scale(x[i], of_a.numbers[number]);
        scale(y[i], of_b.numbers[number]);
    }
    return fused_sum(sum_rule(product.a, product.b, Format::f32, 25, 23, product.negate_product), line.count, x, y, c);
}

/// The operands are widened to f16. The first sum takes the elements k with k % 4 of 0 and 1, the second the others.
std::uint32_t fp8_by_f16(const MatrixProduct& product, const Line& line, std::uint32_t c) {
    const SumRule rule = sum_rule(Format::f16, Format::f16, product.d, 25, 23, false);
    std::uint32_t sum = 0;
    for (unsigned half = 0; half < 2; ++half) {
        Factor x[most_products], y[most_products];
        const unsigned count = line.count / 2;
        for (unsigned i = 0; i < count; ++i) {
            const unsigned from = i / 2 * 4 + i % 2 + 2 * half;
            x[i] = factor_of(unpack(Format::f16, widen_fp8(product.a, static_cast<std::uint32_t>(line.a[from]))));
            y[i] = factor_of(unpack(Format::f16, widen_fp8(product.b, static_cast<std::uint32_t>(line.b[from]))));
        }
        sum = fused_sum(rule, count, x, y, sum);
    }
    return product.d == Format::f16 ? narrow_to_f16(add_f32(widen_f16(c), widen_f16(sum))) : add_f32(c, sum);
}

std::uint32_t scalar_f16(const MatrixProduct& product, const Line& line, std::uint32_t c) {
    std::uint32_t x[4], y[4];
    for (unsigned k = 0; k < 4; ++k) {
        x[k] = widen_f16(static_cast<std::uint32_t>(line.a[k]));
        y[k] = widen_f16(static_cast<std::uint32_t>(line.b[k]));
    }
    if (product.c == Format::f16) c = widen_f16(c);
    if (product.d == Format::f32) {
        std::uint32_t sum = 0;
        for (unsigned k = 0; k < 4; ++k) sum = fma_f32(x[k], y[k], sum);
        return add_f32(c, sum);
    }
    const std::uint32_t low = fma_f32(x[1], y[1], multiply_f32(x[0], y[0]));
    const std::uint32_t high = fma_f32(x[3], y[3], multiply_f32(x[2], y[2]));
    return narrow_to_f16(add_f32(add_f32(c, low), high));
}

std::int64_t integer_of(Format format, std::uint64_t bits) {
    switch (format) {
    case Format::s8: return static_cast<std::int8_t>(bits);
    case Format::s4: return static_cast<std::int64_t>(bits ^ 8) - 8;
    default: return static_cast<std::int64_t>(bits);
    }
}

std::uint32_t integer_sum(const MatrixProduct& product, const Line& line, std::uint32_t c) {
    std::int64_t sum = static_cast<std::int32_t>(c);
    for (unsigned i = 0; i < line.count; ++i)
        sum += integer_of(product.a, line.a[i]) * integer_of(product.b, line.b[i]);
    if (product.saturate) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::uint32_t>(sum);
}

std::uint32_t bit_count(const MatrixProduct& product, const Line& line, std::uint32_t c) {
    for (unsigned i = 0; i < line.count; ++i) {
        const std::uint64_t both = product.unit == Unit::bits_and ? line.a[i] & line.b[i] : line.a[i] ^ line.b[i];
        c += static_cast<std::uint32_t>(std::popcount(both));
    }
    return c;
}

std::uint64_t element_of(const MatrixProduct& product, const Line& line, std::uint64_t c) {
    const auto word = static_cast<std::uint32_t>(c);
    switch (product.unit) {
    case Unit::fused:
    case Unit::two_fused: return native_sum(product, line, word);
    case Unit::fused_fp8:
        return sum_of(sum_rule(product.a, product.b, product.d, 13, 13, product.negate_product), product.a, product.b,
                      line, 0, line.count, word);
    case Unit::fp8_by_f16: return fp8_by_f16(product, line, word);
    case Unit::scalar_f16: return scalar_f16(product, line, word);
    case Unit::chain_f64:
        for (unsigned i = 0; i < line.count; ++i) c = fma_f64(line.a[i], line.b[i], c, product.rounding);
        return c;
    case Unit::integer: return integer_sum(product, line, word);
    case Unit::bits_xor:
    case Unit::bits_and: return bit_count(product, line, word);
    case Unit::scaled:
    case Unit::scaled_groups: break; // those need scales
    }
    return 0;
}

} // namespace

std::uint64_t load_element(Format format, const void* matrix, std::size_t index) {
    switch (format) {
    case Format::f16:
    case Format::bf16: return load<std::uint16_t>(matrix, index);
    case Format::e4m3:
    case Format::e5m2:
    case Format::e3m2:
    case Format::e2m3:
    case Format::e2m1_in_byte:
    case Format::s8:
    case Format::u8: return load<std::uint8_t>(matrix, index);
    case Format::s4:
    case Format::u4:
    case Format::e2m1: return load<std::uint8_t>(matrix, index / 2) >> (index % 2 * 4) & 15;
    case Format::f64: return load<std::uint64_t>(matrix, index);
    default: return load<std::uint32_t>(matrix, index);
    }
}

void store_element(Format format, void* matrix, std::size_t index, std::uint64_t bits) {
    const std::size_t size = format == Format::f64 ? 8 : format == Format::f16 ? 2 : 4;
    std::memcpy(static_cast<std::uint8_t*>(matrix) + index * size, &bits, size);
}

std::uint64_t element_of(const MatrixProduct& product, const Operands& operands, unsigned row, unsigned column,
                         std::uint64_t c) {
    Line line;
    load_line(product, operands, row, column, line);
    if (product.unit == Unit::scaled || product.unit == Unit::scaled_groups)
        return scaled_sum(product, line, LineScales(product, operands.scales.a, row),
                          LineScales(product, operands.scales.b, column), static_cast<std::uint32_t>(c));
    return element_of(product, line, c);
}

std::uint32_t wide_element_of(const MatrixProduct& product, const Operands& operands, unsigned row, unsigned column,
                              std::uint32_t c) {
    const std::uint64_t own = product.c_is_zero ? 0 : product.c == Format::f16 ? narrow_to_f16(c) : c;
    const auto bits = static_cast<std::uint32_t>(element_of(product, operands, row, column, own));
    return product.d == Format::f16 ? widen_f16(bits) : bits;
}

void multiply_portably(const MatrixProduct& product, const Operands& operands) {
    for (unsigned row = 0; row < product.m; ++row) {
        for (unsigned column = 0; column < product.n; ++column) {
            const std::size_t index = std::size_t{row} * product.n + column;
            const std::uint64_t c = product.c_is_zero ? 0 : load_element(product.c, operands.c, index);
            store_element(product.d, operands.d, index, element_of(product, operands, row, column, c));
        }
    }
}

} // namespace ptarmigan::runtime::tensor_core
