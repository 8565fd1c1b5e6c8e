// SPDX-License-Identifier: Apache-2.0
// The special function unit of Hopper, bit for bit: quadratic interpolation in fixed point with a truncated squarer.
// Every function takes and gives IEEE bits. `*_unit` are the unit itself (subnormal inputs count as zero); the plain
// names are the instruction sequences that keep subnormals. Checked against recordings of all 2^32 inputs.
#pragma once

#include "lanes.h"
#include "sfu_tables.h"

namespace sfu {

inline constexpr int nan_bits = 0x7fffffff;
inline constexpr int infinity_bits = 0x7f800000;
inline constexpr int one_bits = 0x3f800000;
inline constexpr int unit = 1 << 23; ///< the hidden bit of a float
inline constexpr int sign_bit = int(0x80000000u);

template <int N> PTM_INLINE I32<N> is_nan(I32<N> magnitude) { return magnitude > infinity_bits; }

// x * x >> 19 of a 17-bit x with every row of the partial products truncated, as the multiplier array does it.
template <int N> PTM_INLINE I32<N> truncated_square(I32<N> x) {
    auto corner = [](I32<N> u, I32<N> h) {
        return (u >> 2) * (h >> 2) + ((u >> 3) & (h >> 1) & 1) + ((u >> 1) & (h >> 3) & 1);
    };
    I32<N> h = x >> 9, u = (x >> 1) & 255;
    return ((h * h) >> 1) + (u >> 4) * (h >> 4) + corner(u >> 4, h & 15) + corner(u & 15, h >> 4);
}

// (C0 << shift) + C1 * x + (C2 * square << square_shift) + bias, for the rows of `table`.
template <int N>
PTM_INLINE I64<N> interpolate(const int (*table)[3], I32<N> row, I32<N> x, I32<N> square, int shift,
                              int square_shift, int bias) {
    I32<N> at = row * 3;
    I64<N> constant = widen<N>(gather<N>(&table[0][0], at)) << long(shift);
    I64<N> linear = widen<N>(gather<N>(&table[0][1], at)) * widen<N>(x);
    I64<N> quadratic = (widen<N>(gather<N>(&table[0][2], at)) * widen<N>(square)) << long(square_shift);
    return constant + linear + quadratic + long(bias);
}

// |value| * 2^scale truncated to a float's 24 bits. 0 <= value < 2^53, results are normal or zero.
template <int N> PTM_INLINE I32<N> truncate_to_float(I64<N> value, int scale) {
    F64<N> exact = __builtin_convertvector(value, F64<N>);
    F64<N> cut = real<N>(bits<N>(exact) & ~0x1fffffffl);
    double factor = __builtin_bit_cast(double, long(1023 + scale) << 52);
    return bits<N>(__builtin_convertvector(cut * factor, F32<N>));
}

template <int N> PTM_INLINE I32<N> rcp_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> x = b & 0xffff;
    I64<N> p = interpolate<N>(rcp_table, (b >> 16) & 127, x, truncated_square<N>(x << 1), 13, 0, 0x47e7);
    I32<N> r = (253 - (magnitude >> 23)) * unit + narrow<N>(p >> 15l) - unit;
    r = r < unit ? 0 : r;
    r = magnitude < unit ? infinity_bits : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : (r | sign);
}

// What the root functions share: row (by parity of the exponent), offset in the segment, half the exponent.
template <int N> struct RootInput {
    I32<N> row, x, odd, half;
    explicit PTM_INLINE RootInput(I32<N> b) {
        I32<N> e = ((b >> 23) & 255) - 127;
        odd = e & 1;
        half = e >> 1;
        row = ((b >> 17) & 63) + odd * 64;
        x = b & 0x1ffff;
    }
};

template <int N> PTM_INLINE I32<N> rsqrt_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    RootInput<N> in(b);
    I64<N> p = interpolate<N>(rsqrt_table, in.row, in.x, truncated_square<N>(in.x), 14, 2, 0x7fff);
    I32<N> r = narrow<N>(p >> 16l) - unit + (126 - in.half) * unit;
    I32<N> power_of_four = ((b & 0x7fffff) | in.odd) == 0;
    r = power_of_four ? (127 - in.half) * unit : r;
    r = magnitude == infinity_bits ? 0 : r;
    r = b < 0 ? nan_bits : r;
    r = magnitude < unit ? (sign | infinity_bits) : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

