// SPDX-License-Identifier: Apache-2.0
// Eight lanes of 32 bits in AVX2 registers. Only for product_avx2.cpp, which alone is compiled for such CPUs: all is
// local to it.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <initializer_list>

namespace ptarmigan::runtime::tensor_core {
namespace {

struct Lanes {
    static constexpr unsigned width = 8;
    using Float = __m256;
    using Int = __m256i;
    using Mask = __m256i; ///< all bits of a lane

    static Float load(const float* from) { return _mm256_loadu_ps(from); }
    static Int load(const std::uint32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store(float* to, Float value) { _mm256_storeu_ps(to, value); }
    static void store(std::uint32_t* to, Int value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }
    static Float all(float value) { return _mm256_set1_ps(value); }
    static Int all(int value) { return _mm256_set1_epi32(value); }
    static Int all(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
    static Int bits(Float value) { return _mm256_castps_si256(value); }
    static Float number(Int bits) { return _mm256_castsi256_ps(bits); }

    static Float mul(Float x, Float y) { return _mm256_mul_ps(x, y); }
    static Float fma(Float x, Float y, Float z) { return _mm256_fmadd_ps(x, y, z); }
    static Int truncate(Float x) { return _mm256_cvttps_epi32(x); }
    static Int add(Int x, Int y) { return _mm256_add_epi32(x, y); }
    static Int sub(Int x, Int y) { return _mm256_sub_epi32(x, y); }
    static Int greater(Int x, Int y) { return _mm256_max_epi32(x, y); }
    static Int smaller(Int x, Int y) { return _mm256_min_epi32(x, y); }
    static Int both(Int x, Int y) { return _mm256_and_si256(x, y); }
    static Int either(Int x, Int y) { return _mm256_xor_si256(x, y); }
    static Int any_of(Int x, Int y) { return _mm256_or_si256(x, y); }
    template <int count> static Int up(Int x) { return _mm256_slli_epi32(x, count); }
    template <int count> static Int down(Int x) { return _mm256_srli_epi32(x, count); }
    static Int sub_bytes(Int x, Int y) { return _mm256_subs_epu8(x, y); }
    static Int greater_bytes(Int x, Int y) { return _mm256_max_epu8(x, y); }

    static Mask is_equal(Int x, Int y) { return _mm256_cmpeq_epi32(x, y); }
    static Mask is_greater(Int x, Int y) { return _mm256_cmpgt_epi32(x, y); }
    static Mask is_negative(Int x) { return _mm256_srai_epi32(x, 31); }
    static Mask no_lanes() { return _mm256_setzero_si256(); }
    static Mask or_else(Mask x, Mask y) { return _mm256_or_si256(x, y); }
    static Mask but_not(Mask x, Mask y) { return _mm256_andnot_si256(y, x); }
    static Mask mask_of(std::uint32_t bits) {
        const Int place = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        return is_equal(both(all(bits), place), place);
    }
    static std::uint32_t bits_of(Mask mask) {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
    }
    static Int where(Mask mask, Int yes, Int no) { return _mm256_blendv_epi8(no, yes, mask); }

    /// The integer's 24 upper bits, whatever the rounding mode is: what was rounded up goes back by one.
    static Float to_float_toward_zero(Int x) {
        const Int magnitude = _mm256_abs_epi32(x);
        const Float rounded = _mm256_cvtepi32_ps(magnitude);
        const Int above = is_greater(sub(truncate(rounded), magnitude), all(0));
        const Int sign = both(x, all(0x80000000u));
        return number(any_of(add(bits(rounded), above), sign));
    }
    /// `value`, and 0 where `tested` is +0 or -0.
    static Int but_zero(Int tested, Int value) { return _mm256_andnot_si256(is_equal(up<1>(tested), all(0)), value); }
    /// x | y, and x where p is q.
    static Int or_unless_equal(Int x, Int y, Int p, Int q) { return any_of(x, _mm256_andnot_si256(is_equal(p, q), y)); }
    /// The same where the thread rounds toward zero.
    static Float to_float_if_toward_zero(Int x) { return _mm256_cvtepi32_ps(x); }
    /// Where the exponent x is not low .. high, and `some` is not 0 without its sign.
    static Mask outside_and_some(Int x, std::int32_t low, std::int32_t high, Int some) {
        return but_not(or_else(is_greater(all(low), x), is_greater(x, all(high))), is_equal(up<1>(some), all(0)));
    }
    static Float add_to_nearest(Float x, Float y) { return _mm256_add_ps(x, y); } // the caller sets the mode

    static Float load_f16(const void* from) {
        return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    }
    static void store_f16(void* to, Float value) {
        _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
    static Float round_to_f16(Float value) {
        return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }

    static Int load_bytes(const void* from) {
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
    }
    static Int load_halves(const void* from) {
        return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    }
    static void store_bytes(std::uint8_t* to, Int value) {
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
    }
    static Float widen_f16(Int halves) {
        return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
    }

    static constexpr unsigned per_word = 2; ///< products of dot()
    static Int dot(Int sum, Int x, Int y) { return add(sum, _mm256_madd_epi16(x, y)); }

    // Two elements of 16 bits a lane, with exponent bytes as in packed_lines.h.
    static Int magnitude_of_halves(Int halves) { return both(halves, _mm256_set1_epi16(0x7fff)); }
    static Int greater_halves(Int x, Int y) { return _mm256_max_epi16(x, y); }
    static Int halves_above(Int magnitude, int finite) {
        return _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(static_cast<short>(finite)));
    }
    static Int but_halves_above(Int magnitude, int finite) {
        return _mm256_andnot_si256(halves_above(magnitude, finite), magnitude);
    }
    static Int less_one_halves(Int x) { return _mm256_sub_epi16(x, _mm256_set1_epi16(1)); }
    static int greatest(Int x) {
        __m128i most = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
        most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
        most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
        return _mm_cvtsi128_si32(most);
    }
    static bool has_halves_above(Int magnitude, int finite) {
        return _mm256_movemask_epi8(halves_above(magnitude, finite)) != 0;
    }
    static Mask lanes_above(Int magnitude, int finite) {
        return but_not(all(-1), is_equal(halves_above(magnitude, finite), all(0)));
    }
    /// offset - exponent field in each half, 255 of zeros.
    static Int bytes_of_f16(Int magnitude, int offset) {
        const Int field = _mm256_max_epi16(_mm256_srli_epi16(magnitude, 10), _mm256_set1_epi16(1));
        const Int zero = _mm256_srli_epi16(_mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256()), 8);
        return any_of(_mm256_sub_epi16(_mm256_set1_epi16(static_cast<short>(offset)), field), zero);
    }
    /// The same of bf16, whose exponents become less by `moved` in `numbers`. Fields below `lowest` are flushed.
    static Int bytes_of_bf16(Int halves, Int magnitude, int moved, int lowest, Int& numbers) {
        const auto all_halves = [](int value) { return _mm256_set1_epi16(static_cast<short>(value)); };
        const Int field = _mm256_srli_epi16(magnitude, 7);
        const Int kept = _mm256_and_si256(_mm256_cmpgt_epi16(field, all_halves(lowest - 1)),
                                          _mm256_cmpgt_epi16(all_halves(255), field));
        numbers = both(kept, _mm256_sub_epi16(halves, all_halves(moved * 128)));
        return _mm256_blendv_epi8(all_halves(255), _mm256_sub_epi16(all_halves(16 + 127 + moved), field), kept);
    }
    /// `bytes` and how many of 0x400, 0x200 and 0x100 are above `magnitude`, if that is not 0.
    static Int count_below(Int bytes, Int magnitude) {
        const Int zero = _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256());
        for (const int bound : {0x400, 0x200, 0x100})
            bytes = _mm256_sub_epi16(
                bytes,
                _mm256_andnot_si256(zero, _mm256_cmpgt_epi16(_mm256_set1_epi16(static_cast<short>(bound)), magnitude)));
        return bytes;
    }
    static Int load_bytes_as_halves(const std::uint8_t* from) {
        return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }
    static void widen_f16_halves(Int halves, Float& low, Float& high) {
        low = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
        high = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    }
    /// The lower bytes of all halves.
    static void store_halves_as_bytes(std::uint8_t* to, Int halves) {
        const __m128i low = _mm256_castsi256_si128(halves), high = _mm256_extracti128_si256(halves, 1);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(low, high));
    }
    /// 2 * width halves to words.
    static void widen_halves(Int halves, Int& low, Int& high) {
        low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(halves));
        high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(halves, 1));
    }
    /// Bytes 1 and 2 of each lane change places.
    static Int swap_inner_bytes(Int x) {
        return _mm256_shuffle_epi8(x, _mm256_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15, 0, 2, 1, 3,
                                                       4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    }

    // Half as many lanes of 64 bits.
    using Double = __m256d;
    static Double load(const double* from) { return _mm256_loadu_pd(from); }
    static void store(double* to, Double value) { _mm256_storeu_pd(to, value); }
    static Double all(double value) { return _mm256_set1_pd(value); }
    static Double fma(Double x, Double y, Double z) { return _mm256_fmadd_pd(x, y, z); }
    static std::uint32_t nan_lanes(Double x) {
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_cmp_pd(x, x, _CMP_UNORD_Q)));
    }
    static std::uint32_t nan_lanes(Float x) {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    }

    /// Eight lanes.
    static __m256 load8_f16(const std::uint16_t* from) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }
    static void store8(float* to, __m256 value) { _mm256_storeu_ps(to, value); }
    static void store8_f16(std::uint16_t* to, __m256 value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
    static __m256 eight_of(Int value, unsigned) { return _mm256_castsi256_ps(value); }

    /// x[i] lane j becomes x[j] lane i.
    static void transpose_halves(Int (&x)[8]) {
        Int pair[8], quad[8];
        for (int i = 0; i < 4; ++i) {
            pair[2 * i] = _mm256_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
            pair[2 * i + 1] = _mm256_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
        }
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < 2; ++j) {
                quad[4 * i + 2 * j] = _mm256_unpacklo_epi64(pair[4 * i + j], pair[4 * i + 2 + j]);
                quad[4 * i + 2 * j + 1] = _mm256_unpackhi_epi64(pair[4 * i + j], pair[4 * i + 2 + j]);
            }
        }
        for (int i = 0; i < 4; ++i) {
            x[i] = _mm256_permute2x128_si256(quad[i], quad[4 + i], 0x20);
            x[4 + i] = _mm256_permute2x128_si256(quad[i], quad[4 + i], 0x31);
        }
    }
    static void load_lines(const std::uint32_t* from, unsigned stride, Int (&to)[8]) {
        for (unsigned i = 0; i < 8; ++i) to[i] = load(from + i * stride);
        transpose_halves(to);
    }
    static void load_short_lines(const std::uint32_t* from, unsigned stride, Int (&to)[8]) {
        for (unsigned i = 0; i < 8; ++i)
            to[i] = _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * stride)));
        transpose_halves(to);
    }
};

} // namespace
} // namespace ptarmigan::runtime::tensor_core
