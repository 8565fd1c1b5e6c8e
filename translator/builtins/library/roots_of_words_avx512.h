// SPDX-License-Identifier: Apache-2.0
// rcp, rsqrt and sqrt of 16 lanes: a Newton step from the CPU's approximation says which number the last four bits of
// the interpolator's result belong to, so that the polynomial is needed modulo 2^20 or so and a row fits one word
// (sfu.h).
#pragma once

#include "interpolator_avx512.h"

namespace sfu {

/// The last bits of rcp, rsqrt or sqrt (rubbish above), for a row as Layout packs it and an offset x of the segment.
template <typename Layout> PTM_INLINE V last_bits(V row, V x) {
    V square = truncated_square<Layout::square_of>(x);
    V quadratic = Layout::quadratic_shift == 0 ? _mm512_srli_epi16(row, 6) // rubbish in the high half, times zero
                                               : _mm512_and_si512(_mm512_srli_epi32(row, 6 - Layout::quadratic_shift),
                                                                  splat(0x3ff << Layout::quadratic_shift));
    V sum = add_products(shifted_in<Layout::constant_shift>(row, Layout::constant_low), quadratic, square);
    V linear = _mm512_srli_epi32(row, 16);
    if (Layout::linear_base) linear = add(linear, splat(Layout::linear_base));
    V product = multiply(linear, x);
    V p = Layout::minus_linear ? _mm512_sub_epi32(sum, product) : _mm512_sub_epi32(product, sum);
    return _mm512_srli_epi32(p, Layout::constant_shift + 2);
}
/// `estimate` is at most the result, by less than 16 units of the last place.
PTM_INLINE Sum with_last_bits(V estimate, V low) {
    return {estimate, _mm512_and_si512(_mm512_sub_epi32(low, estimate), splat(15))};
}

inline constexpr Rows<128> rcp_words = rows_of<128>([](int row) { return RcpRow::word(row); });
inline constexpr Rows<128> rsqrt_words = rows_of<128>([](int row) { return RsqrtRow::word(row); });
inline constexpr Rows<128> sqrt_words = rows_of<128>([](int row) { return SqrtRow::word(row); });

// The estimates are made too small on purpose, by 2^-21 of themselves: 4 to 8 units, where they and the unit err by
// few.

PTM_INLINE V rcp_estimate(V b) {
    __m512 y = _mm512_rcp14_ps(as_real(b));
    return as_bits(_mm512_fmadd_ps(_mm512_fnmadd_ps(as_real(b), y, _mm512_set1_ps(1 - 0x1p-21f)), y, y));
}
PTM_INLINE Sum rcp_of(V b) {
    V low = last_bits<RcpRow>(look_up(rcp_words, row_in<16>(b)), _mm512_and_si512(b, splat(0xffff)));
    return with_last_bits(rcp_estimate(b), low);
}
// Of the roots' operands the exponent is made -1 or 0, so that its lowest bit and the mantissa choose the row. Powers
// of four are 1.0 then, whose root is 1 exactly (rsqrt's table is one less); -0 is -1.0; negative numbers are NaN.
PTM_INLINE V root_operand(V input) {
    return as_bits(_mm512_getmant_ps(as_real(input), _MM_MANT_NORM_p5_2, _MM_MANT_SIGN_nan));
}
PTM_INLINE V exact_powers(V root, V operand) {
    return fixed_up(root, operand, responses(keep, keep, plus_one, keep, keep, minus_one, keep));
}
PTM_INLINE V scaled_root(V root, V operand, __m512 exponent) {
    root = exact_powers(root, operand);
    return as_bits(_mm512_mask_scalef_ps(as_real(splat(nan_bits)), is_number(operand), as_real(root), exponent));
}
template <typename Layout> PTM_INLINE V root_last_bits(const Rows<128>& rows, V operand) {
    return last_bits<Layout>(look_up(rows, row_in<17>(operand)), _mm512_and_si512(operand, splat(0x1ffff)));
}

/// One too little for powers of four.
PTM_INLINE V rsqrt_of(V operand) {
    __m512 b = as_real(operand), y = _mm512_rsqrt14_ps(b), half = y * _mm512_set1_ps(0.5f);
    __m512 estimate = _mm512_fmadd_ps(_mm512_fnmadd_ps(b * y, y, _mm512_set1_ps(1 - 0x1p-20f)), half, y);
    Sum r = with_last_bits(as_bits(estimate), root_last_bits<RsqrtRow>(rsqrt_words, operand));
    return add(r.estimate, r.missing);
}
template <> PTM_INLINE I32<16> rsqrt_of_mantissa<16>(I32<16> b) {
    return (I32<16>)exact_powers(rsqrt_of(vec(b)), vec(b));
}
// An input and what counts for it (flushed or not), of which all is made here.
PTM_INLINE V rsqrt_avx512(V, V input) {
    V operand = root_operand(input), r = rsqrt_of(operand);
    return scaled_root(r, operand, _mm512_getexp_ps(as_real(input)) * _mm512_set1_ps(-0.5f));
}
PTM_INLINE V rsqrt_avx512(V input) {
    return rsqrt_avx512(input, input);
}
PTM_INLINE V sqrt_avx512(V, V input) {
    V operand = root_operand(input);
    __m512 b = as_real(operand), y = _mm512_rsqrt14_ps(b), root = b * y, half = root * _mm512_set1_ps(0.5f);
    __m512 estimate = _mm512_fmadd_ps(_mm512_fnmadd_ps(root, y, _mm512_set1_ps(1 - 0x1p-20f)), half, root);
    Sum r = with_last_bits(as_bits(estimate), root_last_bits<SqrtRow>(sqrt_words, operand));
    __m512 exponent = _mm512_getexp_ps(as_real(input)), one_half = _mm512_set1_ps(0.5f);
    return scaled_root(add(r.estimate, r.missing), operand,
                       _mm512_fmadd_ps(exponent, one_half, one_half)); // an odd one counts as the even above
}
} // namespace sfu
