// SPDX-License-Identifier: Apache-2.0
// Twice a number of e2m1 is an integer from -12 to 12, so that a group of 16 products is one below 2^12, its scales'
// significands make that 2^20, and an addend of the sum, cut to 35 bits, is below 2^56.
#include "runtime/tensor_core/scale_groups.h"

#include "runtime/tensor_core/number.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ptarmigan::runtime::tensor_core {
namespace {

constexpr unsigned group_size = 16, most_groups = 8;
constexpr int fraction_bits = 35, least_exponent = -133, doubled = 2; ///< doubled: fraction bits of products here

constexpr std::array<std::int8_t, 16> twice{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// All elements as twice their numbers.
std::vector<std::int8_t> doubled_elements(const void* matrix, std::size_t count) {
    const auto* bytes = static_cast<const std::uint8_t*>(matrix);
    std::vector<std::int8_t> elements(count);
    for (std::size_t i = 0; i < count; i += 2) {
        elements[i] = twice.at(bytes[i / 2] & 15);
        elements[i + 1] = twice.at(bytes[i / 2] >> 4);
    }
    return elements;
}

std::vector<Number> numbers_of(const MatrixProduct& product, const std::uint8_t* scales, unsigned lines) {
    std::vector<Number> numbers(std::size_t{lines} * product.scales);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = unpack_scale(product.scale, scales[i]);
    return numbers;
}

/// Toward zero.
std::int64_t cut(std::int64_t significand, int up) {
    if (up >= 0) return significand << up;
    if (up <= -63) return 0;
    return significand < 0 ? -(-significand >> -up) : significand >> -up;
}

std::int32_t group_sum(const std::int8_t* a, const std::int8_t* b) {
    std::int32_t sum = 0;
    for (unsigned i = 0; i < group_size; ++i) sum += a[i] * b[i];
    return sum;
}

/// D of groups and their scales: `per_scale` groups have the same ones.
std::uint32_t element_of(const std::int32_t* groups, unsigned count, unsigned per_scale, const Number* a,
                         const Number* b, int scale_bits, std::uint32_t c_bits) {
    const Number c = unpack(Format::f32, c_bits);
    bool nan = c.nan;
    int top = c.significand != 0 ? std::max(least_exponent, c.exponent) : least_exponent;
    for (unsigned i = 0; i < count / per_scale; ++i) {
        nan |= a[i].nan || b[i].nan;
        if (a[i].significand != 0 && b[i].significand != 0) top = std::max(top, a[i].exponent + b[i].exponent);
    }
    if (nan) return f32_nan;
    if (c.infinite) return 0x7f800000u | unsigned{c.negative} << 31;
    std::int64_t sum = cut(c.negative ? -std::int64_t{c.significand} : std::int64_t{c.significand},
                           fraction_bits - 23 - (top - c.exponent));
    for (unsigned i = 0; i < count; ++i) {
        const Number &x = a[i / per_scale], &y = b[i / per_scale];
        sum += cut(std::int64_t{groups[i]} * x.significand * y.significand,
                   fraction_bits - doubled - scale_bits - (top - (x.exponent + y.exponent)));
    }
    return pack(sum < 0, static_cast<std::uint64_t>(sum < 0 ? -sum : sum), top - fraction_bits, f32_result);
}

} // namespace

void multiply_scale_groups(const MatrixProduct& product, const Operands& operands) {
    const unsigned stored = product.stored(), groups = stored / group_size, per_scale = groups / product.scales;
    const std::vector<std::int8_t> a = doubled_elements(operands.a, std::size_t{product.m} * stored),
                                   b = doubled_elements(operands.b, std::size_t{product.n} * product.k);
    const std::vector<Number> of_a = numbers_of(product, operands.scales.a, product.m),
                              of_b = numbers_of(product, operands.scales.b, product.n);
    const int scale_bits = 2 * fraction_bits_of(product.scale);
    for (unsigned row = 0; row < product.m; ++row)
        for (unsigned column = 0; column < product.n; ++column) {
            const std::size_t index = std::size_t{row} * product.n + column;
            const std::int8_t *x = a.data() + std::size_t{row} * stored,
                              *y = b.data() + std::size_t{column} * product.k;
            std::int8_t selected[group_size * most_groups];
            if (product.sparse) {
                const std::uint8_t* places = operands.selected + std::size_t{row} * stored;
                for (unsigned i = 0; i < stored; ++i) selected[i] = y[places[i]];
                y = selected;
            }
            std::int32_t sums[most_groups];
            for (unsigned i = 0; i < groups; ++i) {
                sums[i] = group_sum(x + i * group_size, y + i * group_size);
                if (product.negate_product) sums[i] = -sums[i];
            }
            const auto c =
                static_cast<std::uint32_t>(product.c_is_zero ? 0 : load_element(Format::f32, operands.c, index));
            store_element(Format::f32, operands.d, index,
                          element_of(sums, groups, per_scale, of_a.data() + std::size_t{row} * product.scales,
                                     of_b.data() + std::size_t{column} * product.scales, scale_bits, c));
        }
}

} // namespace ptarmigan::runtime::tensor_core
