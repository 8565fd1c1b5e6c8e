// SPDX-License-Identifier: Apache-2.0
// Sixteen lanes of 32 bits in AVX-512 registers. Only for product_avx512.cpp, which alone is compiled for such CPUs:
// all is local to it.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <initializer_list>

namespace ptarmigan::runtime::tensor_core {
namespace {

struct Lanes {
    static constexpr unsigned width = 16;
    using Float = __m512;
    using Int = __m512i;
    using Mask = __mmask16;

    static Float load(const float* from) { return _mm512_loadu_ps(from); }
    static Int load(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
    static void store(float* to, Float value) { _mm512_storeu_ps(to, value); }
    static void store(std::uint32_t* to, Int value) { _mm512_storeu_si512(to, value); }
    static Float all(float value) { return _mm512_set1_ps(value); }
    static Int all(int value) { return _mm512_set1_epi32(value); }
    static Int all(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
    static Int bits(Float value) { return _mm512_castps_si512(value); }
    static Float number(Int bits) { return _mm512_castsi512_ps(bits); }

    static Float mul(Float x, Float y) { return _mm512_mul_ps(x, y); }
    static Float fma(Float x, Float y, Float z) { return _mm512_fmadd_ps(x, y, z); }
    static Int truncate(Float x) { return _mm512_cvttps_epi32(x); }
    static Int add(Int x, Int y) { return _mm512_add_epi32(x, y); }
    static Int sub(Int x, Int y) { return _mm512_sub_epi32(x, y); }
    static Int greater(Int x, Int y) { return _mm512_max_epi32(x, y); }
    static Int smaller(Int x, Int y) { return _mm512_min_epi32(x, y); }
    static Int both(Int x, Int y) { return _mm512_and_si512(x, y); }
    static Int either(Int x, Int y) { return _mm512_xor_si512(x, y); }
    static Int any_of(Int x, Int y) { return _mm512_or_si512(x, y); }
    template <int count> static Int up(Int x) { return _mm512_slli_epi32(x, count); }
    template <int count> static Int down(Int x) { return _mm512_srli_epi32(x, count); }
    /// By bytes without sign: x - y, at least 0.
    static Int sub_bytes(Int x, Int y) { return _mm512_subs_epu8(x, y); }
    static Int greater_bytes(Int x, Int y) { return _mm512_max_epu8(x, y); }

    static Mask is_equal(Int x, Int y) { return _mm512_cmpeq_epi32_mask(x, y); }
    static Mask is_greater(Int x, Int y) { return _mm512_cmpgt_epi32_mask(x, y); }
    static Mask is_negative(Int x) { return _mm512_movepi32_mask(x); }
    static Mask no_lanes() { return 0; }
    static Mask or_else(Mask x, Mask y) { return static_cast<Mask>(x | y); }
    static Mask but_not(Mask x, Mask y) { return static_cast<Mask>(x & ~y); }
    static Mask mask_of(std::uint32_t bits) { return static_cast<Mask>(bits); }
    static std::uint32_t bits_of(Mask mask) { return mask; }
    static Int where(Mask mask, Int yes, Int no) { return _mm512_mask_mov_epi32(no, mask, yes); }

    /// The integer's 24 upper bits.
    static Float to_float_toward_zero(Int x) {
        return _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    }
    /// `value`, and 0 where `tested` is +0 or -0.
    static Int but_zero(Int tested, Int value) {
        return _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(tested, all(0x7fffffff)), value);
    }
    /// x | y, and x where p is q.
    static Int or_unless_equal(Int x, Int y, Int p, Int q) {
        return _mm512_mask_or_epi32(x, _mm512_cmpneq_epi32_mask(p, q), x, y);
    }
    static Float to_float_if_toward_zero(Int x) { return to_float_toward_zero(x); }
    /// Where the exponent x is not low .. high, and `some` is not 0 without its sign.
    static Mask outside_and_some(Int x, std::int32_t low, std::int32_t high, Int some) {
        return _mm512_mask_cmpgt_epu32_mask(_mm512_test_epi32_mask(some, all(0x7fffffff)),
                                            _mm512_sub_epi32(x, all(low)), all(high - low));
    }
    static Float add_to_nearest(Float x, Float y) {
        return _mm512_add_round_ps(x, y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }

    static Float load_f16(const void* from) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
    }
    static void store_f16(void* to, Float value) {
        _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
    /// To nearest even.
    static Float round_to_f16(Float value) {
        return _mm512_cvtph_ps(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }

    /// Sixteen elements to words.
    static Int load_bytes(const void* from) {
        return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    }
    static Int load_halves(const void* from) {
        return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
    }
    /// The lowest byte of each lane.
    static void store_bytes(std::uint8_t* to, Int value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(value));
    }
    static Float widen_f16(Int halves) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(halves)); }

#ifdef __AVX512VNNI__
    static constexpr unsigned per_word = 4; ///< products of dot()
    /// sum + signed bytes of x * unsigned ones of y
    static Int dot(Int sum, Int x, Int y) {
        return _mm512_dpbusd_epi32(sum, y, x);
    }
#else
    static constexpr unsigned per_word = 2;
    static Int dot(Int sum, Int x, Int y) {
        return add(sum, _mm512_madd_epi16(x, y));
    }
#endif

