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

template <int N> PTM_INLINE I32<N> is_nan(I32<N> magnitude) {
    return magnitude > infinity_bits;
}

// x * x >> 19 of a 17-bit x with every row of the partial products truncated, as the multiplier array does it.
template <int N> PTM_INLINE I32<N> truncated_square(I32<N> x) {
    auto corner = [](I32<N> u, I32<N> h) {
        return (u >> 2) * (h >> 2) + ((u >> 3) & (h >> 1) & 1) + ((u >> 1) & (h >> 3) & 1);
    };
    I32<N> h = x >> 9, u = (x >> 1) & 255;
    return ((h * h) >> 1) + (u >> 4) * (h >> 4) + corner(u >> 4, h & 15) + corner(u & 15, h >> 4);
}

// Rounds a positive sum or product toward zero: where it was rounded up, `error` (the exact value less it) is negative.
template <int N> PTM_INLINE F32<N> truncated(F32<N> rounded, F32<N> error) {
    return real<N>(bits<N>(rounded) + (bits<N>(error) >> 31));
}

// (high * 2^shift + low) * 2^scale truncated to a float's 24 bits, for 0 <= high and 0 <= low < 2^shift, shift <= 16.
// Results are normal or zero.
template <int N> PTM_INLINE I32<N> truncate_to_float(I32<N> high, I32<N> low, int shift, int scale) {
    auto power = [](int exponent) { return __builtin_bit_cast(float, (127 + exponent) << 23); };
    // Two floats without rounding, whose sum's error is a float, too.
    F32<N> a = __builtin_convertvector(high & ~255, F32<N>) * power(shift);
    F32<N> b = __builtin_convertvector((high & 255) << shift | low, F32<N>);
    F32<N> sum = a + b;
    return bits<N>(truncated<N>(sum, b - (sum - a)) * power(scale));
}

// A row in two words: a constant, and two coefficients of 16 bits.
template <int Rows> struct PackedTable { int row[Rows][2]; };
template <int Rows, typename Constant, typename Low, typename High>
constexpr PackedTable<Rows> packed(const int (&table)[Rows][3], Constant constant, Low low, High high) {
    PackedTable<Rows> result{};
    for (int i = 0; i < Rows; ++i) {
        const int* from = table[i];
        result.row[i][0] = int(unsigned(constant(i, long(from[0]))));
        result.row[i][1] = int((unsigned(low(i, from[1])) & 0xffff) | unsigned(high(i, from[2])) << 16);
    }
    return result;
}
template <int N> struct PackedRow {
    I32<N> constant, low, high; ///< `low` without sign, `high` with
    template <int Rows> PTM_INLINE PackedRow(const PackedTable<Rows>& table, I32<N> row) {
        constant = gather<N>(&table.row[0][0], row * 2);
        I32<N> both = gather<N>(&table.row[0][1], row * 2);
        low = both & 0xffff;
        high = both >> 16;
    }
};

