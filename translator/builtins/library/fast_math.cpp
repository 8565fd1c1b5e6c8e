// SPDX-License-Identifier: Apache-2.0
// ex2, lg2, sin, cos and tanh within the manual's error bounds rather than with the hardware's bits, for
// PTARMIGAN_APPROX=fast: polynomials in float, no tables. Subnormal inputs and results are kept; callers flush.
#include "lanes.h"

namespace {

inline constexpr int infinity_bits = 0x7f800000;

template <int N> PTM_INLINE F32<N> fma(F32<N> a, F32<N> b, F32<N> c) {
    return __builtin_elementwise_fma(a, b, c);
}

template <int N> PTM_INLINE F32<N> finish(F32<N> input, F32<N> result) {
    return input != input ? F32<N>(__builtin_bit_cast(float, 0x7fffffff)) : result;
}

/// 2^n for -126 <= n <= 127.
template <int N> PTM_INLINE F32<N> power_of_two(I32<N> n) {
    return real<N>((n + 127) << 23);
}

template <int N> PTM_INLINE F32<N> ex2_fast(F32<N> x) {
    F32<N> clamped = x > 130.0f ? F32<N>(130.0f) : x < -152.0f ? F32<N>(-152.0f) : x != x ? F32<N>(0.0f) : x;
    F32<N> whole = __builtin_elementwise_roundeven(clamped);
    F32<N> f = clamped - whole;
    F32<N> p = fma<N>(f, F32<N>(1.535336188319500e-4f), F32<N>(1.339887440266574e-3f));
    p = fma<N>(p, f, F32<N>(9.618437357674640e-3f));
    p = fma<N>(p, f, F32<N>(5.550332471162809e-2f));
    p = fma<N>(p, f, F32<N>(2.402264791363012e-1f));
    p = fma<N>(p, f, F32<N>(6.931472028550421e-1f));
    p = fma<N>(p, f, F32<N>(1.0f));
    // Two factors: one alone can't reach the subnormals, or 2^129.
    I32<N> n = __builtin_convertvector(whole, I32<N>);
    I32<N> half = n >> 1;
    return finish<N>(x, p * power_of_two<N>(half) * power_of_two<N>(n - half));
}

template <int N> PTM_INLINE F32<N> lg2_fast(F32<N> x) {
    I32<N> b = bits<N>(x);
    I32<N> small = (b > 0) & (b < 0x800000);
    b = small ? bits<N>(x * 0x1p24f) : b;
    // Mantissa in [sqrt(1/2), sqrt(2)).
    I32<N> shifted = b - 0x3f3504f3;
    I32<N> exponent = shifted >> 23;
    F32<N> t = real<N>((shifted & 0x7fffff) + 0x3f3504f3) - 1.0f;
    F32<N> p = fma<N>(t, F32<N>(7.0376836292e-2f), F32<N>(-1.1514610310e-1f));
    p = fma<N>(p, t, F32<N>(1.1676998740e-1f));
    p = fma<N>(p, t, F32<N>(-1.2420140846e-1f));
    p = fma<N>(p, t, F32<N>(1.4249322787e-1f));
    p = fma<N>(p, t, F32<N>(-1.6668057665e-1f));
    p = fma<N>(p, t, F32<N>(2.0000714765e-1f));
    p = fma<N>(p, t, F32<N>(-2.4999993993e-1f));
    p = fma<N>(p, t, F32<N>(3.3333331174e-1f));
    F32<N> square = t * t;
    F32<N> natural = fma<N>(square, fma<N>(p, t, F32<N>(-0.5f)), t);
    F32<N> whole = __builtin_convertvector(exponent - (small ? I32<N>(24) : I32<N>(0)), F32<N>);
    F32<N> r = fma<N>(natural, F32<N>(1.44269504088896341f), whole);
    r = b == infinity_bits ? x : r;
    r = x < 0.0f ? F32<N>(__builtin_bit_cast(float, 0x7fffffff)) : r;
    r = x == 0.0f ? F32<N>(-__builtin_inff()) : r;
    return finish<N>(x, r);
}

template <int N> PTM_INLINE F32<N> sin_cos_fast(F32<N> x, int quadrant_offset) {
    I32<N> magnitude = bits<N>(x) & 0x7fffffff;
    I32<N> special = magnitude >= infinity_bits;
    // Quarter turns in double: 53 bits keep the bound for every argument that the bound is stated for.
    F64<N> exact = __builtin_convertvector(special ? F32<N>(0.0f) : x, F64<N>);
    F64<N> turns = __builtin_elementwise_roundeven(exact * 0.63661977236758134308);
    F32<N> r = __builtin_convertvector(exact - turns * 1.57079632679489661923, F32<N>);
    // Beyond 2^53 quarter turns nothing is left of the phase: any result in [-1, 1] will do.
    r = r > 0.8f ? F32<N>(0.8f) : r < -0.8f ? F32<N>(-0.8f) : r;
    // The quadrant is the turns modulo 4.
    F64<N> rest = turns - 4.0 * __builtin_elementwise_floor(turns * 0.25);
    I32<N> quadrant = __builtin_convertvector(rest, I32<N>) + quadrant_offset;
    F32<N> s = r * r;
    F32<N> sine = fma<N>(s, F32<N>(-1.9515295891e-4f), F32<N>(8.3321608736e-3f));
    sine = fma<N>(fma<N>(sine, s, F32<N>(-1.6666654611e-1f)) * s, r, r);
    F32<N> cosine = fma<N>(s, F32<N>(2.443315711809948e-5f), F32<N>(-1.388731625493765e-3f));
    cosine = fma<N>(cosine, s, F32<N>(4.166664568298827e-2f));
    cosine = fma<N>(cosine, s * s, fma<N>(s, F32<N>(-0.5f), F32<N>(1.0f)));
    F32<N> result = (quadrant & 1) != 0 ? cosine : sine;
    result = real<N>(bits<N>(result) ^ ((quadrant & 2) << 30));
    // Sines of tiny numbers keep the zero's sign.
    result = quadrant_offset == 0 ? (x == 0.0f ? x : result) : result;
    return special ? F32<N>(__builtin_bit_cast(float, 0x7fffffff)) : result;
}

template <int N> PTM_INLINE F32<N> sin_fast(F32<N> x) {
    return sin_cos_fast<N>(x, 0);
}
template <int N> PTM_INLINE F32<N> cos_fast(F32<N> x) {
    return sin_cos_fast<N>(x, 1);
}

// (e^2x - 1) / (e^2x + 1); near zero, where that cancels, the series.
template <int N> PTM_INLINE F32<N> tanh_fast(F32<N> x) {
    F32<N> magnitude = real<N>(bits<N>(x) & 0x7fffffff);
    F32<N> bounded = magnitude > 10.0f ? F32<N>(10.0f) : magnitude;
    F32<N> e = ex2_fast<N>(bounded * 2.88539008177792681472f);
    F32<N> large = 1.0f - 2.0f / (e + 1.0f);
    F32<N> s = magnitude * magnitude;
    F32<N> small = fma<N>(fma<N>(s, F32<N>(0.13333333f), F32<N>(-0.33333333f)) * s, magnitude, magnitude);
    F32<N> r = magnitude < 0.1f ? small : large;
    return finish<N>(x, real<N>(bits<N>(r) | (bits<N>(x) & int(0x80000000u))));
}

} // namespace

#define PTM_FAST_LANES(n, name)                                                                                        \
    F32<n> ptm_##name##_fast_f32_##n(F32<n> x) {                                                                       \
        return name##_fast<n>(x);                                                                                      \
    }
#define PTM_FAST(name)                                                                                                 \
    float ptm_##name##_fast_f32_1(float x) {                                                                           \
        return name##_fast<1>(F32<1>(x))[0];                                                                           \
    }                                                                                                                  \
    PTM_FAST_LANES(4, name)                                                                                            \
    PTM_FAST_LANES(8, name)                                                                                            \
    PTM_FAST_LANES(16, name)

extern "C" {

PTM_FAST(ex2)
PTM_FAST(lg2)
PTM_FAST(sin)
PTM_FAST(cos)
PTM_FAST(tanh)

} // extern "C"
