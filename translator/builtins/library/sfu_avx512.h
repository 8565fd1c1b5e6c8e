// SPDX-License-Identifier: Apache-2.0
// The special function unit of sfu.h, 16 lanes at a time on CPUs with AVX-512 VBMI, VBMI2, VNNI and BITALG:
// coefficients come from byte planes in registers, and all arithmetic stays in 32-bit lanes. The bits are those of
// sfu.h; README.md says why it works.
#pragma once

#include "interpolator_avx512.h"

namespace sfu {

// --- rcp, rsqrt, sqrt: the CPU's approximation to 14 bits says which number the low bits of the interpolator's result
// belong to, so that the polynomial is needed modulo 2^32 only, and signs, exponents, zeros and infinities come along.

struct RootTables {
    Planes constant, linear, quadratic;
};
/// constant + linear * x + quadratic * S(x) modulo 2^32, with the row in bits 17 to 23 of `word` and x below. All
/// constants end in `LowByte`; the linear coefficients are 16 bits plus `LinearTop`.
template <int LowByte, int LinearTop> PTM_INLINE V interpolated(const RootTables& tables, V word) {
    V row = fields<17, 17, 17, 17>(word);
    // The lowest byte is the same in all rows.
    V constant = _mm512_or_si512(_mm512_and_si512(row, splat(int(0xffffff00u))), splat(LowByte));
    constant = look_up<3>(tables.constant, look_up<2>(tables.constant, look_up<1>(tables.constant, constant)));
    V linear = _mm512_or_si512(_mm512_and_si512(row, splat(0xffff)), splat(int(0xffff0000u & unsigned(LinearTop))));
    linear = look_up<1>(tables.linear, look_up<0>(tables.linear, linear));
    if (LinearTop > 0) linear = add(linear, splat(LinearTop));
    V quadratic = look_up<1>(tables.quadratic, look_up<0>(tables.quadratic, row)); // rubbish above, times zero
    V sum = _mm512_dpwssd_epi32(constant, quadratic, truncated_square(word));
    return add(sum, multiply(linear, offset_of(word)));
}

inline constexpr RootTables rcp_planes{planes_of([](int row) { return ((long)rcp_table[row][0] << 14) + 2 * 0x47e7; }),
                                       planes_of([](int row) { return rcp_table[row][1] + 65536; }),
                                       planes_of([](int row) { return 2 * rcp_table[row][2]; })};

// Twice the polynomial of the reciprocal, so that x and its square are those of the root functions.
PTM_INLINE V rcp_of(V b, V approximation) {
    return with_low_bits(approximation, _mm512_srli_epi32(interpolated<0xce, -65536>(rcp_planes, add(b, b)), 16));
}
/// |b| > 2^126: subnormal results; infinity and NaN too.
PTM_INLINE __mmask16 has_tiny_reciprocal(V b) {
    return _mm512_cmpgt_epu32_mask(add(b, b), splat(int(253u << 24)));
}
template <> PTM_INLINE I32<16> rcp_unit<16>(I32<16> input) {
    V b = flushed(vec(input));
    V approximation = as_bits(_mm512_rcp14_ps(as_real(b)));
    V r = rcp_of(b, approximation);
    r = _mm512_mask_and_epi32(r, has_tiny_reciprocal(b), b, splat(sign_bit));
    r = _mm512_mask_mov_epi32(r, is<class_zero>(b), approximation);
    return (I32<16>)nan_where(is<class_nan>(b), r);
}
PTM_INLINE V rcp_avx512(V input) {
    __mmask16 small = is<class_subnormal>(input), large = has_tiny_reciprocal(input);
    V b = scaled_where(large, scaled_where(small, input, 0x1p24f), 0.25f);
    V approximation = as_bits(_mm512_rcp14_ps(as_real(b)));
    V r = _mm512_mask_mov_epi32(rcp_of(b, approximation), is<class_zero | class_infinity>(b), approximation);
    return nan_where(is<class_nan>(b), scaled_where(large, scaled_where(small, r, 0x1p24f), 0.25f));
}

/// a * rcp(b) without flushing. Divisors that are zero or subnormal are scaled, and with `Full` large ones too, whose
/// reciprocals the unit flushes.
template <bool Full> PTM_INLINE V quotient_avx512(V a, V b) {
    __mmask16 small = is<class_zero | class_subnormal>(b), large = has_tiny_reciprocal(b);
    a = scaled_where(small, a, 0x1p24f);
    b = scaled_where(small, b, 0x1p24f);
    if (Full) { // harmless for infinity and NaN; 2^126 needs no scaling
        a = scaled_where(large, a, 0.25f);
        b = scaled_where(large, b, 0.25f);
    }
    V approximation = as_bits(_mm512_rcp14_ps(as_real(b)));
    V r =
        _mm512_mask_mov_epi32(rcp_of(b, approximation), is<class_zero | class_infinity | class_nan>(b), approximation);
    if (!Full) r = _mm512_mask_and_epi32(r, large & ~is<class_nan>(b), b, splat(sign_bit));
    V product = as_bits(as_real(a) * as_real(r));
    return nan_where(is<class_nan>(product), product);
}

// The parity bit of the biased exponent is the opposite of the true exponent's, by which the tables are ordered. One
// unit of the result too much: powers of four are exact, one above the table's result, and all others are diminished.
inline constexpr RootTables rsqrt_planes{
    planes_of([](int row) { return ((long)rsqrt_table[row ^ 64][0] << 14) + 0x17fff; }),
    planes_of([](int row) { return rsqrt_table[row ^ 64][1] + 65536; }),
    planes_of([](int row) { return 4 * rsqrt_table[row ^ 64][2]; })};

/// `b`: the operand, or a subnormal operand times 2^24; `input`: the operand.
PTM_INLINE V rsqrt_of(V b, V input) {
    V approximation = as_bits(_mm512_rsqrt14_ps(as_real(input)));
    V r = with_low_bits(approximation, _mm512_srli_epi32(interpolated<0xff, -65536>(rsqrt_planes, b), 16));
    V from_power = _mm512_and_si512(_mm512_xor_si512(b, splat(unit)), splat(0xffffff));
    r = _mm512_sub_epi32(r, _mm512_min_epu32(from_power, splat(1)));
    r = _mm512_mask_mov_epi32(r, is<class_zero | class_infinity>(input), approximation);
    return nan_where(is<class_nan | class_negative>(input), r);
}
template <> PTM_INLINE I32<16> rsqrt_unit<16>(I32<16> input) {
    V b = flushed(vec(input));
    return (I32<16>)rsqrt_of(b, b);
}
PTM_INLINE V rsqrt_avx512(V input) {
    return rsqrt_of(scaled_where(is<class_subnormal>(input), input, 0x1p24f), input);
}

// In 2^17ths of the last place: even exponents have twice the resolution, so odd rows are doubled.
inline constexpr RootTables sqrt_planes{
    planes_of([](int row) { return ((long)sqrt_table[row ^ 64][0] << 15) + 0x7fff; }),
    planes_of([](int row) { return sqrt_table[row ^ 64][1] * (row & 64 ? 1 : 2) - 32768; }),
    planes_of([](int row) { return 2 * sqrt_table[row ^ 64][2]; })};

/// Arguments as for rsqrt_of().
PTM_INLINE V sqrt_of(V b, V input) {
    V approximation = as_bits(as_real(input) * _mm512_rsqrt14_ps(as_real(input)));
    V low = interpolated<0xff, 32768>(sqrt_planes, b);
    V difference = _mm512_sub_epi32(low, _mm512_slli_epi32(approximation, 17));
    V r = add(approximation, _mm512_srai_epi32(difference, 17));
    r = _mm512_mask_mov_epi32(r, is<class_zero | class_infinity>(input), input);
    return nan_where(is<class_nan | class_negative>(input), r);
}
template <> PTM_INLINE I32<16> sqrt_unit<16>(I32<16> input) {
    V b = flushed(vec(input));
    return (I32<16>)sqrt_of(b, b);
}
PTM_INLINE V sqrt_avx512(V input) {
    return sqrt_of(scaled_where(is<class_subnormal>(input), input, 0x1p24f), input);
}

// --- ex2, lg2, sin: 64 rows ---------------------------------------------------------------------------

// The identity is taken out of ex2 and lg2 (2^f is about 1 + f), so that what remains fits 32 bits: C1 is less by 2^15.
inline constexpr int linear_base = 32768;

struct SegmentTables {
    Pairs constant, linear, quadratic;
};
struct Segment {
    V row, x; ///< row as pair_index() makes it, offset in the segment
    explicit PTM_INLINE Segment(V word) : row(pair_index(fields<17, 17, 17, 17>(word))), x(offset_of(word)) {}
};
/// linear * x + quadratic * S + Bias.
template <int Bias> PTM_INLINE V polynomial(const SegmentTables& tables, V word, const Segment& in) {
    V linear = look_up_signed(tables.linear, in.row), quadratic = look_up_half<0>(tables.quadratic, in.row);
    // The product of the high words adds the bias; without one it is zero, as the square's high word is.
    if (Bias) quadratic = _mm512_or_si512(_mm512_and_si512(quadratic, splat(0xffff)), splat(Bias << 16));
    V square = truncated_square(word, Bias ? 1 << 16 : 0);
    return _mm512_dpwssd_epi32(multiply(linear, in.x), quadratic, square);
}

inline constexpr SegmentTables ex2_pairs{
    pairs_of([](long row) { return ((long)ex2_table[row][0] << 8) - ((unit + (row << 17)) << 10); }),
    pairs_of([](int row) { return ex2_table[row][1] - linear_base; }),
    pairs_of([](int row) { return ex2_table[row][2]; })};

/// For -126 <= x: infinity from 128 on; rubbish elsewhere.
PTM_INLINE V ex2_of(V b) {
    __m512 clamped = _mm512_min_ps(_mm512_set1_ps(128.0f), as_real(b));
    V fx = _mm512_cvttps_epi32(clamped * _mm512_set1_ps(8388608.0f));
    // Negative numbers are folded by ones' complement, except where the fraction is zero.
    __mmask16 folded = _mm512_mask_test_epi32_mask(_mm512_movepi32_mask(b), fx, splat(0x7fffff));
    fx = _mm512_mask_sub_epi32(fx, folded, fx, splat(1));
    Segment in(fx);
    V fraction = _mm512_srai_epi32(polynomial<0x77e2>(ex2_pairs, fx, in), 5);
    fraction = _mm512_srai_epi32(add(fraction, look_up_word(ex2_pairs.constant, in.row)), 10);
    return add(add(fx, splat(one_bits)), fraction);
}
template <int Predicate> PTM_INLINE __mmask16 compare(V b, float value) {
    return _mm512_cmp_ps_mask(as_real(b), _mm512_set1_ps(value), Predicate);
}
template <> PTM_INLINE I32<16> ex2_unit<16>(I32<16> input) {
    V b = vec(input);
    return (I32<16>)nan_where(is<class_nan>(b), _mm512_maskz_mov_epi32(compare<_CMP_GE_OQ>(b, -126.0f), ex2_of(b)));
}
// Below -126 the result is subnormal: the square of ex2(x / 2).
PTM_INLINE V ex2_avx512(V input) {
    __mmask16 low = compare<_CMP_LT_OQ>(input, -126.0f);
    V b = scaled_where(low, input, 0.5f);
    V r = _mm512_maskz_mov_epi32(compare<_CMP_GE_OQ>(b, -126.0f), ex2_of(b));
    return nan_where(is<class_nan>(input), as_bits(_mm512_mask_mul_ps(as_real(r), low, as_real(r), as_real(r))));
}

inline constexpr SegmentTables lg2_pairs{
    pairs_of([](long row) { return ((long)lg2_table[row][0] << 8) - (row << 28); }),
    pairs_of([](int row) { return lg2_table[row][1] - linear_base; }),
    pairs_of([](int row) { return 2 * lg2_table[row][2]; })};

/// high * 2^Shift + low rounded toward zero, for 0 <= low < 2^Shift and high >= 0.
template <int Shift> PTM_INLINE __m512 truncated_to_float(V high, V low) {
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    __m512 h = _mm512_cvt_roundepi32_ps(high, toward_zero), l = _mm512_cvtepi32_ps(low);
    return _mm512_fmadd_round_ps(h, _mm512_set1_ps(1 << Shift), l, toward_zero);
}

/// For normal positive numbers.
PTM_INLINE V lg2_of(V b) {
    Segment in(b);
    V p = polynomial<0x3345>(lg2_pairs, b, in);
    // In units of 2^-36: ((b - 1.0) << 13) + (m << 2) + bits 2 and 3 of p.
    V m = add(_mm512_srai_epi32(p, 4), look_up_word(lg2_pairs.constant, in.row));
    V high = add(add(b, splat(-one_bits)), _mm512_srai_epi32(m, 11));
    V low = _mm512_shldi_epi32(m, _mm512_slli_epi32(p, 28), 2);
    V sign = _mm512_srai_epi32(high, 31); // negative numbers are ones' complements
    V magnitude = as_bits(truncated_to_float<13>(_mm512_xor_si512(high, sign),
                                                 _mm512_and_si512(_mm512_xor_si512(low, sign), splat(0x1fff))));
    V r = _mm512_sub_epi32(magnitude, splat(36 * unit));
    r = _mm512_or_si512(r, _mm512_and_si512(sign, splat(sign_bit)));
    return _mm512_maskz_mov_epi32(_mm512_cmpneq_epi32_mask(b, splat(one_bits)), r);
}
PTM_INLINE V lg2_specials(V b, V r) {
    // Operand classes from the lowest nibble: QNaN, SNaN, zero, one, -infinity, +infinity, negative, positive. The
    // response is 0 to keep the result, 4 for -infinity, 5 for +infinity.
    r = as_bits(_mm512_fixupimm_ps(as_real(r), as_real(b), splat(0x00500400), 0));
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

inline constexpr SegmentTables sin_pairs{pairs_of([](int row) { return sin_table[row][0]; }),
                                         pairs_of([](int row) { return sin_table[row][1]; }),
                                         pairs_of([](int row) { return sin_table[row][2]; })};

template <> PTM_INLINE I32<16> sin_cos<16>(I32<16> input, bool cosine) {
    V b = vec(input), magnitude = _mm512_and_si512(b, splat(0x7fffffff));
    // |x| / 2 pi as a float rounded toward zero; its fraction in 25 bits: two of quadrant, 23 of phase.
    const int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    __m512 turns = _mm512_mul_round_ps(as_real(magnitude), as_real(splat(0x3e22f983)), toward_zero);
    V fx = _mm512_cvttps_epi32(_mm512_reduce_ps(turns, _MM_FROUND_TO_ZERO) * _mm512_set1_ps(33554432.0f));
    if (cosine) fx = add(fx, splat(unit));
    V sign = _mm512_slli_epi32(fx, 7);
    if (!cosine) sign = _mm512_xor_si512(sign, b);
    V phase = _mm512_mask_xor_epi32(fx, _mm512_test_epi32_mask(fx, splat(unit)), fx, splat(-1));
    Segment in(phase);
    V p = polynomial<0>(sin_pairs, phase, in); // unsigned
    V constant = look_up_word(sin_pairs.constant, in.row);
    __m512 value = truncated_to_float<11>(add(constant, _mm512_srli_epi32(p, 11)), _mm512_and_si512(p, splat(0x7ff)));
    V r = as_bits(value * _mm512_set1_ps(0x1p-37f));
    r = _mm512_or_si512(r, _mm512_and_si512(sign, splat(sign_bit)));
    if (cosine) r = _mm512_mask_mov_epi32(r, is<class_zero | class_subnormal>(b), splat(one_bits));
    return (I32<16>)nan_where(is<class_nan | class_infinity>(b), r);
}

// --- tanh: rows and resolution depend on the exponent ---------------------------------------------------

inline constexpr int tanh_rows = sizeof(tanh_table) / sizeof(tanh_table[0]);
template <int Column> constexpr int tanh_word(int row) {
    return row < tanh_rows ? tanh_table[row][Column] : 0;
}
inline constexpr SegmentTables tanh_pairs{pairs_of(tanh_word<0>), pairs_of(tanh_word<1>), pairs_of(tanh_word<2>)};

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
    V b = vec(input), magnitude = _mm512_and_si512(b, splat(0x7fffffff));
    V e = _mm512_srli_epi32(magnitude, 23);
    V dropped = _mm512_permutexvar_epi32(e, _mm512_load_si512(tanh_by_nibble.dropped.data()));
    V range = _mm512_permutexvar_epi32(e, _mm512_load_si512(tanh_by_nibble.word.data()));
    V word = add(range, _mm512_srlv_epi32(_mm512_and_si512(b, splat(0x7fffff)), dropped));
    Segment in(word);
    // P = (C0 << 16) + C1 * x + 2 * C2 * S has 40 bits. Its low 32 are exact; what is above bit 16 is first estimated
    // from truncated coefficients, by less than 2^9 too little, and then corrected to the exact low bits.
    V constant = look_up_word(tanh_pairs.constant, in.row), linear = look_up_word(tanh_pairs.linear, in.row);
    V quadratic = look_up_word(tanh_pairs.quadratic, in.row);
    V square = truncated_square(word);
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