// rcp, rsqrt, sqrt: the CPU's own result is within a few units of the last place, so that of the interpolator's only
// the last four bits are needed. For these a row is one word: the linear coefficient from bit 16 on, the quadratic one
// (ten bits) from bit 6 on, six bits of the constant. A layout says what the polynomial is:
//   P = constant << constant_shift, plus constant_low below, plus quadratic * S << quadratic_shift, and the linear
//   coefficient * x taken from it (minus_linear) or all that taken from the linear term; the result is
//   P >> (constant_shift + 2) modulo 16. S is the square of x << square_of.
constexpr unsigned packed_row(int linear, int quadratic, long constant) {
    if (linear < 0 || linear > 0xffff || quadratic < 0 || quadratic > 0x3ff)
        __builtin_trap(); // does not fit: no constant then
    return unsigned(linear) << 16 | unsigned(quadratic) << 6 | (unsigned(constant) & 63);
}
struct RcpRow { // (C0 << 13) + C1 * x + C2 * S(2 x) + 0x47e7, of 16-bit x
    static constexpr int constant_shift = 13, constant_low = 0x47e7 & 0x1fff, quadratic_shift = 0, linear_base = 0;
    static constexpr bool minus_linear = true;
    static constexpr int square_of = 1;
    static constexpr unsigned word(int row) {
        const int* from = rcp_table[row];
        return packed_row(-from[1], from[2], from[0] + (0x47e7 >> 13));
    }
};
struct RsqrtRow { // (C0 << 14) + C1 * x + 4 * C2 * S + 0x7fff
    static constexpr int constant_shift = 14, constant_low = 0x3fff, quadratic_shift = 2, linear_base = 0;
    static constexpr bool minus_linear = true;
    static constexpr int square_of = 0;
    static constexpr unsigned word(int row) {
        const int* from = rsqrt_table[row];
        return packed_row(-from[1], from[2], from[0] + 1);
    }
};
struct SqrtRow { // (C0 << 15) + C1 * x + 2 * C2 * S + 0x7fff; C1 is doubled for odd exponents, which count 2^-17ths too
    static constexpr int constant_shift = 15, constant_low = 1, quadratic_shift = 1, linear_base = 32768;
    static constexpr bool minus_linear = false;
    static constexpr int square_of = 0;
    static constexpr unsigned word(int row) {
        const int* from = sqrt_table[row];
        return packed_row((row < 64 ? from[1] : 2 * from[1]) - linear_base, -from[2], -(long)from[0] - 1);
    }
};

template <typename Layout> struct PackedRows { int word[128]; };
template <typename Layout> constexpr PackedRows<Layout> packed_rows() {
    PackedRows<Layout> result{};
    for (int row = 0; row < 128; ++row) result.word[row] = int(Layout::word(row));
    return result;
}
template <typename Layout> inline constexpr PackedRows<Layout> packed_rows_of = packed_rows<Layout>();

// `estimate` corrected to the last bits of the result, from which it differs by less than eight.
template <typename Layout, int N> PTM_INLINE I32<N> interpolated(I32<N> estimate, I32<N> row, I32<N> x) {
    I32<N> word = gather<N>(packed_rows_of<Layout>.word, row);
    I32<N> quadratic = (word >> (6 - Layout::quadratic_shift)) & (0x3ff << Layout::quadratic_shift);
    I32<N> sum = (word << Layout::constant_shift | Layout::constant_low) +
                 quadratic * truncated_square<N>(x << Layout::square_of);
    I32<N> product = (shift_down<N>(word, I32<N>(16)) + Layout::linear_base) * x;
    I32<N> p = Layout::minus_linear ? sum - product : product - sum;
    return estimate + (((p >> (Layout::constant_shift + 2)) - estimate) << 28 >> 28);
}

/// The unit's reciprocal of a number from 1 to 2. Right for others too, as long as neither they nor the results are
/// subnormal.
template <int N> PTM_INLINE I32<N> rcp_of_mantissa(I32<N> b) {
    return interpolated<RcpRow, N>(bits<N>(1.0f / real<N>(b)), (b >> 16) & 127, b & 0xffff);
}
template <int N> PTM_INLINE I32<N> rcp_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> r = rcp_of_mantissa<N>(b);
    r = magnitude > 253 * unit ? sign : r;
    r = magnitude < unit ? (sign | infinity_bits) : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

// What the root functions take for the table, which may be their operand times an even power of two: row (by parity of
// the exponent), offset in the segment.
template <int N> struct RootInput {
    I32<N> row, x;
    explicit PTM_INLINE RootInput(I32<N> b) : row(((b >> 17) & 127) ^ 64), x(b & 0x1ffff) {}
};