    // Two elements of 16 bits a lane, with exponent bytes as in packed_lines.h.
    static Int magnitude_of_halves(Int halves) {
        return both(halves, _mm512_set1_epi16(0x7fff));
    }
    static Int greater_halves(Int x, Int y) {
        return _mm512_max_epi16(x, y);
    }
    static Int but_halves_above(Int magnitude, int finite) {
        return _mm512_maskz_mov_epi16(_mm512_cmple_epi16_mask(magnitude, _mm512_set1_epi16(static_cast<short>(finite))),
                                      magnitude);
    }
    static Int less_one_halves(Int x) {
        return _mm512_sub_epi16(x, _mm512_set1_epi16(1));
    }
    static int greatest(Int x) {
        return _mm512_reduce_max_epi32(x);
    }
    static bool has_halves_above(Int magnitude, int finite) {
        return _mm512_cmpgt_epi16_mask(magnitude, _mm512_set1_epi16(static_cast<short>(finite))) != 0;
    }
    static Mask lanes_above(Int magnitude, int finite) {
        const __mmask32 above = _mm512_cmpgt_epi16_mask(magnitude, _mm512_set1_epi16(static_cast<short>(finite)));
        return _mm512_test_epi32_mask(_mm512_movm_epi16(above), _mm512_movm_epi16(above));
    }
    /// offset - exponent field in each half, 255 of zeros.
    static Int bytes_of_f16(Int magnitude, int offset) {
        const Int field = _mm512_max_epi16(_mm512_srli_epi16(magnitude, 10), _mm512_set1_epi16(1));
        return _mm512_mask_sub_epi16(_mm512_set1_epi16(255), _mm512_test_epi16_mask(magnitude, magnitude),
                                     _mm512_set1_epi16(static_cast<short>(offset)), field);
    }
    /// The same of bf16, whose exponents become less by `moved` in `numbers`. Fields below `lowest` are flushed.
    static Int bytes_of_bf16(Int halves, Int magnitude, int moved, int lowest, Int& numbers) {
        const auto all_halves = [](int value) { return _mm512_set1_epi16(static_cast<short>(value)); };
        const Int field = _mm512_srli_epi16(magnitude, 7);
        const __mmask32 kept =
            _mm512_cmpgt_epi16_mask(field, all_halves(lowest - 1)) & _mm512_cmplt_epi16_mask(field, all_halves(255));
        numbers = _mm512_maskz_sub_epi16(kept, halves, all_halves(moved * 128));
        return _mm512_mask_sub_epi16(all_halves(255), kept, all_halves(16 + 127 + moved), field);
    }
    /// `bytes` and how many of 0x400, 0x200 and 0x100 are above `magnitude`, if that is not 0.
    static Int count_below(Int bytes, Int magnitude) {
        const __mmask32 some = _mm512_test_epi16_mask(magnitude, magnitude);
        for (const int bound : {0x400, 0x200, 0x100})
            bytes = _mm512_mask_add_epi16(
                bytes, _mm512_mask_cmplt_epi16_mask(some, magnitude, _mm512_set1_epi16(static_cast<short>(bound))),
                bytes, _mm512_set1_epi16(1));
        return bytes;
    }
    static Int load_bytes_as_halves(const std::uint8_t* from) {
        return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    static void widen_f16_halves(Int halves, Float& low, Float& high) {
        low = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
        high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
    }
    /// The lower bytes of all halves.
    static void store_halves_as_bytes(std::uint8_t* to, Int halves) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi16_epi8(halves));
    }
    /// 2 * width halves to words.
    static void widen_halves(Int halves, Int& low, Int& high) {
        low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
        high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(halves, 1));
    }
    /// Bytes 1 and 2 of each lane change places.
    static Int swap_inner_bytes(Int x) {
        return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0f0d0e0c, 0x0b090a08, 0x07050604, 0x03010200));
    }

    // Half as many lanes of 64 bits.
    using Double = __m512d;
    static Double load(const double* from) {
        return _mm512_loadu_pd(from);
    }
    static void store(double* to, Double value) {
        _mm512_storeu_pd(to, value);
    }
    static Double all(double value) {
        return _mm512_set1_pd(value);
    }
    static Double fma(Double x, Double y, Double z) {
        return _mm512_fmadd_pd(x, y, z);
    }
    static std::uint32_t nan_lanes(Double x) {
        return _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q);
    }
    static std::uint32_t nan_lanes(Float x) {
        return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    }

    /// Eight lanes.
    static __m256 load8_f16(const std::uint16_t* from) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }
    static void store8(float* to, __m256 value) {
        _mm256_storeu_ps(to, value);
    }
    static void store8_f16(std::uint16_t* to, __m256 value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
    static __m256 eight_of(Int value, unsigned half) {
        return _mm256_castsi256_ps(half ? _mm512_extracti64x4_epi64(value, 1) : _mm512_castsi512_si256(value));
    }

    /// x[i] lane j becomes x[j] lane i, in each half of eight lanes. In registers: GCC 12 calls it with them in memory.
    [[gnu::always_inline]] static inline void transpose_halves(Int (&x)[8]) {
        Int pair[8], quad[8];
        for (int i = 0; i < 4; ++i) {
            pair[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
            pair[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
        }
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < 2; ++j) {
                quad[4 * i + 2 * j] = _mm512_unpacklo_epi64(pair[4 * i + j], pair[4 * i + 2 + j]);
                quad[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(pair[4 * i + j], pair[4 * i + 2 + j]);
            }
        }
        const Int low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                  high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        for (int i = 0; i < 4; ++i) {
            x[i] = _mm512_permutex2var_epi64(quad[i], low, quad[4 + i]);
            x[4 + i] = _mm512_permutex2var_epi64(quad[i], high, quad[4 + i]);
        }
    }
    /// Eight words of each of sixteen lines, `stride` words apart, to eight registers of sixteen lanes.
    [[gnu::always_inline]] static inline void load_lines(const std::uint32_t* from, unsigned stride, Int (&to)[8]) {
        for (unsigned i = 0; i < 8; ++i) {
            const auto* line = reinterpret_cast<const __m256i*>(from + i * stride);
            const auto* other = reinterpret_cast<const __m256i*>(from + (i + 8) * stride);
            to[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(line)), _mm256_loadu_si256(other), 1);
        }
        transpose_halves(to);
    }
    /// The same for four words.
    [[gnu::always_inline]] static inline void load_short_lines(const std::uint32_t* from, unsigned stride,
                                                               Int (&to)[8]) {
        for (unsigned i = 0; i < 8; ++i) {
            const auto* line = reinterpret_cast<const __m128i*>(from + i * stride);
            const auto* other = reinterpret_cast<const __m128i*>(from + (i + 8) * stride);
            to[i] = _mm512_inserti64x4(_mm512_castsi128_si512(_mm_loadu_si128(line)),
                                       _mm256_castsi128_si256(_mm_loadu_si128(other)), 1);
        }
        transpose_halves(to);
    }
};

} // namespace
} // namespace ptarmigan::runtime::tensor_core
