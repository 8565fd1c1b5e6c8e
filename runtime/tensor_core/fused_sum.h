// SPDX-License-Identifier: Apache-2.0
// The tensor core's sum, element by element: what says which bits are right.
#pragma once

#include "runtime/tensor_core/number.h"

#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// An element of A or B.
struct Factor {
    std::int32_t significand; ///< negative of negative numbers; of infinity not zero
    std::int16_t exponent;    ///< formal, of the significand's lowest bit + fraction bits
    bool infinite, nan;
};

constexpr Factor factor_of(const Number& number) {
    const auto significand = static_cast<std::int32_t>(number.significand);
    return {number.negative ? -significand : significand, static_cast<std::int16_t>(number.exponent), number.infinite,
            number.nan};
}

/// How a sum is made.
struct SumRule {
    int factor_bits;    ///< fraction bits of A's format and B's together
    Format c;           ///< f32 or f16
    int fraction_bits;  ///< addends are cut to multiples of 2^(E - fraction_bits)
    int least_exponent; ///< of E
    Result result;
    bool negate_product;
    int c_halvings = 0; ///< C is taken times 2^-this
};

/// Sums with a result of f32 or f16 (`result`) that `kept` fraction bits are left of.
constexpr SumRule sum_rule(Format a, Format b, Format result, int fraction_bits, int kept, bool negate_product) {
    const bool half = result == Format::f16;
    // 7 below the result's least normal exponent, whatever the formats (measured).
    const int least_exponent = half ? -21 : -133;
    return {layout_of(a).fraction_bits + layout_of(b).fraction_bits, result,        fraction_bits, least_exponent,
            half ? f16_result : Result{{8, 23}, kept, false},        negate_product};
}

/// The sum of `count` products a[i] * b[i] and C (its bits).
std::uint32_t fused_sum(const SumRule& rule, unsigned count, const Factor* a, const Factor* b, std::uint32_t c);

/// The same of groups of products: the exact sum of each `group_size` of them times the scales of A and B that count
/// for them is one addend, whose formal exponent is that of its scales, whatever the sum. `scales` of each, for as many
/// products each; factors are finite. Result: f32.
struct GroupScales {
    ScaleFormat format;
    unsigned count;
    const Number *a, *b;
};
std::uint32_t fused_group_sum(const SumRule& rule, unsigned count, unsigned group_size, const Factor* a,
                              const Factor* b, const GroupScales& scales, std::uint32_t c);

} // namespace ptarmigan::runtime::tensor_core
