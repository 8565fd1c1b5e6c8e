// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/fused_sum.h"

#include <algorithm>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Toward zero.
std::int64_t cut(std::int64_t significand, int up) {
    if (up >= 0) return significand << up;
    if (up <= -63) return 0;
    return significand < 0 ? -(-significand >> -up) : significand >> -up;
}

} // namespace

std::uint32_t fused_sum(const SumRule& rule, unsigned count, const Factor* a, const Factor* b, std::uint32_t c_bits) {
    Number c = unpack(rule.c, c_bits);
    c.exponent -= rule.c_halvings;
    bool nan = c.nan, positive = c.infinite && !c.negative, negative = c.infinite && c.negative;
    int top = rule.least_exponent;
    if (c.significand != 0) top = std::max(top, c.exponent);
    for (unsigned i = 0; i < count; ++i) {
        const Factor &x = a[i], &y = b[i];
        const bool zero = x.significand == 0 || y.significand == 0;
        if (x.nan || y.nan || x.infinite || y.infinite) {
            if (x.nan || y.nan || zero) {
                nan = true;
            } else {
                const bool sign = ((x.significand ^ y.significand) < 0) != rule.negate_product;
                (sign ? negative : positive) = true;
            }
        }
        if (!zero) top = std::max(top, x.exponent + y.exponent);
    }
    const bool half = rule.c == Format::f16;
    if (nan || (positive && negative)) return half ? f16_nan : f32_nan;
    if (positive || negative) return half ? 0x7c00u | unsigned{negative} << 15 : 0x7f800000u | unsigned{negative} << 31;

    std::int64_t products = 0;
    for (unsigned i = 0; i < count; ++i)
        products += cut(std::int64_t{a[i].significand} * b[i].significand,
                        rule.fraction_bits - rule.factor_bits - (top - (a[i].exponent + b[i].exponent)));
    if (rule.negate_product) products = -products;
    const std::int64_t addend =
        cut(c.significand, rule.fraction_bits - layout_of(rule.c).fraction_bits - (top - c.exponent));
    const std::int64_t sum = products + (c.negative ? -addend : addend);
    const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
    return pack(sum < 0, magnitude, top - rule.fraction_bits, rule.result);
}

std::uint32_t fused_group_sum(const SumRule& rule, unsigned count, unsigned group_size, const Factor* a,
                              const Factor* b, const GroupScales& scales, std::uint32_t c_bits) {
    const Number c = unpack(Format::f32, c_bits);
    bool nan = c.nan;
    for (unsigned i = 0; i < scales.count; ++i) nan |= scales.a[i].nan || scales.b[i].nan;
    if (nan) return f32_nan;
    if (c.infinite) return 0x7f800000u | unsigned{c.negative} << 31;
    const auto scale_of = [&](unsigned first) { return first / (count / scales.count); };
    int top = rule.least_exponent;
    if (c.significand != 0) top = std::max(top, c.exponent);
    for (unsigned first = 0; first < count; first += group_size) {
        const Number &x = scales.a[scale_of(first)], &y = scales.b[scale_of(first)];
        if (x.significand != 0 && y.significand != 0) top = std::max(top, x.exponent + y.exponent);
    }
    const int scale_bits = 2 * fraction_bits_of(scales.format);
    std::int64_t sum = cut(c.negative ? -std::int64_t{c.significand} : std::int64_t{c.significand},
                           rule.fraction_bits - 23 - (top - c.exponent));
    for (unsigned first = 0; first < count; first += group_size) {
        std::int64_t group = 0;
        // Formats of one exponent bit range only: products are summed as multiples of the smallest one.
        for (unsigned i = first; i < first + group_size; ++i)
            group += std::int64_t{a[i].significand} * b[i].significand << (a[i].exponent + b[i].exponent);
        if (rule.negate_product) group = -group;
        const Number &x = scales.a[scale_of(first)], &y = scales.b[scale_of(first)];
        sum += cut(group * x.significand * y.significand,
                   rule.fraction_bits - rule.factor_bits - scale_bits - (top - (x.exponent + y.exponent)));
    }
    const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
    return pack(sum < 0, magnitude, top - rule.fraction_bits, rule.result);
}

} // namespace ptarmigan::runtime::tensor_core
