// SPDX-License-Identifier: Apache-2.0
// rcp, rsqrt and sqrt of 16 lanes where vpermi2b is one operation (Zen 4 and later): rows of 128 are looked up byte by
// byte, so that six bytes of a row cost little more than four. These give the polynomial modulo 2^32, of which the
// CPU's approximation (14 bits) says the rest: no Newton step. Roots need no normalized operand but for row and offset,
// as the approximation has their exponent.
#pragma once

#include "interpolator_avx512.h"

namespace sfu {

/// A row of Layout (sfu.h): the constant above the quadratic coefficient, which stands where S multiplies it and
/// belongs to the sum, too: S is one less for that. The linear coefficient in the high half of the other word, by its
/// two bytes.
struct alignas(64) ByteRows {
    unsigned char sum[4][128]{}, linear[2][128]{};
};
template <typename Layout> struct ByteLayout {
    static constexpr int shift = Layout::constant_shift + 2;
    static constexpr unsigned quadratic_mask = 0x3ff << Layout::quadratic_shift;
    /// What is below the estimate's last bit when it is taken from the polynomial: what constant_low lacks to one. When
    /// the polynomial is taken from it: one less than constant_low, since differences are rounded down.
    static constexpr unsigned below =
        Layout::minus_linear ? (1u << shift) - Layout::constant_low : unsigned(Layout::constant_low) - 1;
    static constexpr ByteRows rows() {
        ByteRows result;
        for (int row = 0; row < 128; ++row) {
            const unsigned word = Layout::word(row);
            unsigned sum = (unsigned(Layout::constant(row)) + 4u) << Layout::constant_shift;
            sum |= ((word >> 6) & 0x3ff) << Layout::quadratic_shift;
            for (int i = 0; i < 4; ++i) result.sum[i][row] = (unsigned char)(sum >> 8 * i);
            for (int i = 0; i < 2; ++i) result.linear[i][row] = (unsigned char)(word >> (16 + 8 * i));
        }
        return result;
    }
};
template <typename Layout> inline constexpr ByteRows byte_rows = ByteLayout<Layout>::rows();

/// Bytes of a table by the low seven bits of those of `index`.
PTM_INLINE V look_up_bytes(V index, const unsigned char (&bytes)[128]) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(bytes), index, _mm512_load_si512(bytes + 64));
}
/// The same for one byte of each word; the others stay.
template <int Byte> PTM_INLINE V with_byte(V index, const unsigned char (&bytes)[128]) {
    return _mm512_mask2_permutex2var_epi8(_mm512_load_si512(bytes), index, 0x1111111111111111ul << Byte,
                                          _mm512_load_si512(bytes + 64));
}
/// The bits of `first` where the constant Mask is one, else those of `second`.
template <unsigned Mask> PTM_INLINE V bits_of(V first, V second) {
    return _mm512_ternarylogic_epi32(first, second, splat(int(Mask)), 0xe4);
}

/// The unit's result less `estimate` (minus_linear), or that with the other sign, for the row in the bits of `operand`
/// from First on: above the lower `shift` bits. A look-up takes five cycles, so no more than two wait for each other.
template <typename Layout, int First> PTM_INLINE V difference_by_bytes(V operand, V estimate) {
    using Bytes = ByteLayout<Layout>;
    const ByteRows& rows = byte_rows<Layout>;
    V index = fields<First, First, First, First>(operand), x = _mm512_and_si512(operand, splat((1 << First) - 1));
    // Two bytes of each word, and nothing above them.
    V two =
        _mm512_maskz_multishift_epi64_epi8(0x3333333333333333ul, field_control<First, First, First, First>(), operand);
    V linear = with_byte<1>(with_byte<0>(two, rows.linear[0]), rows.linear[1]);
    if (Layout::linear_base) linear = add(linear, splat(Layout::linear_base));
    V product = multiply(linear, x);
    V known = _mm512_shldi_epi32(estimate, splat(int(Bytes::below << (32 - Bytes::shift))), Bytes::shift);
    known = Layout::minus_linear ? add(product, known) : _mm512_sub_epi32(product, known);
    V low = with_byte<1>(with_byte<0>(index, rows.sum[0]), rows.sum[1]);
    V sum = bits_of<0xffff>(low, with_byte<3>(with_byte<2>(index, rows.sum[2]), rows.sum[3]));
    V quadratic = _mm512_and_si512(low, splat(Bytes::quadratic_mask));
    sum = _mm512_dpwssd_epi32(sum, quadratic, truncated_square<Layout::square_of, 0xffff>(x));
    return _mm512_sub_epi32(sum, known);
}
template <typename Layout, int First> PTM_INLINE V missing_by_bytes(V operand, V estimate) {
    return _mm512_srai_epi32(difference_by_bytes<Layout, First>(operand, estimate), ByteLayout<Layout>::shift);
}

PTM_INLINE Sum rcp_of(V b) {
    V estimate = as_bits(_mm512_rcp14_ps(as_real(b)));
    return {estimate, missing_by_bytes<RcpRow, 16>(b, estimate)};
}

/// Of a root: its operand's bits as the table wants them, by parity of the exponent. Subnormal ones are normalized, and
/// what has no mantissa is 1.0.
PTM_INLINE V root_operand(V input) {
    return as_bits(_mm512_getmant_ps(as_real(input), _MM_MANT_NORM_p5_2, _MM_MANT_SIGN_zero));
}
/// The estimate of 1.0 and other powers of four is exact, the table is one less. So are those of zeros and infinities,
/// and NaN stay as they are.
PTM_INLINE V rsqrt_from(V estimate, V operand) {
    static_assert(ByteLayout<RsqrtRow>::shift == 16);
    __mmask16 where = compare<_CMP_NEQ_OQ>(operand, 1.0f);
    return _mm512_mask_dpwssd_epi32(estimate, where, difference_by_bytes<RsqrtRow, 17>(operand, estimate),
                                    splat(1 << 16));
}
template <> PTM_INLINE I32<16> rsqrt_of_mantissa<16>(I32<16> b) {
    return (I32<16>)rsqrt_from(as_bits(_mm512_rsqrt14_ps(as_real(vec(b)))), vec(b));
}
PTM_INLINE V rsqrt_of_all(V input) {
    return rsqrt_from(as_bits(_mm512_rsqrt14_ps(as_real(input))), root_operand(input));
}
/// Of subnormal inputs `flushed` ones count.
PTM_INLINE V rsqrt_avx512(V input, V flushed) {
    return canonical_nan(
        fixed_up(rsqrt_of_all(input), flushed, responses(keep, infinity_with_sign, keep, keep, keep, keep, keep)));
}
PTM_INLINE V rsqrt_avx512(V input) {
    return canonical_nan(rsqrt_of_all(input));
}
/// Zeros and what is not finite are answered by `special`, which is the input or what counts for it.
PTM_INLINE V sqrt_avx512(V input, V special) {
    V estimate = as_bits(as_real(input) * _mm512_rsqrt14_ps(as_real(input)));
    V r = _mm512_sub_epi32(estimate, missing_by_bytes<SqrtRow, 17>(root_operand(input), estimate));
    return canonical_nan(
        fixed_up(r, special, responses(quiet_nan, operand_itself, keep, any_nan, positive_infinity, any_nan, keep)));
}

} // namespace sfu
