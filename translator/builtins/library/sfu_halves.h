// SPDX-License-Identifier: Apache-2.0
// ex2 and tanh of 16-bit formats: the special function unit's results truncated, by shorter ways
// that give the same bits for all 65,536 operands (tests/unit/builtins proves it). 16-bit operands
// and results travel in the low half of 32-bit lanes.
#pragma once

#include "sfu.h"

namespace sfu {

template <int N> PTM_INLINE I32<N> widen_half(I32<N> h) {
    I32<N> shifted = (h & 0x7fff) << 13;
    I32<N> finite = bits<N>(real<N>(shifted) * 0x1p112f); // subnormals too
    I32<N> magnitude = (h & 0x7c00) == 0x7c00 ? (shifted | infinity_bits) : finite;
    return magnitude | ((h & 0x8000) << 16);
}

// --- ex2: a polynomial in float is near enough, since all but 10 or 7 bits are cut off -----------------

/// 2^x for -127.5 < x <= 128; the bits of 1.0 below 2^-23, which is what the unit sees of x.
template <int N> PTM_INLINE I32<N> ex2_polynomial(F32<N> x) {
    const float magic = 0x1.8p23f; // its sum's low bits are the nearest integer
    x = (bits<N>(x) & 0x7fffffff) < 104 * unit ? F32<N>(0.0f) : x;
    F32<N> shifted = x + magic, f = x - (shifted - magic);
    F32<N> p = 0x1.5ec866p-10f;
    p = __builtin_elementwise_fma(p, f, F32<N>(0x1.3cbf6p-7f));
    p = __builtin_elementwise_fma(p, f, F32<N>(0x1.c6afeep-5f));
    p = __builtin_elementwise_fma(p, f, F32<N>(0x1.ebfa4cp-3f));
    p = __builtin_elementwise_fma(p, f, F32<N>(0x1.62e43p-1f));
    p = __builtin_elementwise_fma(p, f, F32<N>(1.0f));
    return bits<N>(p) + (bits<N>(shifted) << 23);
}
/// NaN becomes `low`.
template <int N> PTM_INLINE F32<N> clamped(F32<N> x, float low, float high) {
    x = x >= low ? x : F32<N>(low);
    return x > high ? F32<N>(high) : x;
}

template <int N> PTM_INLINE I32<N> ex2_half(I32<N> h) {
    F32<N> x = clamped<N>(real<N>(widen_half<N>(h)), -30.0f, 16.0f); // 2^16 becomes infinity
    I32<N> r = ex2_polynomial<N>(x), small = r < (127 - 14) * unit;
    I32<N> subnormal = __builtin_convertvector(real<N>(small ? r : 0) * 0x1p24f, I32<N>);
    r = small ? subnormal : (r >> 13) - (112 << 10);
    return (h & 0x7fff) > 0x7c00 ? I32<N>(0x7fff) : r;
}

template <int N> PTM_INLINE I32<N> ex2_bfloat(I32<N> h) {
    F32<N> x = real<N>(h << 16);
    I32<N> r = ex2_polynomial<N>(clamped<N>(x, -127.0f, 128.0f)) >> 16;
    r = x < -126.0f ? 0 : r;
    return (h & 0x7fff) > 0x7f80 ? I32<N>(0x7fff) : r;
}

// --- tanh: a table of the results where they are neither the operand nor 1 -----------------------------

inline constexpr int tanh_octaves = 11, tanh_first_exponent = 119;

/// truncated_square() of one number.
constexpr int square_of(int x) {
    auto corner = [](int u, int h) {
        return (u >> 2) * (h >> 2) + ((u >> 3) & (h >> 1) & 1) + ((u >> 1) & (h >> 3) & 1);
    };
    int h = x >> 9, u = (x >> 1) & 255;
    return ((h * h) >> 1) + (u >> 4) * (h >> 4) + corner(u >> 4, h & 15) + corner(u & 15, h >> 4);
}
/// The unit's result for the mantissa `m` of 23 bits in an octave, as bits of a float truncated
/// toward zero.
constexpr int tanh_of(int octave, int m) {
    const int* range = tanh_ranges[octave];
    const int* row = tanh_table[range[1] + (m >> (range[0] + 17))];
    const int x = (m >> range[0]) & 0x1ffff;
    long p = ((long)row[0] << 16) + (long)row[1] * x + 2 * (long)row[2] * square_of(x);
    int exponent = range[2] - 39 + 23; // of the last of 24 bits
    for (; p >= 1l << 24; p >>= 1) ++exponent;
    return int(p) - unit + exponent * unit;
}

/// Results of one octave for mantissas of `Bits` bits, two to a word; `shift` of a float's bits and
/// `bias` make them of the format.
template <int Bits> struct TanhOctave { int word[1 << (Bits - 1)]; };
template <int Bits> constexpr TanhOctave<Bits> tanh_octave(int octave, int shift, int bias) {
    TanhOctave<Bits> result{};
    for (int m = 0; m < 1 << Bits; ++m)
        result.word[m >> 1] |= int(unsigned((tanh_of(octave, m << (23 - Bits)) >> shift) - bias) << (16 * (m & 1)));
    return result;
}
/// By octaves, each a constant of its own to the compiler: it counts the steps of one evaluation.
template <int Bits> struct TanhTable { TanhOctave<Bits> octave[tanh_octaves]; };
template <int Bits, int Octave>
inline constexpr TanhOctave<Bits> tanh_octave_of = tanh_octave<Bits>(Octave, 23 - Bits, Bits == 10 ? 112 << 10 : 0);
template <int Bits>
inline constexpr TanhTable<Bits> tanh_results = {
    {tanh_octave_of<Bits, 0>, tanh_octave_of<Bits, 1>, tanh_octave_of<Bits, 2>, tanh_octave_of<Bits, 3>,
     tanh_octave_of<Bits, 4>, tanh_octave_of<Bits, 5>, tanh_octave_of<Bits, 6>, tanh_octave_of<Bits, 7>,
     tanh_octave_of<Bits, 8>, tanh_octave_of<Bits, 9>, tanh_octave_of<Bits, 10>}};

/// `first`: the least magnitude in the table, `one` and `infinity`: bits of the format.
template <int N, int Bits> PTM_INLINE I32<N> tanh_by_table(I32<N> h, int first, int one, int infinity) {
    const int entries = tanh_octaves << Bits;
    I32<N> magnitude = h & 0x7fff, index = magnitude - first;
    I32<N> inside = (index >= 0) & (index < entries);
    index = inside ? index : 0;
    I32<N> word = gather<N>(&tanh_results<Bits>.octave[0].word[0], index >> 1);
    I32<N> r = shift_down<N>(word, (index & 1) << 4) & 0xffff;
    r = inside ? r : magnitude < first ? magnitude : I32<N>(one);
    r = r | (h & 0x8000);
    return magnitude > infinity ? I32<N>(0x7fff) : r;
}
template <int N> PTM_INLINE I32<N> tanh_half(I32<N> h) {
    return tanh_by_table<N, 10>(h, (tanh_first_exponent - 112) << 10, 0x3c00, 0x7c00);
}
template <int N> PTM_INLINE I32<N> tanh_bfloat(I32<N> h) {
    return tanh_by_table<N, 7>(h, tanh_first_exponent << 7, 0x3f80, 0x7f80);
}

} // namespace sfu
