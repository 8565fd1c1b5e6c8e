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
    V b = flushed(vec(input));
    Sum sum = rcp_of(b);
    // Infinite where the result would be subnormal, which the unit flushes: from 2^126 on.
    V product = as_bits(as_real(b) * _mm512_set1_ps(0x1.fffffep1f));
    V r = fixed_up(add(sum.estimate, sum.missing), product,
                   responses(quiet_nan, infinity_with_sign, keep, negative_zero, positive_zero, keep, keep));
    return (I32<16>)canonical_nan(r);
}
// Zeros and infinities come right through their exponents: vgetexpps gives infinite ones.
template <> PTM_INLINE I32<16> rcp_full<16>(I32<16> operand) {
    V input = vec(operand);
    __m512 b = as_real(input);
    V mantissa = as_bits(_mm512_getmant_ps(b, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src));
    V r = vec(rcp_of_mantissa<16>((I32<16>)mantissa));
    V exponent = _mm512_xor_si512(as_bits(_mm512_getexp_ps(b)), splat(sign_bit));
    return (I32<16>)as_bits(
        _mm512_mask_scalef_ps(as_real(splat(nan_bits)), is_number(input), as_real(r), as_real(exponent)));
}

/// rcp(b), where `large` divisors have a subnormal one: with `Full` these have been scaled, else it is zero.
template <bool Full> PTM_INLINE V divisor_reciprocal(V b, __mmask16 large) {
    V r = vec(rcp_of_mantissa<16>((I32<16>)b));
    if (!Full) r = _mm512_mask_and_epi32(r, large, b, splat(sign_bit));
    return fixed_up(r, b, responses(quiet_nan, infinity_with_sign, keep, negative_zero, positive_zero, keep, keep));
}
/// a * rcp(b) without flushing. Divisors that are zero or subnormal are scaled, and with `Full` large ones too, whose
/// reciprocals the unit flushes.
template <bool Full> PTM_INLINE V quotient_avx512(V a, V b) {
    __mmask16 small = is<class_zero | class_subnormal>(b);
    __mmask16 large = compare<_CMP_GT_OQ>(magnitude_of(b), 0x1p126f);
    a = scaled_where(small, a, 0x1p24f);
    b = scaled_where(small, b, 0x1p24f);
    if (Full) { // harmless for infinity; 2^126 needs no scaling
        a = scaled_where(large, a, 0.25f);
        b = scaled_where(large, b, 0.25f);
    }
    V r = divisor_reciprocal<Full>(b, large);
    V product = as_bits(as_real(a) * as_real(r));
    return nan_where(is<class_nan>(product), product);
}
/// The same with flushing, of products that are below 2^-126 when rounded to 24 bits.
template <bool Full> PTM_INLINE V quotient_ftz_avx512(V a, V b) {
    a = flushed(a);
    b = flushed(b);
    __mmask16 large = compare<_CMP_GT_OQ>(magnitude_of(b), 0x1p126f);
    if (Full) {
        __mmask16 tiny =
            _mm512_mask_cmp_ps_mask(large, as_real(magnitude_of(a)), _mm512_set1_ps(0x1p-124f), _CMP_LT_OQ);
        a = _mm512_mask_and_epi32(scaled_where(large, a, 0.25f), tiny, a, splat(sign_bit));
        b = scaled_where(large, b, 0.25f);
    }
    __m512 x = as_real(a), r = as_real(divisor_reciprocal<Full>(b, large));
    V product = as_bits(x * r), scaled = as_bits(x * _mm512_set1_ps(0x1p24f) * r);
    product =
        _mm512_mask_and_epi32(product, compare<_CMP_LT_OQ>(magnitude_of(scaled), 0x1p-102f), product, splat(sign_bit));
    return nan_where(is<class_nan>(product), product);
}

