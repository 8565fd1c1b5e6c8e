// SPDX-License-Identifier: Apache-2.0
// Eight lanes of 32 bits in two NEON registers. Only for product_neon*_aarch64.cpp: all is local to the file that
// includes it. Bits are lanes_avx2.h's, which says what is not said here.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <initializer_list>

namespace ptarmigan::runtime::tensor_core {
namespace {

struct Lanes {
    static constexpr unsigned width = 8;
    struct Float {
        float32x4_t low, high;
    };
    struct Int {
        int32x4_t low, high;
    };
    using Mask = Int; ///< all bits of a lane

    static Float load(const float* from) { return {vld1q_f32(from), vld1q_f32(from + 4)}; }
    static Int load(const std::uint32_t* from) { return {signs(vld1q_u32(from)), signs(vld1q_u32(from + 4))}; }
    static void store(float* to, Float value) {
        vst1q_f32(to, value.low);
        vst1q_f32(to + 4, value.high);
    }
    static void store(std::uint32_t* to, Int value) {
        vst1q_u32(to, words(value.low));
        vst1q_u32(to + 4, words(value.high));
    }
    static Float all(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
    static Int all(int value) { return {vdupq_n_s32(value), vdupq_n_s32(value)}; }
    static Int all(std::uint32_t value) { return all(static_cast<int>(value)); }
    static Int bits(Float value) { return {vreinterpretq_s32_f32(value.low), vreinterpretq_s32_f32(value.high)}; }
    static Float number(Int bits) { return {vreinterpretq_f32_s32(bits.low), vreinterpretq_f32_s32(bits.high)}; }

    static Float mul(Float x, Float y) { return {vmulq_f32(x.low, y.low), vmulq_f32(x.high, y.high)}; }
    static Float fma(Float x, Float y, Float z) {
        return {vfmaq_f32(z.low, x.low, y.low), vfmaq_f32(z.high, x.high, y.high)};
    }
    static Int truncate(Float x) { return {vcvtq_s32_f32(x.low), vcvtq_s32_f32(x.high)}; }
    static Int add(Int x, Int y) { return {vaddq_s32(x.low, y.low), vaddq_s32(x.high, y.high)}; }
    static Int sub(Int x, Int y) { return {vsubq_s32(x.low, y.low), vsubq_s32(x.high, y.high)}; }
    static Int greater(Int x, Int y) { return {vmaxq_s32(x.low, y.low), vmaxq_s32(x.high, y.high)}; }
    static Int smaller(Int x, Int y) { return {vminq_s32(x.low, y.low), vminq_s32(x.high, y.high)}; }
    static Int both(Int x, Int y) { return {vandq_s32(x.low, y.low), vandq_s32(x.high, y.high)}; }
    static Int either(Int x, Int y) { return {veorq_s32(x.low, y.low), veorq_s32(x.high, y.high)}; }
    static Int any_of(Int x, Int y) { return {vorrq_s32(x.low, y.low), vorrq_s32(x.high, y.high)}; }
    template <int count> static Int up(Int x) { return {vshlq_n_s32(x.low, count), vshlq_n_s32(x.high, count)}; }
    template <int count> static Int down(Int x) {
        return {signs(vshrq_n_u32(words(x.low), count)), signs(vshrq_n_u32(words(x.high), count))};
    }
    static Int sub_bytes(Int x, Int y) {
        return {from_bytes(vqsubq_u8(bytes(x.low), bytes(y.low))), from_bytes(vqsubq_u8(bytes(x.high), bytes(y.high)))};
    }
    static Int greater_bytes(Int x, Int y) {
        return {from_bytes(vmaxq_u8(bytes(x.low), bytes(y.low))), from_bytes(vmaxq_u8(bytes(x.high), bytes(y.high)))};
    }

    static Mask is_equal(Int x, Int y) { return {signs(vceqq_s32(x.low, y.low)), signs(vceqq_s32(x.high, y.high))}; }
    static Mask is_greater(Int x, Int y) { return {signs(vcgtq_s32(x.low, y.low)), signs(vcgtq_s32(x.high, y.high))}; }
    static Mask is_negative(Int x) { return {vshrq_n_s32(x.low, 31), vshrq_n_s32(x.high, 31)}; }
    static Mask no_lanes() { return all(0); }
    static Mask or_else(Mask x, Mask y) { return any_of(x, y); }
    static Mask but_not(Mask x, Mask y) { return {vbicq_s32(x.low, y.low), vbicq_s32(x.high, y.high)}; }
    static Mask mask_of(std::uint32_t bits) {
        const Int lanes = all(bits), place = places();
        return {signs(vtstq_s32(lanes.low, place.low)), signs(vtstq_s32(lanes.high, place.high))};
    }
    static std::uint32_t bits_of(Mask mask) {
        const Int own = both(mask, places());
        return vaddvq_u32(words(vorrq_s32(own.low, own.high)));
    }
    static Int where(Mask mask, Int yes, Int no) {
        return {vbslq_s32(words(mask.low), yes.low, no.low), vbslq_s32(words(mask.high), yes.high, no.high)};
    }

    static Float to_float_toward_zero(Int x) { return {toward_zero(x.low), toward_zero(x.high)}; }
    static Int but_zero(Int tested, Int value) { return but_not(value, is_equal(up<1>(tested), all(0))); }
    static Int or_unless_equal(Int x, Int y, Int p, Int q) { return any_of(x, but_not(y, is_equal(p, q))); }
    static Float to_float_if_toward_zero(Int x) { return {vcvtq_f32_s32(x.low), vcvtq_f32_s32(x.high)}; }
    static Mask outside_and_some(Int x, std::int32_t low, std::int32_t high, Int some) {
        return but_not(or_else(is_greater(all(low), x), is_greater(x, all(high))), is_equal(up<1>(some), all(0)));
    }
    static Float add_to_nearest(Float x, Float y) { // the caller sets the mode
        return {vaddq_f32(x.low, y.low), vaddq_f32(x.high, y.high)};
    }

    static Float load_f16(const void* from) { return widened(vld1q_u16(static_cast<const std::uint16_t*>(from))); }
    static void store_f16(void* to, Float value) { vst1q_u16(static_cast<std::uint16_t*>(to), halves_of(value)); }
    static Float round_to_f16(Float value) { return widened(halves_of(value)); }

    static Int load_bytes(const void* from) {
        return extended(vmovl_u8(vld1_u8(static_cast<const std::uint8_t*>(from))));
    }
    static Int load_halves(const void* from) { return extended(vld1q_u16(static_cast<const std::uint16_t*>(from))); }
    static void store_bytes(std::uint8_t* to, Int value) {
        vst1_u8(to, vqmovn_u16(vcombine_u16(vqmovun_s32(value.low), vqmovun_s32(value.high))));
    }
    static Float widen_f16(Int halves) {
        return widened(vcombine_u16(vmovn_u32(words(halves.low)), vmovn_u32(words(halves.high))));
    }

#if defined(__ARM_FEATURE_MATMUL_INT8)
    static constexpr unsigned per_word = 4; ///< products of dot(): signed lanes, unsigned lines
    static Int dot(Int sum, Int x, Int y) {
        return {vusdotq_s32(sum.low, bytes(y.low), vreinterpretq_s8_s32(x.low)),
                vusdotq_s32(sum.high, bytes(y.high), vreinterpretq_s8_s32(x.high))};
    }
#else
    static constexpr unsigned per_word = 2; ///< products of dot()
    static Int dot(Int sum, Int x, Int y) {
        return {vaddq_s32(sum.low, pairs(shorts(x.low), shorts(y.low))),
                vaddq_s32(sum.high, pairs(shorts(x.high), shorts(y.high)))};
    }
#endif

    // Two elements of 16 bits a lane, with exponent bytes as in packed_lines.h.
    static Int magnitude_of_halves(Int halves) {
        return both(halves, all(0x7fff7fff));
    }
    static Int greater_halves(Int x, Int y) {
        return {from_shorts(vmaxq_s16(shorts(x.low), shorts(y.low))),
                from_shorts(vmaxq_s16(shorts(x.high), shorts(y.high)))};
    }
    static Int halves_above(Int magnitude, int finite) {
        return halves_greater(magnitude, all_halves(finite));
    }
    static Int but_halves_above(Int magnitude, int finite) {
        return but_not(magnitude, halves_above(magnitude, finite));
    }
    static Int less_one_halves(Int x) {
        return sub_halves(x, all_halves(1));
    }
    static int greatest(Int x) {
        return vmaxvq_s32(vmaxq_s32(x.low, x.high));
    }
    static bool has_halves_above(Int magnitude, int finite) {
        return vmaxvq_s16(vmaxq_s16(shorts(magnitude.low), shorts(magnitude.high))) > finite;
    }
    static Mask lanes_above(Int magnitude, int finite) {
        return but_not(all(-1), is_equal(halves_above(magnitude, finite), all(0)));
    }
    static Int bytes_of_f16(Int magnitude, int offset) {
        const Int field = greater_halves(down_halves<10>(magnitude), all_halves(1));
        return any_of(sub_halves(all_halves(offset), field), down_halves<8>(zero_halves(magnitude)));
    }
    static Int bytes_of_bf16(Int halves, Int magnitude, int moved, int lowest, Int& numbers) {
        const Int field = down_halves<7>(magnitude);
        const Int kept = both(halves_greater(field, all_halves(lowest - 1)), halves_greater(all_halves(255), field));
        numbers = both(kept, sub_halves(halves, all_halves(moved * 128)));
        return where(kept, sub_halves(all_halves(16 + 127 + moved), field), all_halves(255));
    }
    static Int count_below(Int bytes, Int magnitude) {
        const Int zero = zero_halves(magnitude);
        for (const int bound : {0x400, 0x200, 0x100})
            bytes = sub_halves(bytes, but_not(halves_greater(all_halves(bound), magnitude), zero));
        return bytes;
    }
    static Int load_bytes_as_halves(const std::uint8_t* from) {
        const uint8x16_t loaded = vld1q_u8(from);
        return {vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(loaded))), vreinterpretq_s32_u16(vmovl_high_u8(loaded))};
    }
    static void widen_f16_halves(Int halves, Float& low, Float& high) {
        low = widened(vreinterpretq_u16_s32(halves.low));
        high = widened(vreinterpretq_u16_s32(halves.high));
    }
    static void store_halves_as_bytes(std::uint8_t* to, Int halves) {
        vst1q_u8(to, vcombine_u8(vqmovun_s16(shorts(halves.low)), vqmovun_s16(shorts(halves.high))));
    }
    static void widen_halves(Int halves, Int& low, Int& high) {
        low = extended(vreinterpretq_u16_s32(halves.low));
        high = extended(vreinterpretq_u16_s32(halves.high));
    }
    static Int swap_inner_bytes(Int x) {
        constexpr std::uint8_t order[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
        const uint8x16_t places_of_bytes = vld1q_u8(order);
        return {from_bytes(vqtbl1q_u8(bytes(x.low), places_of_bytes)),
                from_bytes(vqtbl1q_u8(bytes(x.high), places_of_bytes))};
    }

    // Half as many lanes of 64 bits.
    struct Double {
        float64x2_t low, high;
    };
    static Double load(const double* from) {
        return {vld1q_f64(from), vld1q_f64(from + 2)};
    }
    static void store(double* to, Double value) {
        vst1q_f64(to, value.low);
        vst1q_f64(to + 2, value.high);
    }
    static Double all(double value) {
        return {vdupq_n_f64(value), vdupq_n_f64(value)};
    }
    static Double fma(Double x, Double y, Double z) {
        return {vfmaq_f64(z.low, x.low, y.low), vfmaq_f64(z.high, x.high, y.high)};
    }
    static std::uint32_t nan_lanes(Double x) {
        const uint32x4_t same = vcombine_u32(vmovn_u64(vceqq_f64(x.low, x.low)), vmovn_u64(vceqq_f64(x.high, x.high)));
        return bits_of({signs(vmvnq_u32(same)), vdupq_n_s32(0)});
    }
    static std::uint32_t nan_lanes(Float x) {
        return bits_of({signs(vmvnq_u32(vceqq_f32(x.low, x.low))), signs(vmvnq_u32(vceqq_f32(x.high, x.high)))});
    }

    /// Eight lanes.
    static Float load8_f16(const std::uint16_t* from) {
        return load_f16(from);
    }
    static void store8(float* to, Float value) {
        store(to, value);
    }
    static void store8_f16(std::uint16_t* to, Float value) {
        store_f16(to, value);
    }
    static Float eight_of(Int value, unsigned) {
        return number(value);
    }

    /// x[i] lane j becomes x[j] lane i.
    static void transpose_halves(Int (&x)[8]) {
        int32x4_t top_left[4] = {x[0].low, x[1].low, x[2].low, x[3].low};
        int32x4_t bottom_left[4] = {x[4].low, x[5].low, x[6].low, x[7].low};
        int32x4_t top_right[4] = {x[0].high, x[1].high, x[2].high, x[3].high};
        int32x4_t bottom_right[4] = {x[4].high, x[5].high, x[6].high, x[7].high};
        transpose(top_left);
        transpose(bottom_left);
        transpose(top_right);
        transpose(bottom_right);
        for (int i = 0; i < 4; ++i) {
            x[i] = {top_left[i], bottom_left[i]};
            x[4 + i] = {top_right[i], bottom_right[i]};
        }
    }
    static void load_lines(const std::uint32_t* from, unsigned stride, Int (&to)[8]) {
        for (unsigned i = 0; i < 8; ++i) to[i] = load(from + i * stride);
        transpose_halves(to);
    }
    static void load_short_lines(const std::uint32_t* from, unsigned stride, Int (&to)[8]) {
        int32x4_t top[4], bottom[4];
        for (unsigned i = 0; i < 4; ++i) {
            top[i] = signs(vld1q_u32(from + i * stride));
            bottom[i] = signs(vld1q_u32(from + (4 + i) * stride));
        }
        transpose(top);
        transpose(bottom);
        for (int i = 0; i < 4; ++i) to[i] = {top[i], bottom[i]};
    }

private:
    static int32x4_t signs(uint32x4_t x) {
        return vreinterpretq_s32_u32(x);
    }
    static uint32x4_t words(int32x4_t x) {
        return vreinterpretq_u32_s32(x);
    }
    static uint8x16_t bytes(int32x4_t x) {
        return vreinterpretq_u8_s32(x);
    }
    static int32x4_t from_bytes(uint8x16_t x) {
        return vreinterpretq_s32_u8(x);
    }
    static int16x8_t shorts(int32x4_t x) {
        return vreinterpretq_s16_s32(x);
    }
    static int32x4_t from_shorts(int16x8_t x) {
        return vreinterpretq_s32_s16(x);
    }

    static Int places() {
        constexpr std::int32_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
        return {vld1q_s32(bits), vld1q_s32(bits + 4)};
    }
    static Int all_halves(int value) {
        const int32x4_t same = from_shorts(vdupq_n_s16(static_cast<short>(value)));
        return {same, same};
    }
    static Int sub_halves(Int x, Int y) {
        return {from_shorts(vsubq_s16(shorts(x.low), shorts(y.low))),
                from_shorts(vsubq_s16(shorts(x.high), shorts(y.high)))};
    }
    static Int halves_greater(Int x, Int y) {
        return {vreinterpretq_s32_u16(vcgtq_s16(shorts(x.low), shorts(y.low))),
                vreinterpretq_s32_u16(vcgtq_s16(shorts(x.high), shorts(y.high)))};
    }
    static Int zero_halves(Int x) {
        return {vreinterpretq_s32_u16(vceqzq_s16(shorts(x.low))), vreinterpretq_s32_u16(vceqzq_s16(shorts(x.high)))};
    }
    template <int count> static Int down_halves(Int x) {
        return {vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(x.low), count)),
                vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(x.high), count))};
    }
    static Int extended(uint16x8_t x) {
        return {signs(vmovl_u16(vget_low_u16(x))), signs(vmovl_high_u16(x))};
    }
    static int32x4_t pairs(int16x8_t x, int16x8_t y) {
        return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
    }
    static Float widened(uint16x8_t halves) {
        return {vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(halves))),
                vcvt_high_f32_f16(vreinterpretq_f16_u16(halves))};
    }
    static uint16x8_t halves_of(Float value) {
        return vcombine_u16(half_bits(value.low), half_bits(value.high));
    }

    /// To nearest, ties to even, whatever FPCR says, which the conversion to f16 would heed.
    static uint16x4_t half_bits(float32x4_t value) {
        constexpr std::uint32_t least = 113u << 23, infinity = 0xffu << 23; // f16's least normal number
        const uint32x4_t bits = vreinterpretq_u32_f32(value), magnitude = vbicq_u32(bits, vdupq_n_u32(0x80000000u));
        // Half a unit less one, and one more if the last bit that stays is odd.
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(magnitude, 13), vdupq_n_u32(1));
        const uint32x4_t moved = vaddq_u32(vaddq_u32(magnitude, odd), vdupq_n_u32(0xfffu - (112u << 23)));
        const uint32x4_t normal = vminq_u32(vshrq_n_u32(moved, 13), vdupq_n_u32(0x7c00));
        const uint32x4_t small = vcvtnq_u32_f32(vmulq_n_f32(vabsq_f32(value), 0x1p24f)); // in f16's least units
        const uint32x4_t nan =
            vorrq_u32(vandq_u32(vshrq_n_u32(magnitude, 13), vdupq_n_u32(0x3ff)), vdupq_n_u32(0x7e00));
        uint32x4_t result = vbslq_u32(vcltq_u32(magnitude, vdupq_n_u32(least)), small, normal);
        result = vbslq_u32(vcgtq_u32(magnitude, vdupq_n_u32(infinity)), nan, result);
        return vmovn_u32(vorrq_u32(result, vshrq_n_u32(vbicq_u32(bits, vdupq_n_u32(0x7fffffff)), 16)));
    }
    /// The integer's 24 upper bits: what was rounded up goes back by one.
    static float32x4_t toward_zero(int32x4_t x) {
        const uint32x4_t magnitude = words(vabsq_s32(x));
        const float32x4_t rounded = vcvtq_f32_u32(magnitude);
        const uint32x4_t above = vcgtq_u32(vcvtq_u32_f32(rounded), magnitude);
        const uint32x4_t sign = vandq_u32(words(x), vdupq_n_u32(0x80000000u));
        return vreinterpretq_f32_u32(vorrq_u32(vaddq_u32(vreinterpretq_u32_f32(rounded), above), sign));
    }
    static void transpose(int32x4_t (&x)[4]) {
        const int64x2_t a = vreinterpretq_s64_s32(vtrn1q_s32(x[0], x[1])),
                        b = vreinterpretq_s64_s32(vtrn2q_s32(x[0], x[1]));
        const int64x2_t c = vreinterpretq_s64_s32(vtrn1q_s32(x[2], x[3])),
                        d = vreinterpretq_s64_s32(vtrn2q_s32(x[2], x[3]));
        x[0] = vreinterpretq_s32_s64(vtrn1q_s64(a, c));
        x[1] = vreinterpretq_s32_s64(vtrn1q_s64(b, d));
        x[2] = vreinterpretq_s32_s64(vtrn2q_s64(a, c));
        x[3] = vreinterpretq_s32_s64(vtrn2q_s64(b, d));
    }
};

} // namespace
} // namespace ptarmigan::runtime::tensor_core
