// SPDX-License-Identifier: Apache-2.0
// Floating-point formats by integer arithmetic: what bits mean, and how exact values become bits.
#pragma once

#include "runtime/tensor_core/matrix_product.h"

#include <bit>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

struct FloatLayout {
    int exponent_bits, fraction_bits;
    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr int least_exponent() const { return 1 - bias(); } ///< of normal numbers
};

/// Of formats up to f32.
constexpr FloatLayout layout_of(Format format) {
    switch (format) {
    case Format::f16: return {5, 10};
    case Format::bf16: return {8, 7};
    case Format::tf32: return {8, 10};
    case Format::e4m3: return {4, 3};
    case Format::e5m2: return {5, 2};
    case Format::e3m2: return {3, 2};
    case Format::e2m3: return {2, 3};
    case Format::e2m1_in_byte:
    case Format::e2m1: return {2, 1};
    default: return {8, 23};
    }
}

/// A finite number is significand * 2^(exponent - fraction_bits), negated if `negative`. The exponent is the formal
/// one: of subnormal numbers and zero the format's least.
struct Number {
    std::uint32_t significand;
    int exponent;
    bool negative, infinite, nan;

    constexpr bool is_special() const { return infinite || nan; }
};

constexpr Number unpack(Format format, std::uint32_t bits) {
    const FloatLayout layout = layout_of(format);
    if (format == Format::tf32) bits >>= 13; // those don't exist for the hardware, not even to tell NaN from infinity
    if (format == Format::e2m1_in_byte) bits >>= 2;
    const std::uint32_t fractions = (1u << layout.fraction_bits) - 1;
    const std::uint32_t top = (1u << layout.exponent_bits) - 1;
    const std::uint32_t field = bits >> layout.fraction_bits & top, fraction = bits & fractions;
    Number number{fraction, layout.least_exponent(), (bits >> (layout.exponent_bits + layout.fraction_bits) & 1) != 0,
                  false, false};
    if (format == Format::e4m3) {
        number.nan = field == top && fraction == fractions;
    } else if (format < Format::e3m2) { // smaller ones have neither
        number.infinite = field == top && fraction == 0;
        number.nan = field == top && fraction != 0;
    }
    if (field != 0) {
        number.significand |= 1u << layout.fraction_bits;
        number.exponent = static_cast<int>(field) - layout.bias();
    }
    return number;
}

/// A scale: never negative or infinite. It has no fraction bits (ue8m0) or three.
constexpr Number unpack_scale(ScaleFormat format, std::uint8_t bits) {
    if (format == ScaleFormat::ue8m0) return {1, int{bits} - 127, false, false, bits == 0xff};
    return unpack(Format::e4m3, bits & 0x7fu);
}
constexpr int fraction_bits_of(ScaleFormat format) {
    return format == ScaleFormat::ue8m0 ? 0 : 3;
}

/// How pack() makes the fraction: `kept` bits of it, to nearest even or toward zero. Overflow gives infinity
/// either way.
struct Result {
    FloatLayout layout;
    int kept;
    bool nearest;
};
inline constexpr Result f16_result{{5, 10}, 10, true};
inline constexpr Result f32_result{{8, 23}, 23, false};
inline constexpr Result f32_nearest{{8, 23}, 23, true};

/// magnitude * 2^exponent as bits. Zero is +0, also where a negative number becomes it.
constexpr std::uint32_t pack(bool negative, std::uint64_t magnitude, int exponent, const Result& result) {
    if (magnitude == 0) return 0;
    const FloatLayout& layout = result.layout;
    int top = 63 - std::countl_zero(magnitude) + exponent;
    if (top < layout.least_exponent()) top = layout.least_exponent();
    const int dropped = top - result.kept - exponent;
    std::uint64_t rounded = 0;
    if (dropped <= 0) {
        rounded = magnitude << -dropped;
    } else if (dropped <= 63) {
        rounded = magnitude >> dropped;
        const std::uint64_t rest = magnitude & ((std::uint64_t{1} << dropped) - 1);
        const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
        if (result.nearest && (rest > half || (rest == half && (rounded & 1)))) ++rounded;
    }
    if (rounded >> (result.kept + 1)) {
        rounded >>= 1;
        ++top;
    }
    if (rounded == 0) return 0;
    const std::uint32_t sign = std::uint32_t{negative} << (layout.exponent_bits + layout.fraction_bits);
    if (top > layout.bias()) return sign | ((1u << layout.exponent_bits) - 1) << layout.fraction_bits;
    const auto significand = static_cast<std::uint32_t>(rounded << (layout.fraction_bits - result.kept));
    if (significand >> layout.fraction_bits == 0) return sign | significand;
    return sign | static_cast<std::uint32_t>(top + layout.bias()) << layout.fraction_bits |
           (significand & ((1u << layout.fraction_bits) - 1));
}

inline constexpr std::uint32_t f32_nan = 0x7fffffff, f16_nan = 0x7fff; ///< the only ones that are made

/// Exact. NaN becomes the only one.
constexpr std::uint32_t widen_f16(std::uint32_t bits) {
    const Number number = unpack(Format::f16, bits);
    if (number.nan) return f32_nan;
    const std::uint32_t sign = std::uint32_t{number.negative} << 31;
    if (number.infinite) return sign | 0x7f800000;
    return sign | pack(false, number.significand, number.exponent - 10, f32_result);
}

/// f32 to nearest even; negative numbers that become zero keep their sign.
constexpr std::uint32_t narrow_to_f16(std::uint32_t bits) {
    const Number number = unpack(Format::f32, bits);
    if (number.nan) return f16_nan;
    const std::uint32_t sign = std::uint32_t{number.negative} << 15;
    if (number.infinite) return sign | 0x7c00;
    return sign | pack(false, number.significand, number.exponent - 23, f16_result);
}

/// Exact: both fp8 formats are part of f16.
constexpr std::uint32_t widen_fp8(Format format, std::uint32_t bits) {
    const Number number = unpack(format, bits & 0xff);
    if (number.nan) return f16_nan;
    const std::uint32_t sign = std::uint32_t{number.negative} << 15;
    if (number.infinite) return sign | 0x7c00;
    return sign | pack(false, number.significand, number.exponent - layout_of(format).fraction_bits, f16_result);
}

} // namespace ptarmigan::runtime::tensor_core