template <int N> PTM_INLINE I32<N> sqrt_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    RootInput<N> in(b);
    I32<N> square = truncated_square<N>(in.x);
    // Even exponents have one fraction bit more: (C0 << 15) + C1 * x + 2 * C2 * S + 0x7fff, shifted by 17.
    I32<N> at = in.row * 3;
    I64<N> constant = widen<N>(gather<N>(&sqrt_table[0][0], at)) << 14l;
    I64<N> linear = widen<N>(gather<N>(&sqrt_table[0][1], at)) * widen<N>(in.x);
    I64<N> quadratic = widen<N>(gather<N>(&sqrt_table[0][2], at) * square);
    I64<N> even = (constant << 1l) + linear + (quadratic << 1l) + 0x7fffl;
    I64<N> odd = constant + linear + quadratic + 0x3fffl;
    I32<N> sig = in.odd != 0 ? narrow<N>(odd >> 16l) : narrow<N>(even >> 17l);
    I32<N> r = sig - unit + (127 + in.half) * unit;
    r = magnitude == infinity_bits ? magnitude : r;
    r = b < 0 ? nan_bits : r;
    r = magnitude < unit ? sign : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

template <int N> PTM_INLINE I32<N> ex2_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff;
    I32<N> huge = magnitude >= 0x43000000; // |x| >= 128, infinities and NaN
    F32<N> fixed = real<N>(huge ? 0 : magnitude) * 8388608.0f;
    I32<N> fx = __builtin_convertvector(fixed, I32<N>);
    // Negative numbers are folded by ones' complement, except where the fraction is zero.
    I32<N> folded = ~fx + ((fx & 0x7fffff) == 0 ? I32<N>(1) : I32<N>(0));
    fx = b < 0 ? folded : fx;
    I32<N> x = fx & 0x1ffff;
    I64<N> p = interpolate<N>(ex2_table, (fx >> 17) & 63, x, truncated_square<N>(x), 13, 0, 0x77e2);
    I32<N> r = narrow<N>(p >> 15l) - unit + (127 + (fx >> 23)) * unit;
    r = r < unit ? 0 : r;
    r = huge ? (b < 0 ? I32<N>(0) : I32<N>(infinity_bits)) : r;
    r = magnitude < unit ? one_bits : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

template <int N> PTM_INLINE I32<N> lg2_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff;
    I32<N> x = b & 0x1ffff;
    I64<N> q = interpolate<N>(lg2_table, (b >> 17) & 63, x, truncated_square<N>(x), 12, 1, 0x3345) >> 2l;
    I64<N> v = q + (widen<N>(((b >> 23) & 255) - 127) << 36l);
    I64<N> negative = v >> 63l;
    I32<N> r = truncate_to_float<N>(v ^ negative, -36) | (narrow<N>(negative) & sign_bit);
    r = b == one_bits ? 0 : r;
    r = magnitude == infinity_bits ? magnitude : r;
    r = b < 0 ? nan_bits : r;
    r = magnitude < unit ? int(0xff800000u) : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

template <int N> PTM_INLINE I32<N> sin_cos(I32<N> b, bool cosine) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> special = magnitude >= infinity_bits;
    // |x| / 2 pi as a float rounded toward zero; its fraction in 25 bits: two of quadrant, 23 of phase.
    F64<N> turns = __builtin_convertvector(real<N>(special ? 0 : magnitude), F64<N>) * double(0x1.45f306p-3f);
    turns = real<N>(bits<N>(turns) & ~0x1fffffffl);
    turns = turns - __builtin_elementwise_floor(turns);
    I32<N> fx = __builtin_convertvector(turns * 33554432.0, I32<N>);
    if (cosine) {
        fx += unit;
        sign = 0;
    }
    sign ^= (fx << 7) & sign_bit;
    I32<N> phase = (fx & unit) != 0 ? ~fx : fx;
    I32<N> x = phase & 0x1ffff;
    I64<N> p = interpolate<N>(sin_table, (phase >> 17) & 63, x, truncated_square<N>(x), 11, 0, 0);
    I32<N> r = truncate_to_float<N>(p, -37) | sign;
    I32<N> tiny = magnitude < unit;
    r = tiny ? (cosine ? I32<N>(one_bits) : sign) : r;
    return special ? I32<N>(nan_bits) : r;
}

template <int N> PTM_INLINE I32<N> tanh_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> e = magnitude >> 23, m = b & 0x7fffff;
    I32<N> outside = e < 119 | e > 129;
    I32<N> range = (outside ? 0 : e - 119) * 3;
    I32<N> dropped = gather<N>(&tanh_ranges[0][0], range);
    I32<N> row = gather<N>(&tanh_ranges[0][1], range) + (m >> (dropped + 17));
    I32<N> exponent = gather<N>(&tanh_ranges[0][2], range);
    // The few ranges with one row have no row bits: m >> 23 is 0.
    I32<N> x = (m >> dropped) & 0x1ffff;
    row = outside ? 0 : row;
    I64<N> p = interpolate<N>(tanh_table, row, x, truncated_square<N>(x), 16, 1, 0);
    // truncate_to_float() scales by a constant; the range's exponent is added to the result's.
    I32<N> r = (truncate_to_float<N>(p, -39) + (exponent - 127) * unit) | sign;
    r = e >= 130 ? (sign | one_bits) : r;
    r = e < 119 ? b : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

} // namespace sfu
