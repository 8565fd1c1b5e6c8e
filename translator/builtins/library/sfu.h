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

// Comparisons of bits as floats: one instruction where 32-bit integers without sign take two or three. No NaN is less,
// nor is one not_less.
template <int N> PTM_INLINE I32<N> less(I32<N> a, float b) {
    return real<N>(a) < F32<N>(b);
}
template <int N> PTM_INLINE I32<N> is_number(I32<N> b) {
    return real<N>(b) == real<N>(b);
}
template <int N> PTM_INLINE I32<N> is_not_zero(I32<N> b) {
    return real<N>(b) != F32<N>(0.0f);
}
template <int N> PTM_INLINE I32<N> nan_unless_number(I32<N> b, I32<N> r) {
    return is_number<N>(b) ? r : I32<N>(nan_bits);
}
/// Subnormal numbers become zeros.
template <int N> PTM_INLINE I32<N> flush(I32<N> b) {
    return b & (less<N>(b & 0x7fffffff, 0x1p-126f) ? I32<N>(sign_bit) : I32<N>(-1));
}

// x * x >> 19 of a 17-bit x with every row of the partial products truncated, as the multiplier array does it.
template <int N> PTM_INLINE I32<N> truncated_square(I32<N> x) {
    auto corner = [](I32<N> u, I32<N> h) {
        return (u >> 2) * (h >> 2) + ((u >> 3) & (h >> 1) & 1) + ((u >> 1) & (h >> 3) & 1);
    };
    I32<N> h = x >> 9, u = (x >> 1) & 255;
    return ((h * h) >> 1) + (u >> 4) * (h >> 4) + corner(u >> 4, h & 15) + corner(u & 15, h >> 4);
}
/// The square of x times a coefficient: the low 16 bits of `coefficient`, with sign.
template <int N> PTM_INLINE I32<N> quadratic_term(I32<N> coefficient, I32<N> x) {
    return (coefficient << 16 >> 16) * truncated_square<N>(x);
}

// Rounds a positive sum or product toward zero: where it was rounded up, `error` (the exact value less it) is negative.
template <int N> PTM_INLINE F32<N> truncated(F32<N> rounded, F32<N> error) {
    return real<N>(bits<N>(rounded) + (bits<N>(error) >> 31));
}

// (high * 2^shift + low) * 2^scale truncated to a float's 24 bits, for 0 <= high and 0 <= low < 2^shift, shift <= 16.
// Results are normal or zero.
template <int N> PTM_INLINE I32<N> truncate_to_float(I32<N> high, I32<N> low, int shift, int scale) {
    auto power = [](int exponent) { return F32<N>(__builtin_bit_cast(float, (127 + exponent) << 23)); };
    // Two floats without rounding, whose sum's error is a float, too.
    F32<N> a = __builtin_convertvector(high & ~255, F32<N>);
    F32<N> b = __builtin_convertvector((high & 255) << shift | low, F32<N>);
    F32<N> sum = __builtin_elementwise_fma(a, power(shift), b);
    F32<N> error = __builtin_elementwise_fma(a, power(shift), -sum) + b;
    return bits<N>(truncated<N>(sum, error) * power(scale));
}