/// The unit's reciprocal root of a number from 0.5 to 2, or of any positive one, whose normalized form is `normal`.
template <int N> PTM_INLINE I32<N> rsqrt_of_mantissa(I32<N> b, I32<N> normal) {
    RootInput<N> in(normal);
    I32<N> estimate = bits<N>(1.0f / __builtin_elementwise_sqrt(real<N>(b)));
    I32<N> power_of_four = (normal & 0xffffff) == unit; // exact, one above the table's result
    return power_of_four ? estimate : interpolated<RsqrtRow, N>(estimate, in.row, in.x);
}
template <int N> PTM_INLINE I32<N> rsqrt_of_mantissa(I32<N> b) {
    return rsqrt_of_mantissa<N>(b, b);
}
/// Operands below `Smallest` count as zero.
template <int N, int Smallest> PTM_INLINE I32<N> rsqrt_with_specials(I32<N> b, I32<N> normal) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> r = rsqrt_of_mantissa<N>(b, normal);
    r = magnitude == infinity_bits ? 0 : r;
    r = b < 0 ? nan_bits : r;
    r = magnitude < Smallest ? (sign | infinity_bits) : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}
template <int N> PTM_INLINE I32<N> rsqrt_unit(I32<N> b) {
    return rsqrt_with_specials<N, unit>(b, b);
}

template <int N, int Smallest> PTM_INLINE I32<N> sqrt_with_specials(I32<N> b, I32<N> normal) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    RootInput<N> in(normal);
    I32<N> r = interpolated<SqrtRow, N>(bits<N>(__builtin_elementwise_sqrt(real<N>(b))), in.row, in.x);
    r = magnitude == infinity_bits ? magnitude : r;
    r = b < 0 ? nan_bits : r;
    r = magnitude < Smallest ? sign : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}
template <int N> PTM_INLINE I32<N> sqrt_unit(I32<N> b) {
    return sqrt_with_specials<N, unit>(b, b);
}

// What is left of 2^f without 1 + f fits 32 bits. Linear coefficients are less by 2^15.
inline constexpr PackedTable<64> ex2_packed = packed(
    ex2_table, [](long row, long c) { return (c << 8) - ((unit + (row << 17)) << 10); }, [](int, int c) { return c; },
    [](int, int c) { return c; });

template <int N> PTM_INLINE I32<N> ex2_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff;
    I32<N> huge = magnitude >= 0x43000000; // |x| >= 128, infinities and NaN
    F32<N> fixed = real<N>(huge ? 0 : magnitude) * 8388608.0f;
    I32<N> fx = __builtin_convertvector(fixed, I32<N>);
    // Negative numbers are folded by ones' complement, except where the fraction is zero.
    I32<N> folded = ~fx + ((fx & 0x7fffff) == 0 ? I32<N>(1) : I32<N>(0));
    fx = b < 0 ? folded : fx;
    I32<N> x = fx & 0x1ffff;
    PackedRow<N> row(ex2_packed, (fx >> 17) & 63);
    I32<N> p = (row.low - 32768) * x + row.high * truncated_square<N>(x) + 0x77e2;
    I32<N> r = fx + one_bits + ((row.constant + (p >> 5)) >> 10);
    r = r < unit ? 0 : r;
    r = huge ? (b < 0 ? I32<N>(0) : I32<N>(infinity_bits)) : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

inline constexpr PackedTable<64> lg2_packed = packed(
    lg2_table, [](long row, long c) { return (c << 8) - (row << 28); }, [](int, int c) { return c; },
    [](int, int c) { return 2 * c; });

template <int N> PTM_INLINE I32<N> lg2_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff;
    I32<N> x = b & 0x1ffff;
    PackedRow<N> row(lg2_packed, (b >> 17) & 63);
    I32<N> p = (row.low - 32768) * x + row.high * truncated_square<N>(x) + 0x3345;
    // In units of 2^-36: ((b - 1.0) << 13) + (m << 2) + bits 2 and 3 of p. Negative numbers are ones' complements.
    I32<N> m = row.constant + (p >> 4);
    I32<N> high = b - one_bits + (m >> 11), low = (m << 2) | ((p >> 2) & 3);
    I32<N> negative = high >> 31;
    I32<N> r = truncate_to_float<N>(high ^ negative, (low ^ negative) & 0x1fff, 13, -36) | (negative & sign_bit);
    r = b == one_bits ? 0 : r;
    r = magnitude == infinity_bits ? magnitude : r;
    r = b < 0 ? nan_bits : r;
    r = magnitude < unit ? int(0xff800000u) : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

