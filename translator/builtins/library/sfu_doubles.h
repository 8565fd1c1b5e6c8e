// SPDX-License-Identifier: Apache-2.0
// rcp and rsqrt of doubles. The special function unit sees the high words only: 20 bits of mantissa, which it treats as
// a float's, and of the result's significand it drops three bits.
#pragma once

#include "sfu.h"

namespace sfu {

inline constexpr int high_infinity = 0x7ff00000;
inline constexpr int high_unit = 1 << 20; ///< the hidden bit of a double, in its high word

/// rcp.approx.ftz.f64: high words to high words; the low words of results are zero.
template <int N> PTM_INLINE I32<N> rcp_high(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, exponent = b & high_infinity;
    I32<N> mantissa = ((b << 3) & (unit - 1)) | one_bits;
    I32<N> r = shift_down<N>(rcp_of_mantissa<N>(mantissa), I32<N>(3)) + ((2045 - 126) * high_unit - exponent);
    r = magnitude > 2045 * high_unit ? 0 : r; // it would be subnormal, or the operand is infinite
    r = exponent == 0 ? high_infinity : r;
    return magnitude > high_infinity ? I32<N>(nan_bits) : (r | (b & sign_bit));
}

/// rsqrt.approx.ftz.f64, likewise.
template <int N> PTM_INLINE I32<N> rsqrt_high(I32<N> b) {
    // The operand as a float from 0.5 to 2, by parity of the exponent, which rounds up when it is halved.
    I32<N> operand = ((b << 3) & (2 * unit - 1)) | 0x3f000000;
    I32<N> r = shift_down<N>(rsqrt_of_mantissa<N>(operand), I32<N>(3)) + (1407 * high_unit - ((b >> 1) & 0x3ff00000));
    r = b == high_infinity ? 0 : r;
    r = ((b < 0) | (b > high_infinity)) ? nan_bits : r;
    return (b & high_infinity) == 0 ? ((b & sign_bit) | high_infinity) : r;
}

/// What rsqrt.approx.f64 gives the unit: subnormal operands are scaled.
template <int N> PTM_INLINE F64<N> rsqrt_operand(F64<N> a) {
    I64<N> magnitude = bits<N>(a) & 0x7fffffffffffffffl;
    return ((magnitude < 0x10000000000000l) & (magnitude != 0)) ? a * 0x1p54 : a;
}
/// rsqrt.approx.f64 of `a` by Newton's method, where y is the unit's result for rsqrt_operand(a).
template <int N> PTM_INLINE F64<N> rsqrt_refined(F64<N> operand, F64<N> y) {
    I64<N> v = bits<N>(operand), magnitude = v & 0x7fffffffffffffffl;
    F64<N> a = rsqrt_operand<N>(operand);
    F64<N> e = __builtin_elementwise_fma(y * y, -a, F64<N>(1.0));
    F64<N> t = __builtin_elementwise_fma(e, F64<N>(0.375), F64<N>(0.5));
    F64<N> refined = __builtin_elementwise_fma(t, e * y, y);
    I64<N> r = bits<N>(magnitude < 0x10000000000000l ? refined * 0x1p27 : refined);
    r = magnitude == 0x7ff0000000000000l ? 0l : r;
    r = v < 0 ? I64<N>(long(0xfff8000000000000ul)) : r;
    r = magnitude == 0 ? (v | 0x7ff0000000000000l) : r;
    return real<N>(magnitude > 0x7ff0000000000000l ? (v | 0x8000000000000l) : r);
}

} // namespace sfu