/// A row's word, or both words of a row. The AVX2 variant has its own.
template <int N> PTM_INLINE I32<N> look_up(const int* rows, I32<N> row) {
    return gather<N>(rows, row);
}
template <int N> PTM_INLINE void look_up(const int (*rows)[2], I32<N> row, I32<N>& first, I32<N>& second) {
    first = gather<N>(&rows[0][0], row * 2);
    second = gather<N>(&rows[0][1], row * 2);
}
// A row in two words: a constant; the linear coefficient (16 bits, with sign unless it says otherwise) above the
// quadratic one.
template <int Rows> struct alignas(8) PackedTable { int row[Rows][2]; };
template <int Rows, typename Constant, typename Linear, typename Quadratic>
constexpr PackedTable<Rows> packed(const int (&table)[Rows][3], Constant constant, Linear linear, Quadratic quadratic) {
    PackedTable<Rows> result{};
    for (int i = 0; i < Rows; ++i) {
        const int* from = table[i];
        result.row[i][0] = int(unsigned(constant(i, long(from[0]))));
        result.row[i][1] = int(unsigned(linear(from[1])) << 16 | (unsigned(quadratic(from[2])) & 0xffff));
    }
    return result;
}
/// The row that stands in `word` from bit 17 on, and the polynomial without its constant, linear * x + quadratic * S,
/// for the x below.
template <int N> struct Interpolation {
    I32<N> constant, p;
    template <int Rows> PTM_INLINE Interpolation(const PackedTable<Rows>& table, I32<N> word) {
        I32<N> slopes;
        look_up<N>(table.row, (word >> 17) & 63, constant, slopes);
        I32<N> x = word & 0x1ffff;
        p = (slopes >> 16) * x + quadratic_term<N>(slopes, x);
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
    static constexpr long constant(int row) { return rcp_table[row][0] + (0x47e7 >> 13); }
    static constexpr unsigned word(int row) { return packed_row(-rcp_table[row][1], rcp_table[row][2], constant(row)); }
};
struct RsqrtRow { // (C0 << 14) + C1 * x + 4 * C2 * S + 0x7fff
    static constexpr int constant_shift = 14, constant_low = 0x3fff, quadratic_shift = 2, linear_base = 0;
    static constexpr bool minus_linear = true;
    static constexpr int square_of = 0;
    // By parity of the exponent: the lowest bit of 127 is one.
    static constexpr long constant(int row) { return rsqrt_table[row ^ 64][0] + 1; }
    static constexpr unsigned word(int row) {
        return packed_row(-rsqrt_table[row ^ 64][1], rsqrt_table[row ^ 64][2], constant(row));
    }
};
struct SqrtRow { // (C0 << 15) + C1 * x + 2 * C2 * S + 0x7fff; C1 is doubled for odd exponents, which count 2^-17ths too
    static constexpr int constant_shift = 15, constant_low = 1, quadratic_shift = 1, linear_base = 32768;
    static constexpr bool minus_linear = false;
    static constexpr int square_of = 0;
    static constexpr long constant(int row) { return -(long)sqrt_table[row ^ 64][0] - 1; }
    static constexpr unsigned word(int row) {
        const int* from = sqrt_table[row ^ 64];
        return packed_row((row >= 64 ? from[1] : 2 * from[1]) - linear_base, -from[2], constant(row));
    }
};

template <typename Layout> struct PackedRows { int word[128]; };
template <typename Layout> constexpr PackedRows<Layout> packed_rows() {
    PackedRows<Layout> result{};
    for (int row = 0; row < 128; ++row) result.word[row] = int(Layout::word(row));
    return result;
}
template <typename Layout> inline constexpr PackedRows<Layout> packed_rows_of = packed_rows<Layout>();

/// What is missing to the result's last bits in `estimate`, which is less by at most 15 units of the last place.
template <typename Layout, int N> PTM_INLINE I32<N> missing_to_unit(I32<N> estimate, I32<N> row, I32<N> x) {
    I32<N> word = look_up<N>(packed_rows_of<Layout>.word, row);
    I32<N> quadratic = (word >> (6 - Layout::quadratic_shift)) & (0x3ff << Layout::quadratic_shift);
    I32<N> sum =
        (word << Layout::constant_shift | Layout::constant_low) + quadratic_term<N>(quadratic, x << Layout::square_of);
    I32<N> product = (shift_down<N>(word, I32<N>(16)) + Layout::linear_base) * x;
    I32<N> p = Layout::minus_linear ? sum - product : product - sum;
    return ((p >> (Layout::constant_shift + 2)) - estimate) & 15;
}
// Estimates are made too small on purpose, by 2^-21 of themselves: 4 to 8 units, where they and the unit err by few.
inline constexpr float almost_one = 1 - 0x1p-21f;

/// The unit's reciprocal of a number from 1 to 2. Right for others too, as long as neither they nor the results are
/// subnormal.
template <int N> PTM_INLINE I32<N> rcp_of_mantissa(I32<N> b) {
    I32<N> estimate = bits<N>(almost_one / real<N>(b));
    return estimate + missing_to_unit<RcpRow, N>(estimate, (b >> 16) & 127, b & 0xffff);
}
template <int N> PTM_INLINE I32<N> rcp_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> r = rcp_of_mantissa<N>(b);
    r = less<N>(magnitude, 0x1p-126f) ? infinity_bits | sign : r;
    r = real<N>(magnitude) > F32<N>(0x1p126f) ? sign : r;
    return nan_unless_number<N>(b, r);
}
/// Subnormal results and operands included.
template <int N> PTM_INLINE I32<N> rcp_full(I32<N> b) {
    F32<N> factor = less<N>(b & 0x7fffffff, 0x1p-126f) ? F32<N>(0x1p24f) : F32<N>(1.0f);
    I32<N> normal = bits<N>(real<N>(b) * factor);
    // The reciprocal of its mantissa, from 0.25 to 0.5, and of its exponent: infinite for zeros, zero for infinities.
    I32<N> r = rcp_of_mantissa<N>((normal & (sign_bit | (unit - 1))) | 0x40000000);
    F32<N> power = real<N>(infinity_bits - (normal & infinity_bits));
    return nan_unless_number<N>(b, bits<N>(real<N>(r) * factor * power));
}

