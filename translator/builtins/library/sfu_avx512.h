// SPDX-License-Identifier: Apache-2.0
// The special function unit of sfu.h, 16 lanes at a time on CPUs with AVX-512: rows of coefficients come from
// registers, and all arithmetic stays in 32-bit lanes. The bits are those of sfu.h; README.md says why it works.
#pragma once

#ifdef PTARMIGAN_SFU_BYTE_ROWS
#include "roots_of_bytes_avx512.h"
#else
#include "roots_of_words_avx512.h"
#endif

namespace sfu {

// --- rcp, rsqrt, sqrt ---------------------------------------------------------------------------------

template <> PTM_INLINE I32<16> rcp_of_mantissa<16>(I32<16> b) {
    Sum r = rcp_of(vec(b));
    return (I32<16>)add(r.estimate, r.missing);
}
template <> PTM_INLINE I32<16> rcp_unit<16>(I32<16> input) {
    Sum sum = rcp_of(vec(input));
    // Infinite where the result would be subnormal, which the unit flushes: from 2^126 on. Zero where the input is.
    V product = as_bits(as_real(flushed(vec(input))) * _mm512_set1_ps(0x1.fffffep1f));
    V r = fixed_up(add(sum.estimate, sum.missing), product,
                   responses(quiet_nan, infinity_with_sign, keep, negative_zero, positive_zero, keep, keep));
    return (I32<16>)canonical_nan(r);
}
/// The reciprocal of b's mantissa and sign, times 2^-exponent.
PTM_INLINE __m512 mantissa_reciprocal(V b, __m512 exponent) {
    V mantissa = as_bits(_mm512_getmant_ps(as_real(b), _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src));
    V minus_exponent = _mm512_xor_si512(as_bits(exponent), splat(sign_bit));
    return _mm512_scalef_ps(as_real(vec(rcp_of_mantissa<16>((I32<16>)mantissa))), as_real(minus_exponent));
}
// Zeros and infinities come right through their exponents: vgetexpps gives infinite ones.
template <> PTM_INLINE I32<16> rcp_full<16>(I32<16> input) {
    V b = vec(input);
    return (I32<16>)canonical_nan(as_bits(mantissa_reciprocal(b, _mm512_getexp_ps(as_real(b)))));
}

/// b's exponent, infinite of zero and infinity. Large divisors have a subnormal reciprocal: with `Full` their exponent
/// is two less, else it is infinite, since the unit flushes.
template <bool Full> PTM_INLINE __m512 divisor_exponent(V b, __mmask16 large) {
    __m512 exponent = _mm512_getexp_ps(as_real(b));
    return Full ? _mm512_mask_sub_ps(exponent, large, exponent, _mm512_set1_ps(2))
                : _mm512_mask_mov_ps(exponent, large, as_real(splat(infinity_bits)));
}
/// 2^126 itself needs no scaling.
PTM_INLINE __mmask16 is_large(V b) {
    return compare<_CMP_GT_OQ>(magnitude_of(b), 0x1p126f);
}
/// a * rcp(b) without flushing. Where divisors are zero or subnormal, both are scaled, and with `Full` where they are
/// large, too.
template <bool Full> PTM_INLINE V quotient_avx512(V a, V b) {
    __mmask16 small = is<class_zero | class_subnormal>(b), large = is_large(b);
    a = scaled_where(small, a, 0x1p24f);
    if (Full) a = scaled_where(large, a, 0.25f); // harmless for infinity
    __m512 exponent = divisor_exponent<Full>(b, large);
    exponent = _mm512_mask_add_ps(exponent, small, exponent, _mm512_set1_ps(24));
    return canonical_nan(as_bits(as_real(a) * mantissa_reciprocal(b, exponent)));
}
/// The same with flushing, of products that are below 2^-126 when rounded to 24 bits.
template <bool Full> PTM_INLINE V quotient_ftz_avx512(V a, V b) {
    a = flushed(a);
    __mmask16 large = is_large(b);
    if (Full) {
        __mmask16 tiny =
            _mm512_mask_cmp_ps_mask(large, as_real(magnitude_of(a)), _mm512_set1_ps(0x1p-124f), _CMP_LT_OQ);
        a = _mm512_mask_and_epi32(scaled_where(large, a, 0.25f), tiny, a, splat(sign_bit));
    }
    __m512 x = as_real(a), r = mantissa_reciprocal(b, divisor_exponent<Full>(flushed(b), large));
    V product = as_bits(x * r), scaled = as_bits(x * _mm512_set1_ps(0x1p24f) * r);
    product =
        _mm512_mask_and_epi32(product, compare<_CMP_LT_OQ>(magnitude_of(scaled), 0x1p-102f), product, splat(sign_bit));
    return canonical_nan(product);
}

template <> PTM_INLINE I32<16> rsqrt_unit<16>(I32<16> input) {
    return (I32<16>)rsqrt_avx512(vec(input), flushed(vec(input)));
}
template <> PTM_INLINE I32<16> sqrt_unit<16>(I32<16> input) {
    return (I32<16>)sqrt_avx512(vec(input), flushed(vec(input)));
}

// --- ex2, lg2, sin: 64 rows of two words: the constant; the linear coefficient above the quadratic one ---------------

struct Segments {
    Rows<64> constant, slopes;
};
template <typename Constant, typename Linear, typename Quadratic>
constexpr Segments segments_of(Constant constant, Linear linear, Quadratic quadratic) {
    return {rows_of<64>(constant),
            rows_of<64>([=](int row) { return unsigned(linear(row)) << 16 | (unsigned(quadratic(row)) & 0xffff); })};
}
struct Segment {
    Row row;
    V x; ///< offset in the segment
    explicit PTM_INLINE Segment(V word) : row(row_in<17>(word)), x(_mm512_and_si512(word, splat(0x1ffff))) {}
};
/// start + linear * x + quadratic * S, where S comes last.
PTM_INLINE V polynomial(V start, const Segments& table, const Segment& in) {
    V slopes = look_up(table.slopes, in.row);
    V linear = multiply(_mm512_srai_epi32(slopes, 16), in.x), square = truncated_square(in.x); // less than 2^15
    return add_products(add(start, linear), slopes, square);
}
/// `value` as two halves with sign, of which the upper one counts 2^16.
constexpr unsigned signed_halves(long value) {
    return (unsigned(value + 0x8000) & 0xffff0000u) | (unsigned(value) & 0xffff);
}
// The constant counts quarters of the result's last place. Its low half goes into the sum with what is below that
// place, its high half beside it: no 32 bits hold all.
inline constexpr Segments ex2_segments =
    segments_of([](long row) { return signed_halves((long)ex2_table[row][0] - ((unit + (row << 17)) << 2)); },
                [](int row) { return ex2_table[row][1] - linear_base; }, [](int row) { return ex2_table[row][2]; });

/// For -126 <= x, from x * 2^23; `most` from x = 128 on and for NaN; zero if not `where`.
PTM_INLINE V ex2_of(V b, __m512 scaled, __mmask16 where, V most) {
    V fx = _mm512_cvttps_epi32(scaled), sign = _mm512_srai_epi32(b, 31);
    // Negative numbers are folded by ones' complement, except where the fraction is zero. These are put right in the
    // sum only, since the polynomial gives nothing for the largest fraction either: masks take long to make.
    V folded = add(fx, sign);
    __mmask16 whole = _mm512_testn_epi32_mask(fx, splat(0x7fffff));
    Segment in(folded);
    V constant = look_up(ex2_segments.constant, in.row);
    V start = add_products(splat(0x77e2), constant, splat(1 << 13));
    V fraction = _mm512_srai_epi32(polynomial(start, ex2_segments, in), 15);
    V r = add(_mm512_mask_sub_epi32(folded, whole, folded, sign), splat(one_bits));
    r = add(add_products(r, constant, splat(1 << (16 + 14))), fraction);
    return _mm512_maskz_min_epu32(where, r, most); // out of range they are 0x80000000 and more
}
PTM_INLINE V infinity_or_nan(V b) {
    return nan_where(is<class_nan>(b), splat(infinity_bits));
}
PTM_INLINE __m512 times(V b, float factor) {
    return as_real(b) * _mm512_set1_ps(factor);
}
template <> PTM_INLINE I32<16> ex2_unit<16>(I32<16> input) {
    V b = vec(input);
    // Not less: NaN, too.
    return (I32<16>)ex2_of(b, times(b, 0x1p23f), compare<_CMP_NLT_UQ>(b, -126.0f), infinity_or_nan(b));
}
// Below -126 the result is subnormal: the square of ex2(x / 2).
PTM_INLINE V ex2_avx512(V b) {
    __mmask16 low = compare<_CMP_LT_OQ>(b, -126.0f);
    __m512 scaled = _mm512_mask_mul_ps(times(b, 0x1p23f), low, as_real(b), _mm512_set1_ps(0x1p22f));
    V r = ex2_of(b, scaled, compare<_CMP_NLT_UQ>(b, -252.0f), infinity_or_nan(b));
    return as_bits(_mm512_mask_mul_ps(as_real(r), low, as_real(r), as_real(r)));
}

// As with ex2; sums count quarters of 2^-36.
inline constexpr Segments lg2_segments =
    segments_of([](long row) { return signed_halves((long)lg2_table[row][0] - (row << 20)); },
                [](int row) { return lg2_table[row][1] - linear_base; }, [](int row) { return 2 * lg2_table[row][2]; });

/// For a normal positive number `b`; `mantissa` has its mantissa.
PTM_INLINE V lg2_of(V b, V mantissa) {
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC, down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    Segment in(mantissa);
    V constant = look_up(lg2_segments.constant, in.row);
    V p = polynomial(add_products(splat(0x3345), constant, splat(1 << 12)), lg2_segments, in);
    // In units of 2^-36: high * 2^13 + bits 2 to 14 of p. Of negative numbers the unit takes the ones' complement,
    // which is one more before the sign goes, and truncates; high may be rounded down, as what is added is not zero.
    V line = add(b, splat(-one_bits));
    V high = add(add_products(line, constant, splat(1 << (16 + 13))), _mm512_srai_epi32(p, 15));
    V complement = _mm512_slli_epi32(_mm512_srai_epi32(line, 31), 2);
    V low = _mm512_sub_epi32(_mm512_and_si512(p, splat(0x7ffc)), complement);
    __m512 sum = _mm512_fmadd_round_ps(_mm512_cvt_roundepi32_ps(high, down), _mm512_set1_ps(1 << 15),
                                       _mm512_cvtepi32_ps(low), toward_zero);
    return _mm512_sub_epi32(as_bits(sum), splat(38 * unit));
}
PTM_INLINE V lg2_specials(V b, V r) {
    r = fixed_up(r, b, responses(any_nan, negative_infinity, positive_zero, any_nan, positive_infinity, any_nan, keep));
    return canonical_nan(r);
}
template <> PTM_INLINE I32<16> lg2_unit<16>(I32<16> input) {
    V b = vec(input);
    return (I32<16>)lg2_specials(flushed(b), lg2_of(b, b));
}
PTM_INLINE V lg2_avx512(V input) {
    __mmask16 small = is<class_subnormal>(input);
    V mantissa = as_bits(_mm512_getmant_ps(as_real(input), _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src));
    V r = lg2_of(scaled_where(small, input, 0x1p24f), mantissa);
    r = as_bits(_mm512_mask_sub_ps(as_real(r), small, as_real(r), _mm512_set1_ps(24.0f)));
    return lg2_specials(input, r);
}

inline constexpr Segments sin_segments =
    segments_of([](int row) { return sin_table[row][0]; }, [](int row) { return sin_table[row][1]; },
                [](int row) { return sin_table[row][2]; });

template <> PTM_INLINE I32<16> sin_cos<16>(I32<16> input, bool cosine) {
    V b = vec(input);
    // |x| / 2 pi as a float rounded toward zero; its fraction in 25 bits: two of quadrant, 23 of phase.
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    __m512 x = as_real(magnitude_of(b)), turns = _mm512_mul_round_ps(x, as_real(splat(0x3e22f983)), toward_zero);
    __m512 scaled = _mm512_mul_round_ps(x, as_real(splat(0x3e22f983 + 25 * unit)), toward_zero);
    __m512 whole = _mm512_roundscale_ps(turns, toward_zero);
    V fx = _mm512_cvttps_epi32(_mm512_fnmadd_ps(whole, _mm512_set1_ps(0x1p25f), scaled));
    if (cosine) fx = add(fx, splat(unit));
    V sign = _mm512_slli_epi32(fx, 7);
    if (!cosine) sign = _mm512_xor_si512(sign, b);
    // The ones' complement in odd quadrants, where it is the smaller one.
    const V half_turn = splat(2 * unit - 1);
    Segment in(_mm512_min_epu32(_mm512_and_si512(fx, half_turn), _mm512_andnot_si512(fx, half_turn)));
    V slopes = look_up(sin_segments.slopes, in.row);
    V p = multiply(_mm512_srai_epi32(slopes, 16), in.x);
    p = add_products(p, slopes, truncated_square(in.x)); // unsigned
    V high = add(look_up(sin_segments.constant, in.row), _mm512_srli_epi32(p, 11));
    __m512 low = _mm512_cvtepi32_ps(_mm512_and_si512(p, splat(0x7ff))) * _mm512_set1_ps(0x1p-37f);
    V r = as_bits(
        _mm512_fmadd_round_ps(_mm512_cvt_roundepi32_ps(high, toward_zero), _mm512_set1_ps(0x1p-26f), low, toward_zero));
    r = _mm512_or_si512(r, _mm512_and_si512(sign, splat(sign_bit)));
    if (cosine) r = _mm512_mask_mov_epi32(r, is<class_zero | class_subnormal>(b), splat(one_bits));
    return (I32<16>)nan_where(is<class_nan | class_infinity>(b), r);
}

// --- tanh: rows and resolution depend on the exponent ---------------------------------------------------

/// high * 2^Shift + low rounded toward zero, for 0 <= low < 2^Shift and high >= 0.
template <int Shift> PTM_INLINE __m512 truncated_to_float(V high, V low) {
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    __m512 h = _mm512_cvt_roundepi32_ps(high, toward_zero), l = _mm512_cvtepi32_ps(low);
    return _mm512_fmadd_round_ps(h, _mm512_set1_ps(1 << Shift), l, toward_zero);
}

template <int Column> constexpr int tanh_word(int row) {
    return row < tanh_rows ? tanh_table[row][Column] : 0;
}
inline constexpr Rows<64> tanh_constant = rows_of<64>(tanh_word<0>), tanh_linear = rows_of<64>(tanh_word<1>),
                          tanh_quadratic = rows_of<64>(tanh_word<2>);

// By the low nibble of the biased exponent (119 to 129): dropped bits of the mantissa, and in the places of a Segment's
// word the first row and the exponent of the result less 119.
struct alignas(64) TanhRanges {
    std::array<int, 16> dropped{}, word{};
};
constexpr TanhRanges tanh_ranges_by_nibble() {
    TanhRanges result;
    for (int range = 0; range < 11; ++range) {
        const int* from = tanh_ranges[range];
        result.dropped[(range + 119) & 15] = from[0];
        result.word[(range + 119) & 15] = from[1] << 17 | (from[2] - 119) << 23;
    }
    return result;
}
inline constexpr TanhRanges tanh_by_nibble = tanh_ranges_by_nibble();

template <> PTM_INLINE I32<16> tanh_unit<16>(I32<16> input) {
    V b = vec(input), magnitude = magnitude_of(b);
    V e = _mm512_srli_epi32(magnitude, 23);
    V dropped = _mm512_permutexvar_epi32(e, _mm512_load_si512(tanh_by_nibble.dropped.data()));
    V range = _mm512_permutexvar_epi32(e, _mm512_load_si512(tanh_by_nibble.word.data()));
    V word = add(range, _mm512_srlv_epi32(_mm512_and_si512(b, splat(0x7fffff)), dropped));
    Segment in(word);
    // P = (C0 << 16) + C1 * x + 2 * C2 * S has 40 bits. Its low 32 are exact; what is above bit 16 is first estimated
    // from truncated coefficients, by less than 2^9 too little, and then corrected to the exact low bits.
    V constant = look_up(tanh_constant, in.row), linear = look_up(tanh_linear, in.row);
    V quadratic = look_up(tanh_quadratic, in.row);
    V square = truncated_square(in.x);
    V low = add(multiply(linear, in.x), multiply(add(quadratic, quadratic), square));
    V estimate = add(_mm512_srli_epi32(multiply(_mm512_srli_epi32(linear, 7), in.x), 9),
                     _mm512_srai_epi32(multiply(_mm512_srai_epi32(quadratic, 2), square), 13));
    V missing = _mm512_and_si512(_mm512_sub_epi32(_mm512_srli_epi32(low, 16), estimate), splat(0xffff));
    V high = add(add(constant, estimate), missing);
    V r = as_bits(truncated_to_float<16>(high, _mm512_and_si512(low, splat(0xffff))));
    r = add(r, _mm512_sub_epi32(_mm512_and_si512(word, splat(int(0xff800000u))), splat(47 * unit)));
    r = _mm512_mask_mov_epi32(r, _mm512_cmpge_epi32_mask(magnitude, splat(130 * unit)), splat(one_bits));
    r = _mm512_mask_mov_epi32(r, _mm512_cmplt_epi32_mask(magnitude, splat(119 * unit)), magnitude);
    r = _mm512_or_si512(r, _mm512_and_si512(b, splat(sign_bit)));
    return (I32<16>)nan_where(is<class_nan>(b), r);
}

} // namespace sfu
