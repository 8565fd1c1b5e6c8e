// SPDX-License-Identifier: Apache-2.0
// What the interpolators of sfu_avx512.h are made of: rows looked up in registers, the squarer, masks. Every AVX-512
// CPU of level x86-64-v4 will do; VBMI, VBMI2 and VNNI shorten the squarer and some sums.
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

// --- rows ---------------------------------------------------------------------------------------------

/// A word of each row of a table.
template <int Count> struct alignas(64) Rows { std::array<int, Count> word; };
template <int Count, typename Word> constexpr Rows<Count> rows_of(Word word) {
    Rows<Count> result{};
    for (int row = 0; row < Count; ++row) result.word[row] = int(unsigned(word(row)));
    return result;
}

/// A row number: its five low bits, with rubbish above them; its bits 5 and 6 as masks.
struct Row {
    V low;
    __mmask16 bit5, bit6;
};
/// The row that stands in the bits of `word` from First on.
template <int First> PTM_INLINE Row row_in(V word) {
    return {_mm512_srli_epi32(word, First), _mm512_test_epi32_mask(word, splat(1 << (First + 5))),
            _mm512_test_epi32_mask(word, splat(1 << (First + 6)))};
}
/// Of the 32 words at `words`.
PTM_INLINE V look_up_32(const int* words, V index) {
    return _mm512_permutex2var_epi32(_mm512_load_si512(words), index, _mm512_load_si512(words + 16));
}
PTM_INLINE V look_up_64(const int* words, const Row& row) {
    return _mm512_mask_mov_epi32(look_up_32(words, row.low), row.bit5, look_up_32(words + 32, row.low));
}
PTM_INLINE V look_up(const Rows<64>& rows, const Row& row) {
    return look_up_64(rows.word.data(), row);
}
PTM_INLINE V look_up(const Rows<128>& rows, const Row& row) {
    const int* words = rows.word.data();
    return _mm512_mask_mov_epi32(look_up_64(words, row), row.bit6, look_up_64(words + 64, row));
}

// --- arithmetic ---------------------------------------------------------------------------------------

PTM_INLINE V multiply(V a, V b) {
    return (V)((I32<16>)a * (I32<16>)b);
}
PTM_INLINE V add(V a, V b) {
    return _mm512_add_epi32(a, b);
}
/// sum + the products of the low and of the high 16 bits, with sign.
PTM_INLINE V add_products(V sum, V a, V b) {
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sum, a, b);
#else
    return add(sum, _mm512_madd_epi16(a, b));
#endif
}
/// The low bits of `high` above the upper `Count` bits of `low`.
template <int Count> PTM_INLINE V shifted_in(V high, int low) {
#ifdef __AVX512VBMI2__
    return _mm512_shldi_epi32(high, splat(int(unsigned(low) << (32 - Count))), Count);
#else
    return _mm512_or_si512(_mm512_slli_epi32(high, Count), splat(low));
#endif
}

// --- the squarer ----------------------------------------------------------------------------------------
// Of 17 bits x, let g be the top seven, h the bit below them and u the next eight. truncated_square<16>(x) is
// 2 g^2 + 2 h g + (u >> 4)(g >> 3) + what the nibbles of u give with those of the top eight bits, crosswise.

/// What two nibbles give, by bits 1 to 3 of the one from u (low) and of the other.
constexpr int nibble_product(int index) {
    const int a = (index & 7) << 1, b = index >> 3 << 1;
    return (a >> 2) * (b >> 2) + ((a >> 3) & (b >> 1) & 1) + ((a >> 1) & (b >> 3) & 1);
}

#ifdef __AVX512VBMI__

template <int O0, int O1, int O2, int O3> PTM_INLINE V field_control() {
    const unsigned low = O0 | O1 << 8 | O2 << 16 | O3 << 24;
    return _mm512_set1_epi64(long(low | (unsigned long)(low + 0x20202020u) << 32));
}
/// Bits [offset, offset + 8) of each word for each of the four offsets.
template <int O0, int O1, int O2, int O3> PTM_INLINE V fields(V word) {
    return _mm512_multishift_epi64_epi8(field_control<O0, O1, O2, O3>(), word);
}
struct alignas(64) NibbleProducts {
    std::array<unsigned char, 64> byte{};
};
constexpr NibbleProducts nibble_products() {
    NibbleProducts result;
    for (int i = 0; i < 64; ++i) result.byte[i] = (unsigned char)nibble_product(i);
    return result;
}
inline constexpr NibbleProducts nibble_bytes = nibble_products();