// What the root functions take for the table, which may be their operand times an even power of two: row (by parity of
// the exponent), offset in the segment.
template <int N> struct RootInput {
    I32<N> row, x;
    explicit PTM_INLINE RootInput(I32<N> b) : row((b >> 17) & 127), x(b & 0x1ffff) {}
};

/// What is missing to the unit's reciprocal root in an estimate: of powers of four, which are exact, it is one more
/// than the table's. For infinity it is nothing.
template <int N> PTM_INLINE I32<N> missing_to_rsqrt(I32<N> estimate, I32<N> b) {
    RootInput<N> in(b);
    I32<N> power_of_four = (b & 0xffffff) == unit;
    return missing_to_unit<RsqrtRow, N>(estimate + power_of_four, in.row, in.x);
}
template <int N> PTM_INLINE I32<N> rsqrt_estimate(I32<N> b) {
    return bits<N>(almost_one / __builtin_elementwise_sqrt(real<N>(b)));
}
/// The unit's reciprocal root of a number from 0.5 to 2.
template <int N> PTM_INLINE I32<N> rsqrt_of_mantissa(I32<N> b) {
    I32<N> estimate = rsqrt_estimate<N>(b);
    return estimate + missing_to_rsqrt<N>(estimate, b);
}
// Of zeros, infinities and negative numbers the CPU's root and quotient are the unit's, but for the kind of NaN.
// `normal` is the operand, or if it is subnormal, it times an even power of two.
template <int N> PTM_INLINE I32<N> rsqrt_with_specials(I32<N> b, I32<N> normal) {
    I32<N> estimate = rsqrt_estimate<N>(b);
    I32<N> r = estimate + (missing_to_rsqrt<N>(estimate, normal) & is_not_zero<N>(b));
    return nan_unless_number<N>(estimate, r);
}
template <int N> PTM_INLINE I32<N> rsqrt_unit(I32<N> b) {
    I32<N> flushed = flush<N>(b);
    return rsqrt_with_specials<N>(flushed, flushed);
}

template <int N> PTM_INLINE I32<N> sqrt_with_specials(I32<N> b, I32<N> normal) {
    RootInput<N> in(normal);
    F32<N> root = __builtin_elementwise_sqrt(real<N>(b));
    I32<N> estimate = bits<N>(root * almost_one);
    I32<N> r = estimate + (missing_to_unit<SqrtRow, N>(estimate, in.row, in.x) & is_not_zero<N>(b));
    return nan_unless_number<N>(estimate, r);
}
template <int N> PTM_INLINE I32<N> sqrt_unit(I32<N> b) {
    I32<N> flushed = flush<N>(b);
    return sqrt_with_specials<N>(flushed, flushed);
}

// What is left of 2^f without 1 + f fits 32 bits. Linear coefficients are less by 2^15.
inline constexpr int linear_base = 32768;

inline constexpr PackedTable<64> ex2_packed = packed(
    ex2_table, [](long row, long c) { return (c << 8) - ((unit + (row << 17)) << 10); },
    [](int c) { return c - linear_base; }, [](int c) { return c; });

/// Zero below -126.
template <int N> PTM_INLINE I32<N> ex2_unit(I32<N> b) {
    F32<N> x = real<N>(b);
    F32<N> bounded = x < 128.0f ? x : F32<N>(128.0f); // NaN, too
    bounded = bounded > -127.0f ? bounded : F32<N>(-127.0f);
    I32<N> fx = __builtin_convertvector(bounded * 8388608.0f, I32<N>);
    // Negative numbers are folded by ones' complement, except where the fraction is zero.
    I32<N> whole = (fx & 0x7fffff) == 0;
    fx += (fx >> 31) & ~whole;
    Interpolation<N> at(ex2_packed, fx);
    I32<N> r = fx + one_bits + ((at.constant + ((at.p + 0x77e2) >> 5)) >> 10);
    r &= x >= F32<N>(-126.0f);
    return nan_unless_number<N>(b, r);
}

inline constexpr PackedTable<64> lg2_packed = packed(
    lg2_table, [](long row, long c) { return (c << 8) - (row << 28); }, [](int c) { return c - linear_base; },
    [](int c) { return 2 * c; });

template <int N> PTM_INLINE I32<N> lg2_unit(I32<N> b) {
    Interpolation<N> at(lg2_packed, b);
    I32<N> p = at.p + 0x3345;
    // In units of 2^-36: ((b - 1.0) << 13) + (m << 2) + bits 2 and 3 of p. Negative numbers are ones' complements.
    I32<N> m = at.constant + (p >> 4);
    I32<N> high = b - one_bits + (m >> 11), low = (m << 2) | ((p >> 2) & 3);
    I32<N> negative = high >> 31;
    I32<N> r = truncate_to_float<N>(high ^ negative, (low ^ negative) & 0x1fff, 13, -36) | (negative & sign_bit);
    F32<N> x = real<N>(b);
    r &= x != F32<N>(1.0f);
    r = x < real<N>(I32<N>(infinity_bits)) ? r : I32<N>(infinity_bits);
    r = less<N>(b & 0x7fffffff, 0x1p-126f) ? int(0xff800000u) : r;
    return x > F32<N>(-0x1p-126f) ? r : I32<N>(nan_bits);
}