template <> PTM_INLINE I32<16> rsqrt_unit<16>(I32<16> input) {
    return (I32<16>)rsqrt_avx512(flushed(vec(input)));
}
template <> PTM_INLINE I32<16> sqrt_unit<16>(I32<16> input) {
    return (I32<16>)sqrt_avx512(flushed(vec(input)));
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
/// linear * x + quadratic * S + Bias.
template <int Bias> PTM_INLINE V polynomial(const Segments& table, const Segment& in) {
    V slopes = look_up(table.slopes, in.row);
    V linear = multiply(_mm512_srai_epi32(slopes, 16), in.x), square = truncated_square(in.x); // less than 2^15
    return Bias ? add(add_products(splat(Bias), slopes, square), linear) : add_products(linear, slopes, square);
}

inline constexpr Segments ex2_segments =
    segments_of([](long row) { return ((long)ex2_table[row][0] << 8) - ((unit + (row << 17)) << 10); },
                [](int row) { return ex2_table[row][1] - linear_base; }, [](int row) { return ex2_table[row][2]; });

/// For -126 <= x: infinity from 128 on; rubbish elsewhere.
PTM_INLINE V ex2_of(V b, __mmask16 where) {
    __m512 clamped = _mm512_min_ps(_mm512_set1_ps(128.0f), as_real(b));
    V fx = _mm512_cvttps_epi32(clamped * _mm512_set1_ps(8388608.0f));
    // Negative numbers are folded by ones' complement, except where the fraction is zero.
    __mmask16 folded = _mm512_mask_test_epi32_mask(_mm512_movepi32_mask(b), fx, splat(0x7fffff));
    fx = _mm512_mask_sub_epi32(fx, folded, fx, splat(1));
    Segment in(fx);
    V fraction = _mm512_srai_epi32(polynomial<0x77e2>(ex2_segments, in), 5);
    fraction = _mm512_srai_epi32(add(fraction, look_up(ex2_segments.constant, in.row)), 10);
    return _mm512_maskz_add_epi32(where, add(fx, splat(one_bits)), fraction);
}
template <> PTM_INLINE I32<16> ex2_unit<16>(I32<16> input) {
    V b = vec(input);
    return (I32<16>)nan_where(is<class_nan>(b), ex2_of(b, compare<_CMP_GE_OQ>(b, -126.0f)));
}
// Below -126 the result is subnormal: the square of ex2(x / 2).
PTM_INLINE V ex2_avx512(V input) {
    __mmask16 low = compare<_CMP_LT_OQ>(input, -126.0f);
    V b = scaled_where(low, input, 0.5f);
    V r = ex2_of(b, compare<_CMP_GE_OQ>(b, -126.0f));
    return nan_where(is<class_nan>(input), as_bits(_mm512_mask_mul_ps(as_real(r), low, as_real(r), as_real(r))));
}

inline constexpr Segments lg2_segments =
    segments_of([](long row) { return ((long)lg2_table[row][0] << 8) - (row << 28); },
                [](int row) { return lg2_table[row][1] - linear_base; }, [](int row) { return 2 * lg2_table[row][2]; });

/// high * 2^Shift + low rounded toward zero, for 0 <= low < 2^Shift and high >= 0.
template <int Shift> PTM_INLINE __m512 truncated_to_float(V high, V low) {
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    __m512 h = _mm512_cvt_roundepi32_ps(high, toward_zero), l = _mm512_cvtepi32_ps(low);
    return _mm512_fmadd_round_ps(h, _mm512_set1_ps(1 << Shift), l, toward_zero);
}

/// For normal positive numbers.
PTM_INLINE V lg2_of(V b) {
    Segment in(b);
    V p = polynomial<0x3345>(lg2_segments, in);
    // In units of 2^-36: ((b - 1.0) << 13) + (m << 2) + bits 2 and 3 of p. Negative numbers are ones' complements.
    V m = add(_mm512_srai_epi32(p, 4), look_up(lg2_segments.constant, in.row));
    V high = add(add(b, splat(-one_bits)), _mm512_srai_epi32(m, 11));
    V low = _mm512_or_si512(_mm512_slli_epi32(m, 2), _mm512_and_si512(_mm512_srli_epi32(p, 2), splat(3)));
    V sign = _mm512_srai_epi32(high, 31);
    V magnitude = as_bits(truncated_to_float<13>(_mm512_xor_si512(high, sign),
                                                 _mm512_and_si512(_mm512_xor_si512(low, sign), splat(0x1fff))));
    V r = _mm512_sub_epi32(magnitude, splat(36 * unit));
    r = _mm512_or_si512(r, _mm512_and_si512(sign, splat(sign_bit)));
    return r;
}
PTM_INLINE V lg2_specials(V b, V r) {
    r = fixed_up(r, b, responses(keep, negative_infinity, positive_zero, keep, positive_infinity, keep, keep));
    return nan_where(is<class_nan | class_negative>(b), r);
}
template <> PTM_INLINE I32<16> lg2_unit<16>(I32<16> input) {
    V b = flushed(vec(input));
    return (I32<16>)lg2_specials(b, lg2_of(b));
}
PTM_INLINE V lg2_avx512(V input) {
    __mmask16 small = is<class_subnormal>(input);
    V r = lg2_of(scaled_where(small, input, 0x1p24f));
    r = as_bits(_mm512_mask_sub_ps(as_real(r), small, as_real(r), _mm512_set1_ps(24.0f)));
    return lg2_specials(input, r);
}

inline constexpr Segments sin_segments =
    segments_of([](int row) { return sin_table[row][0]; }, [](int row) { return sin_table[row][1]; },
                [](int row) { return sin_table[row][2]; });

template <> PTM_INLINE I32<16> sin_cos<16>(I32<16> input, bool cosine) {
    V b = vec(input), magnitude = magnitude_of(b);
    // |x| / 2 pi as a float rounded toward zero; its fraction in 25 bits: two of quadrant, 23 of phase.
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    __m512 turns = _mm512_mul_round_ps(as_real(magnitude), as_real(splat(0x3e22f983)), toward_zero);
    V fx = _mm512_cvttps_epi32(_mm512_reduce_ps(turns, _MM_FROUND_TO_ZERO) * _mm512_set1_ps(33554432.0f));
    if (cosine) fx = add(fx, splat(unit));
    V sign = _mm512_slli_epi32(fx, 7);
    if (!cosine) sign = _mm512_xor_si512(sign, b);
    V phase = _mm512_mask_xor_epi32(fx, _mm512_test_epi32_mask(fx, splat(unit)), fx, splat(-1));
    Segment in(phase);
    V p = polynomial<0>(sin_segments, in); // unsigned
    V constant = look_up(sin_segments.constant, in.row);
    __m512 value = truncated_to_float<11>(add(constant, _mm512_srli_epi32(p, 11)), _mm512_and_si512(p, splat(0x7ff)));
    V r = as_bits(value * _mm512_set1_ps(0x1p-37f));
    r = _mm512_or_si512(r, _mm512_and_si512(sign, splat(sign_bit)));
    if (cosine) r = _mm512_mask_mov_epi32(r, is<class_zero | class_subnormal>(b), splat(one_bits));
    return (I32<16>)nan_where(is<class_nan | class_infinity>(b), r);
}

// --- tanh: rows and resolution depend on the exponent ---------------------------------------------------

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