/// The square of x << Shift, which has 17 bits, plus Start. Field 17 is the first of the zeros above.
template <int Shift = 0, int Start = 0> PTM_INLINE V truncated_square(V x) {
    // From the lowest byte: nibbles to look up, u >> 4, nibbles again, 2 h.
    V low = fields<6 - Shift, 5 - Shift, 2 - Shift, 8 - Shift>(x);
    V high = fields<7 - Shift, 17 - Shift, 11 - Shift, 17 - Shift>(x);
    V left = _mm512_ternarylogic_epi32(low, high, splat(0x02070f07), 0xe4); // low where the constant is one
    V right = fields<17 - Shift, 13 - Shift, 17 - Shift, 10 - Shift>(x);    // 0, g >> 3, 0, g
    V top = fields<10 - Shift, 17 - Shift, 10 - Shift, 17 - Shift>(x);
    V square = Start ? _mm512_dpwssd_epi32(splat(Start), top, top) : _mm512_madd_epi16(top, top);
    V products = _mm512_permutexvar_epi8(left, _mm512_load_si512(nibble_bytes.byte.data()));
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(square, left, right), products, splat(0x00010001));
}

#else

inline constexpr Rows<64> nibble_words = rows_of<64>(nibble_product);

/// The square of x << Shift, which has 17 bits.
template <int Shift = 0> PTM_INLINE V truncated_square(V x) {
    const auto bits_from = [x](int first) { return _mm512_srli_epi32(x, unsigned(first - Shift)); };
    const auto nibbles = [&](int low, int high) {
        V index = _mm512_ternarylogic_epi32(bits_from(low), bits_from(high - 3), splat(7), 0xe4); // low where it is one
        return look_up(nibble_words, {index, _mm512_test_epi32_mask(x, splat(1 << (high + 2 - Shift))), 0});
    };
    V top = bits_from(9), square = _mm512_srli_epi32(_mm512_madd_epi16(top, top), 1);
    square = add(square, _mm512_madd_epi16(_mm512_and_si512(bits_from(5), splat(15)), bits_from(13)));
    return add(square, add(nibbles(6, 10), nibbles(2, 14)));
}

#endif

/// A result as the CPU's estimate and what is missing in it.
struct Sum {
    V estimate, missing;
};

// What a class of inputs is called by vfpclassps.
inline constexpr int class_nan = 0x81, class_zero = 0x06, class_infinity = 0x18, class_subnormal = 0x20;
template <int Classes> PTM_INLINE __mmask16 is(V b) {
    return _mm512_fpclass_ps_mask(as_real(b), Classes);
}
template <int Predicate> PTM_INLINE __mmask16 compare(V b, float value) {
    return _mm512_cmp_ps_mask(as_real(b), _mm512_set1_ps(value), Predicate);
}
PTM_INLINE __mmask16 is_number(V b) {
    return _mm512_cmp_ps_mask(as_real(b), as_real(b), _CMP_ORD_Q);
}

PTM_INLINE V magnitude_of(V b) {
    return _mm512_and_si512(b, splat(0x7fffffff));
}
PTM_INLINE V nan_where(__mmask16 where, V r) {
    return _mm512_mask_mov_epi32(r, where, splat(nan_bits));
}
/// Written as canonicalizations are, so that they go where nobody asks for a NaN's bits.
PTM_INLINE V canonical_nan(V r) {
    F32<16> number = (F32<16>)as_real(r);
    return (V)(number == number ? number : F32<16>(__builtin_bit_cast(float, nan_bits)));
}

PTM_INLINE V scaled_where(__mmask16 where, V b, float factor) {
    return as_bits(_mm512_mask_mul_ps(as_real(b), where, as_real(b), _mm512_set1_ps(factor)));
}
PTM_INLINE V flushed(V b) {
    return _mm512_mask_and_epi32(b, is<class_subnormal>(b), b, splat(sign_bit));
}
/// vfixupimmps: r, or what the nibble of `table` for b's class asks for. Classes from the lowest nibble on: quiet NaN,
/// signalling NaN, zero, one, -infinity, +infinity, negative, positive. Responses: see keep and the others.
PTM_INLINE V fixed_up(V r, V b, int table) {
    return as_bits(_mm512_fixupimm_ps(as_real(r), as_real(b), splat(table), 0));
}
enum Response : int {
    keep = 0,
    operand_itself = 1,
    quiet_nan = 2,
    any_nan = 3,
    negative_infinity = 4,
    positive_infinity = 5,
    infinity_with_sign = 6,
    negative_zero = 7,
    positive_zero = 8,
    minus_one = 9,
    plus_one = 10
};
constexpr int responses(int nan, int zero, int one, int below, int above, int negative, int positive) {
    return int(unsigned(nan | nan << 4 | zero << 8 | one << 12 | below << 16 | above << 20 | negative << 24) |
               unsigned(positive) << 28);
}

} // namespace sfu
