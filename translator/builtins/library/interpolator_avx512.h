// SPDX-License-Identifier: Apache-2.0
// What the interpolators of sfu_avx512.h are made of: coefficients looked up in byte planes, the squarer, masks.
#pragma once

#include "sfu.h"

#include <array>
#include <immintrin.h>

namespace sfu {

using V = __m512i;

PTM_INLINE V splat(int value) {
    return _mm512_set1_epi32(value);
}
PTM_INLINE V vec(I32<16> v) {
    return (V)v;
}
PTM_INLINE __m512 as_real(V v) {
    return (__m512)v;
}
PTM_INLINE V as_bits(__m512 v) {
    return (V)v;
}

// --- coefficients -------------------------------------------------------------------------------------

/// Byte planes of a table of 128 words: byte b of row r is plane[b][r].
struct alignas(64) Planes {
    std::array<std::array<unsigned char, 128>, 4> plane;
};

/// Planes of word(row) for every row.
template <typename Word> constexpr Planes planes_of(Word word) {
    Planes result{};
    for (int row = 0; row < 128; ++row)
        for (int byte = 0; byte < 4; ++byte)
            result.plane[byte][row] = (unsigned char)((unsigned long)(word(row)) >> (8 * byte));
    return result;
}

inline constexpr __mmask64 byte_of_word[4] = {0x1111111111111111, 0x2222222222222222, 0x4444444444444444,
                                              0x8888888888888888};

// Byte `Byte` of the words of `rest` becomes the table's at the row in that byte of `rest` itself.
template <int Byte> PTM_INLINE V look_up(const Planes& table, V rest) {
    const unsigned char* plane = table.plane[Byte].data();
    return _mm512_mask2_permutex2var_epi8(_mm512_load_si512(plane), rest, byte_of_word[Byte],
                                          _mm512_load_si512(plane + 64));
}
/// Words of a table of 64 rows, two bytes of a row in one permutation: the lower byte of a pair at its row, the upper
/// one 64 bytes on.
struct alignas(64) Pairs {
    std::array<std::array<unsigned char, 128>, 2> pair;
};

/// Pairs of word(row) for every row.
template <typename Word> constexpr Pairs pairs_of(Word word) {
    Pairs result{};
    for (int row = 0; row < 64; ++row)
        for (int byte = 0; byte < 4; ++byte)
            result.pair[byte / 2][row + 64 * (byte & 1)] = (unsigned char)((unsigned long)(word(row)) >> (8 * byte));
    return result;
}

/// What the following take for a row: `row` holds it in six bits of each byte, with rubbish in the others.
PTM_INLINE V pair_index(V row) {
    return _mm512_or_si512(_mm512_and_si512(row, splat(0x3f3f3f3f)), splat(0x40004000));
}
/// One half of the table's words, in both halves of each word.
template <int Half> PTM_INLINE V look_up_half(const Pairs& table, V index) {
    const unsigned char* pair = table.pair[Half].data();
    return _mm512_permutex2var_epi8(_mm512_load_si512(pair), index, _mm512_load_si512(pair + 64));
}
/// The low half, sign-extended.
PTM_INLINE V look_up_signed(const Pairs& table, V index) {
    return _mm512_srai_epi32(look_up_half<0>(table, index), 16);
}
PTM_INLINE V look_up_word(const Pairs& table, V index) {
    V low = _mm512_and_si512(look_up_half<0>(table, index), splat(0xffff));
    return _mm512_or_si512(low, _mm512_and_si512(look_up_half<1>(table, index), splat(int(0xffff0000u))));
}

/// Bits [first, first + 8) of each word for each of the four offsets.
template <int O0, int O1, int O2, int O3> PTM_INLINE V fields(V word) {
    const unsigned low = O0 | O1 << 8 | O2 << 16 | O3 << 24;
    const unsigned long control = low | (unsigned long)(low + 0x20202020u) << 32;
    return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(long(control)), word);
}
/// The bytes of each word that one of its bits asks for: bit B0 for the first byte, and so on.
template <int B0, int B1, int B2, int B3> PTM_INLINE __mmask64 bits_at(V word) {
    const unsigned low = B0 | B1 << 8 | B2 << 16 | B3 << 24;
    const unsigned long control = low | (unsigned long)(low + 0x20202020u) << 32;
    return _mm512_bitshuffle_epi64_mask(word, _mm512_set1_epi64(long(control)));
}
template <int O0, int O1, int O2, int O3> PTM_INLINE V fields_where(__mmask64 where, V word) {
    return _mm512_maskz_mov_epi8(where, fields<O0, O1, O2, O3>(word));
}

// --- arithmetic ---------------------------------------------------------------------------------------

/// truncated_square<16>() of the low 17 bits, plus `start`. With g the top seven bits, h the bit below them and l the
/// bits 2 to 8, the sum of the truncated rows is 2 g (g + h) + sum over i of l[i] (g >> (6 - i)).
PTM_INLINE V truncated_square(V word, int start = 0) {
    V x = _mm512_and_si512(word, splat(0x1fdff)); // without h: the field from bit 9 on is 2 g
    V rows = _mm512_add_epi8(fields_where<9, 10, 11, 12>(bits_at<9, 8, 7, 6>(word), x),
                             fields_where<16, 15, 14, 13>(bits_at<2, 3, 4, 5>(word), x));
    V g = fields<10, 18, 10, 18>(x);
    V square = start ? _mm512_dpwssd_epi32(splat(start), g, g) : _mm512_madd_epi16(g, g);
    return _mm512_dpbusd_epi32(square, rows, splat(0x01010101));
}

PTM_INLINE V offset_of(V word) {
    return _mm512_and_si512(word, splat(0x1ffff));
}
PTM_INLINE V multiply(V a, V b) {
    return (V)((I32<16>)a * (I32<16>)b);
}
PTM_INLINE V add(V a, V b) {
    return _mm512_add_epi32(a, b);
}

/// Corrects an approximation by the low 16 bits of the true result.
PTM_INLINE V with_low_bits(V approximation, V low) {
    V difference = _mm512_sub_epi16(low, approximation);
    return _mm512_dpwssd_epi32(approximation, difference, splat(1));
}

// What a class of inputs is called by vfpclassps.
inline constexpr int class_nan = 0x81, class_zero = 0x06, class_infinity = 0x18, class_subnormal = 0x20,
                     class_negative = 0x40 | 0x10;
template <int Classes> PTM_INLINE __mmask16 is(V b) {
    return _mm512_fpclass_ps_mask(as_real(b), Classes);
}

PTM_INLINE V nan_where(__mmask16 where, V r) {
    return _mm512_mask_mov_epi32(r, where, splat(nan_bits));
}
PTM_INLINE V scaled_where(__mmask16 where, V b, float factor) {
    return as_bits(_mm512_mask_mul_ps(as_real(b), where, as_real(b), _mm512_set1_ps(factor)));
}
PTM_INLINE V flushed(V b) {
    return _mm512_mask_and_epi32(b, is<class_subnormal>(b), b, splat(sign_bit));
}

} // namespace sfu