inline constexpr PackedTable<64> sin_packed = packed(
    sin_table, [](int, long c) { return c; }, [](int, int c) { return c; }, [](int, int c) { return c; });

template <int N> PTM_INLINE I32<N> sin_cos(I32<N> b, bool cosine) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> special = magnitude >= infinity_bits;
    // |x| / 2 pi as a float rounded toward zero; its fraction in 25 bits: two of quadrant, 23 of phase.
    F32<N> x_real = real<N>(special ? 0 : magnitude), turns = x_real * 0x1.45f306p-3f;
    turns = truncated<N>(turns, __builtin_elementwise_fma(x_real, F32<N>(0x1.45f306p-3f), -turns));
    turns = turns - __builtin_elementwise_floor(turns);
    I32<N> fx = __builtin_convertvector(turns * 33554432.0f, I32<N>);
    if (cosine) {
        fx += unit;
        sign = 0;
    }
    sign ^= (fx << 7) & sign_bit;
    I32<N> phase = (fx & unit) != 0 ? ~fx : fx;
    I32<N> x = phase & 0x1ffff;
    PackedRow<N> row(sin_packed, (phase >> 17) & 63);
    I32<N> p = row.low * x + row.high * truncated_square<N>(x); // unsigned
    I32<N> r = truncate_to_float<N>(row.constant + shift_down<N>(p, I32<N>(11)), p & 0x7ff, 11, -37) | sign;
    I32<N> tiny = magnitude < unit;
    r = tiny ? (cosine ? I32<N>(one_bits) : sign) : r;
    return special ? I32<N>(nan_bits) : r;
}

template <int N> PTM_INLINE I32<N> tanh_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> e = magnitude >> 23, m = b & 0x7fffff;
    I32<N> outside = e<119 | e> 129;
    I32<N> range = (outside ? 0 : e - 119) * 3;
    I32<N> dropped = gather<N>(&tanh_ranges[0][0], range);
    I32<N> row = gather<N>(&tanh_ranges[0][1], range) + (m >> (dropped + 17));
    I32<N> exponent = gather<N>(&tanh_ranges[0][2], range);
    // The few ranges with one row have no row bits: m >> 23 is 0.
    I32<N> x = (m >> dropped) & 0x1ffff;
    row = outside ? 0 : row;
    I32<N> at = row * 3;
    I32<N> linear = gather<N>(&tanh_table[0][1], at), quadratic = gather<N>(&tanh_table[0][2], at);
    I32<N> square = truncated_square<N>(x);
    // P = (C0 << 16) + C1 * x + 2 * C2 * S has 40 bits. Its low 32 are exact; what is above bit 16 is first estimated
    // from truncated coefficients, by less than 2^9 too little, and then corrected to the exact low bits.
    I32<N> low = linear * x + 2 * quadratic * square;
    I32<N> estimate = shift_down<N>((linear >> 7) * x, I32<N>(9)) + (((quadratic >> 2) * square) >> 13);
    I32<N> high = gather<N>(&tanh_table[0][0], at) + estimate + (((low >> 16) - estimate) & 0xffff);
    // The range's exponent is added to the result's.
    I32<N> r = (truncate_to_float<N>(high, low & 0xffff, 16, -39) + (exponent - 127) * unit) | sign;
    r = e >= 130 ? (sign | one_bits) : r;
    r = e < 119 ? b : r;
    return is_nan<N>(magnitude) ? I32<N>(nan_bits) : r;
}

} // namespace sfu