inline constexpr PackedTable<64> sin_packed = packed(
    sin_table, [](int, long c) { return c; }, [](int c) { return c; }, [](int c) { return c; });

template <int N> PTM_INLINE I32<N> sin_cos(I32<N> b, bool cosine) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> finite = less<N>(magnitude, __builtin_inff());
    // |x| / 2 pi as a float rounded toward zero; its fraction in 25 bits: two of quadrant, 23 of phase.
    F32<N> x_real = real<N>(magnitude & finite), turns = x_real * 0x1.45f306p-3f;
    turns = truncated<N>(turns, __builtin_elementwise_fma(x_real, F32<N>(0x1.45f306p-3f), -turns));
    turns = turns - __builtin_elementwise_floor(turns);
    I32<N> fx = __builtin_convertvector(turns * 33554432.0f, I32<N>);
    if (cosine) {
        fx += unit;
        sign = 0;
    }
    sign ^= (fx << 7) & sign_bit;
    I32<N> phase = fx ^ (fx << 8 >> 31); // the ones' complement in odd quadrants
    Interpolation<N> at(sin_packed, phase);
    I32<N> high = at.constant + shift_down<N>(at.p, I32<N>(11)); // p is unsigned
    I32<N> r = truncate_to_float<N>(high, at.p & 0x7ff, 11, -37) | sign;
    r = less<N>(magnitude, 0x1p-126f) ? (cosine ? I32<N>(one_bits) : sign) : r;
    return finite ? r : I32<N>(nan_bits);
}

// tanh: rows and resolution depend on the exponent. Pairs of words: of each range how many low bits of the mantissa are
// dropped, and in the places of a row's word (bit 17 on) its first row and above the exponent of its results less 119;
// of each row the linear and twice the quadratic coefficient.
inline constexpr int tanh_rows = sizeof(tanh_table) / sizeof(tanh_table[0]);
struct alignas(8) TanhWords {
    int range[11][2]{}, slopes[tanh_rows][2]{};
    int constant[tanh_rows]{};
};
constexpr TanhWords tanh_words_of_tables() {
    TanhWords result;
    for (int i = 0; i < 11; ++i) {
        result.range[i][0] = tanh_ranges[i][0];
        result.range[i][1] = tanh_ranges[i][1] << 17 | (tanh_ranges[i][2] - 119) << 23;
    }
    for (int i = 0; i < tanh_rows; ++i) {
        result.slopes[i][0] = tanh_table[i][1];
        result.slopes[i][1] = 2 * tanh_table[i][2];
        result.constant[i] = tanh_table[i][0];
    }
    return result;
}
inline constexpr TanhWords tanh_words = tanh_words_of_tables();

template <int N> PTM_INLINE I32<N> tanh_unit(I32<N> b) {
    I32<N> magnitude = b & 0x7fffffff, sign = b & sign_bit;
    I32<N> small = less<N>(magnitude, 0x1p-8f), inside = less<N>(magnitude, 8.0f) & ~small;
    I32<N> dropped, word, linear, quadratic;
    look_up<N>(tanh_words.range, ((magnitude >> 23) - 119) & inside, dropped, word);
    word += ((b & (unit - 1)) >> dropped) & inside;
    I32<N> row = (word >> 17) & 63, x = word & 0x1ffff;
    I32<N> constant = look_up<N>(tanh_words.constant, row);
    look_up<N>(tanh_words.slopes, row, linear, quadratic);
    I32<N> square = truncated_square<N>(x);
    // P = (C0 << 16) + C1 * x + 2 * C2 * S has 40 bits. Its low 32 are exact; what is above bit 16 is first estimated
    // from truncated coefficients, by less than 2^9 too little, and then corrected to the exact low words.
    I32<N> low = linear * x + quadratic * square;
    I32<N> estimate = shift_down<N>((linear >> 7) * x, I32<N>(9)) + (((quadratic >> 3) * square) >> 13);
    I32<N> high = constant + estimate + ((shift_down<N>(low, I32<N>(16)) - estimate) & 0xffff);
    // The range's exponent is added to the result's.
    I32<N> r = truncate_to_float<N>(high, low & 0xffff, 16, -39) + ((word & int(0xff800000u)) - 8 * unit);
    r = small ? magnitude : inside ? r : I32<N>(one_bits);
    return nan_unless_number<N>(b, r | sign);
}

} // namespace sfu
