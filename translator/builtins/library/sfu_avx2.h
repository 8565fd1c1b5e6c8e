// SPDX-License-Identifier: Apache-2.0
// The squarer of sfu.h on CPUs with AVX2. Fifteen bits of the operand matter, so it works in 16-bit lanes: on 16
// operands in one register.
#pragma once

#include "sfu.h"

#include <immintrin.h>

namespace sfu {

PTM_INLINE __m256i low_half(I32<16> v) {
    return (__m256i)I32<8>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7));
}
PTM_INLINE __m256i high_half(I32<16> v) {
    return (__m256i)I32<8>(__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
PTM_INLINE I32<16> joined(__m256i low, __m256i high) {
    return __builtin_shufflevector((I32<8>)low, (I32<8>)high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// --- pairs of words: LLVM's own gather makes 64-bit addresses first and sorts the words lane by lane

PTM_INLINE __m128i four_words(const int* rows, long low, long high) {
    return _mm_setr_epi32(rows[unsigned(low)], rows[unsigned(low >> 32)], rows[unsigned(high)],
                          rows[unsigned(high >> 32)]);
}
template <> PTM_INLINE I32<8> look_up<8>(const int* rows, I32<8> row) {
    I64<4> two = (I64<4>)row;
    return (I32<8>)_mm256_set_m128i(four_words(rows, two[2], two[3]), four_words(rows, two[0], two[1]));
}
template <> PTM_INLINE I32<16> look_up<16>(const int* rows, I32<16> row) {
    return joined((__m256i)look_up<8>(rows, (I32<8>)low_half(row)), (__m256i)look_up<8>(rows, (I32<8>)high_half(row)));
}
PTM_INLINE __m128i two_pairs(const int (*rows)[2], long indices) {
    const auto at = [&](unsigned index) { return _mm_loadu_si64(rows[index]); };
    return _mm_unpacklo_epi64(at(unsigned(indices)), at(unsigned(indices >> 32)));
}
template <> PTM_INLINE void look_up<8>(const int (*rows)[2], I32<8> row, I32<8>& first, I32<8>& second) {
    I64<4> two = (I64<4>)row;
    // Lanes 0, 1, 4, 5 and 2, 3, 6, 7.
    __m256i a = _mm256_set_m128i(two_pairs(rows, two[2]), two_pairs(rows, two[0]));
    __m256i b = _mm256_set_m128i(two_pairs(rows, two[3]), two_pairs(rows, two[1]));
    first = (I32<8>)_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88);
    second = (I32<8>)_mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd);
}
template <> PTM_INLINE void look_up<16>(const int (*rows)[2], I32<16> row, I32<16>& first, I32<16>& second) {
    I32<8> low[2], high[2];
    look_up<8>(rows, (I32<8>)low_half(row), low[0], low[1]);
    look_up<8>(rows, (I32<8>)high_half(row), high[0], high[1]);
    first = joined((__m256i)low[0], (__m256i)high[0]);
    second = joined((__m256i)low[1], (__m256i)high[1]);
}

// --- the squarer

struct alignas(32) NibbleTable {
    char byte[32];
};
template <typename Entry> constexpr NibbleTable nibble_table(Entry entry) {
    NibbleTable result{};
    for (int i = 0; i < 32; ++i) result.byte[i] = char(entry(i & 15));
    return result;
}
// What bits u3 u2 h3 h2 give, 4 u3 h3 + 2 u3 h2 + 2 u2 h3 + u2 h2, and bits u3 h3 u1 h1: u3 h1 + u1 h3.
inline constexpr NibbleTable upper_pairs = nibble_table([](int i) { return (i >> 2) * (i & 3); });
inline constexpr NibbleTable outer_bits = nibble_table([](int i) { return (i >> 3 & i & 1) + (i >> 1 & i >> 2 & 1); });

PTM_INLINE __m256i look_up_nibbles(const NibbleTable& table, __m256i index) {
    return _mm256_shuffle_epi8(_mm256_load_si256(reinterpret_cast<const __m256i*>(table.byte)), index);
}
PTM_INLINE __m256i bits_from(__m256i a, int mask_of_a, __m256i b, int mask_of_b) {
    return _mm256_or_si256(_mm256_and_si256(a, _mm256_set1_epi8(char(mask_of_a))),
                           _mm256_and_si256(b, _mm256_set1_epi8(char(mask_of_b))));
}

/// The squares, which have 15 bits, of numbers of 17 bits without their lowest one. Let h be the upper byte of such a
/// word and u the lower one: h^2 >> 1, the product of their upper nibbles, and of what the upper nibble of each gives
/// with the lower one of the other the bits that the multiplier keeps.
PTM_INLINE __m256i square_words(__m256i y) {
    // In the low nibbles of bytes: upper nibbles of u and h, lower ones of h and u.
    __m256i upper = _mm256_srli_epi16(y, 4);
    __m256i lower = _mm256_or_si256(_mm256_slli_epi16(y, 8), _mm256_srli_epi16(y, 8));
    __m256i crosswise =
        _mm256_add_epi8(look_up_nibbles(upper_pairs, bits_from(upper, 12, _mm256_srli_epi16(lower, 2), 3)),
                        look_up_nibbles(outer_bits, bits_from(upper, 10, _mm256_srli_epi16(lower, 1), 5)));
    __m256i h = _mm256_srli_epi16(y, 8), square = _mm256_srli_epi16(_mm256_mullo_epi16(h, h), 1);
    __m256i middle = _mm256_mullo_epi16(_mm256_and_si256(upper, _mm256_set1_epi16(15)), _mm256_srli_epi16(y, 12));
    return _mm256_add_epi16(_mm256_add_epi16(square, middle), _mm256_maddubs_epi16(crosswise, _mm256_set1_epi8(1)));
}

template <> PTM_INLINE I32<8> truncated_square<8>(I32<8> x) {
    return (I32<8>)square_words(_mm256_srli_epi32((__m256i)x, 1));
}
template <> PTM_INLINE I32<8> quadratic_term<8>(I32<8> coefficient, I32<8> x) {
    return (I32<8>)_mm256_madd_epi16((__m256i)coefficient, (__m256i)truncated_square<8>(x)); // high words are zero
}

/// Words of both halves by turns.
PTM_INLINE __m256i square_halves(I32<16> x) {
    return square_words(
        _mm256_blend_epi16(_mm256_srli_epi32(low_half(x), 1), _mm256_slli_epi32(high_half(x), 15), 0xaa));
}
template <> PTM_INLINE I32<16> truncated_square<16>(I32<16> x) {
    __m256i squares = square_halves(x);
    return joined(_mm256_and_si256(squares, _mm256_set1_epi32(0x7fff)), _mm256_srli_epi32(squares, 16));
}
template <> PTM_INLINE I32<16> quadratic_term<16>(I32<16> coefficient, I32<16> x) {
    __m256i squares = square_halves(x);
    return joined(_mm256_madd_epi16(low_half(coefficient), _mm256_and_si256(squares, _mm256_set1_epi32(0x7fff))),
                  _mm256_madd_epi16(high_half(coefficient), _mm256_srli_epi32(squares, 16)));
}

} // namespace sfu
