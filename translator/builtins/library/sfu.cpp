// SPDX-License-Identifier: Apache-2.0
// The builtins ptm_<function>_<lanes> behind the .approx and .full instructions: the special function unit of sfu.h and
// the sequences that the hardware builds on it. See README.md for the naming and calling conventions.
#include "sfu_doubles.h"
#include "sfu_halves.h"
#ifdef PTARMIGAN_SFU_AVX512
#include "sfu_avx512.h"
#elif defined(PTARMIGAN_SFU_AVX2)
#include "sfu_avx2.h"
#endif

namespace sfu {
namespace {

/// Zero or subnormal.
template <int N> PTM_INLINE I32<N> is_small(I32<N> b) {
    return less<N>(b & 0x7fffffff, 0x1p-126f);
}

/// e in {253, 254}: the reciprocal would be subnormal.
template <int N> PTM_INLINE I32<N> has_tiny_reciprocal(I32<N> b) {
    I32<N> e = (b >> 23) & 255;
    return (e == 253) | (e == 254);
}

template <int N> PTM_INLINE I32<N> scaled(I32<N> b, float factor) {
    return bits<N>(real<N>(b) * factor);
}

template <int N> PTM_INLINE I32<N> canonical(F32<N> v) {
    return v != v ? I32<N>(nan_bits) : bits<N>(v);
}

// a * b, where b is not subnormal; results below 2^-126 before the subnormal rounding are flushed.
template <int N> PTM_INLINE I32<N> multiply_ftz(I32<N> a, I32<N> b) {
    F32<N> x = real<N>(flush<N>(a)), y = real<N>(b);
    I32<N> product = canonical<N>(x * y);
    I32<N> large = bits<N>((x * 0x1p24f) * y) & 0x7fffffff;
    I32<N> tiny = large < (24 + 1) * unit; // 2^-102; NaN and infinity are above
    return tiny ? (product & sign_bit) : product;
}

template <int N> PTM_INLINE I32<N> normalized(I32<N> b) {
    return is_small<N>(b) ? scaled<N>(b, 0x1p24f) : b;
}
template <int N> PTM_INLINE I32<N> rsqrt_full(I32<N> b) {
    return rsqrt_with_specials<N>(b, normalized<N>(b));
}
template <int N> PTM_INLINE I32<N> sqrt_full(I32<N> b) {
    return sqrt_with_specials<N>(b, normalized<N>(b));
}

template <int N> PTM_INLINE I32<N> lg2_full(I32<N> b) {
    I32<N> r = lg2_unit<N>(normalized<N>(b));
    return is_small<N>(b) ? bits<N>(real<N>(r) - 24.0f) : r;
}

// Below -126 the result is subnormal: the square of ex2(x / 2).
template <int N> PTM_INLINE I32<N> ex2_full(I32<N> b) {
    I32<N> low = less<N>(b, -126.0f);
    I32<N> r = ex2_unit<N>(low ? scaled<N>(b, 0.5f) : b);
    return low ? bits<N>(real<N>(r) * real<N>(r)) : r;
}

#ifdef PTARMIGAN_SFU_AVX512
template <> PTM_INLINE I32<16> rsqrt_full<16>(I32<16> b) {
    return (I32<16>)rsqrt_avx512((V)b);
}
template <> PTM_INLINE I32<16> sqrt_full<16>(I32<16> b) {
    return (I32<16>)sqrt_avx512((V)b, (V)b);
}
template <> PTM_INLINE I32<16> lg2_full<16>(I32<16> b) {
    return (I32<16>)lg2_avx512((V)b);
}
template <> PTM_INLINE I32<16> ex2_full<16>(I32<16> b) {
    return (I32<16>)ex2_avx512((V)b);
}
#endif

template <int N> PTM_INLINE I32<N> div_approx(I32<N> a, I32<N> b) {
    I32<N> small = (b & infinity_bits) == 0;
    a = small ? scaled<N>(a, 0x1p24f) : a;
    b = small ? scaled<N>(b, 0x1p24f) : b;
    return canonical<N>(real<N>(a) * real<N>(rcp_unit<N>(b)));
}

template <int N> PTM_INLINE I32<N> div_full(I32<N> a, I32<N> b) {
    I32<N> large = has_tiny_reciprocal<N>(b);
    a = large ? scaled<N>(a, 0.25f) : a;
    b = large ? scaled<N>(b, 0.25f) : b;
    return div_approx<N>(a, b);
}

template <int N> PTM_INLINE I32<N> div_full_ftz(I32<N> a, I32<N> b) {
    I32<N> large = has_tiny_reciprocal<N>(b);
    a = large ? multiply_ftz<N>(a, I32<N>(0x3e800000)) : a;
    b = large ? scaled<N>(b, 0.25f) : b;
    return multiply_ftz<N>(a, rcp_unit<N>(b));
}
template <int N> PTM_INLINE I32<N> div_approx_ftz(I32<N> a, I32<N> b) {
    return multiply_ftz<N>(a, rcp_unit<N>(b));
}

#ifdef PTARMIGAN_SFU_AVX512
template <> PTM_INLINE I32<16> div_approx<16>(I32<16> a, I32<16> b) {
    return (I32<16>)quotient_avx512<false>((V)a, (V)b);
}
template <> PTM_INLINE I32<16> div_full<16>(I32<16> a, I32<16> b) {
    return (I32<16>)quotient_avx512<true>((V)a, (V)b);
}
template <> PTM_INLINE I32<16> div_approx_ftz<16>(I32<16> a, I32<16> b) {
    return (I32<16>)quotient_ftz_avx512<false>((V)a, (V)b);
}
template <> PTM_INLINE I32<16> div_full_ftz<16>(I32<16> a, I32<16> b) {
    return (I32<16>)quotient_ftz_avx512<true>((V)a, (V)b);
}
#endif

} // namespace
} // namespace sfu

using namespace sfu;

namespace {

template <int N> PTM_INLINE I32<N> sine(I32<N> b) {
    return sin_cos<N>(b, false);
}
template <int N> PTM_INLINE I32<N> cosine(I32<N> b) {
    return sin_cos<N>(b, true);
}

// Function<N> for N lanes. With AVX-512 fewer lanes than 16 take the low ones of the unit's 16.
#ifdef PTARMIGAN_SFU_AVX512
template <int N> PTM_INLINE I32<16> padded(I32<N> v) {
    if constexpr (N == 8)
        return __builtin_shufflevector(v, I32<N>{}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8, 8);
    else
        return __builtin_shufflevector(v, I32<N>{}, 0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4);
}
template <int N> PTM_INLINE I32<N> first_lanes(I32<16> v) {
    if constexpr (N == 8)
        return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    else
        return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}
#define PTM_NARROW(n, function, ...) first_lanes<n>(function<16>(__VA_ARGS__))
#define PTM_PAD(n, v) padded<n>(v)
#else
#define PTM_NARROW(n, function, ...) function<n>(__VA_ARGS__)
#define PTM_PAD(n, v) v
#endif

} // namespace

// Exports for each lane count. One lane is plain scalars.
#define PTM_LANES(n, type, bits_type, name, function)                                                                  \
    type<n> ptm_##name##_##n(type<n> x) {                                                                              \
        return __builtin_bit_cast(type<n>, function<n>(__builtin_bit_cast(bits_type<n>, x)));                          \
    }
#define PTM_SCALAR(type, bits_type, bits_scalar, name, function)                                                       \
    type ptm_##name##_1(type x) {                                                                                      \
        bits_type<1> r = function<1>(__builtin_bit_cast(bits_scalar, x));                                              \
        return __builtin_bit_cast(type, bits_scalar(r[0]));                                                            \
    }
#define PTM_NARROW_LANES(n, type, name, function)                                                                      \
    type<n> ptm_##name##_##n(type<n> x) {                                                                              \
        I32<n> b = __builtin_bit_cast(I32<n>, x);                                                                      \
        return __builtin_bit_cast(type<n>, PTM_NARROW(n, function, PTM_PAD(n, b)));                                    \
    }
#define PTM_FLOAT(name, function)                                                                                      \
    PTM_SCALAR(float, I32, int, name##_f32, function)                                                                  \
    PTM_NARROW_LANES(4, F32, name##_f32, function)                                                                     \
    PTM_NARROW_LANES(8, F32, name##_f32, function)                                                                     \
    PTM_LANES(16, F32, I32, name##_f32, function)
// 16-bit formats travel in the low half of 32-bit lanes, doubles' high words in all of them.
#define PTM_WORD(name, function)                                                                                       \
    PTM_SCALAR(int, I32, int, name, function)                                                                          \
    PTM_LANES(4, I32, I32, name, function)                                                                             \
    PTM_LANES(8, I32, I32, name, function)                                                                             \
    PTM_LANES(16, I32, I32, name, function)
#define PTM_HIGH(name, function)                                                                                       \
    PTM_SCALAR(int, I32, int, name, function)                                                                          \
    PTM_NARROW_LANES(4, I32, name, function)                                                                           \
    PTM_NARROW_LANES(8, I32, name, function)                                                                           \
    PTM_LANES(16, I32, I32, name, function)
#define PTM_RSQRT_STEPS(n)                                                                                             \
    F64<n> ptm_rsqrt_operand_f64_##n(F64<n> a) {                                                                       \
        return rsqrt_operand<n>(a);                                                                                    \
    }                                                                                                                  \
    F64<n> ptm_rsqrt_refined_f64_##n(F64<n> a, F64<n> y) {                                                             \
        return rsqrt_refined<n>(a, y);                                                                                 \
    }
#define PTM_QUOTIENT_LANES(n, name, function)                                                                          \
    F32<n> ptm_##name##_f32_##n(F32<n> a, F32<n> b) {                                                                  \
        return real<n>(function<n>(bits<n>(a), bits<n>(b)));                                                           \
    }
#define PTM_NARROW_QUOTIENT(n, name, function)                                                                         \
    F32<n> ptm_##name##_f32_##n(F32<n> a, F32<n> b) {                                                                  \
        return real<n>(PTM_NARROW(n, function, PTM_PAD(n, bits<n>(a)), PTM_PAD(n, bits<n>(b))));                       \
    }
#define PTM_QUOTIENT(name, function)                                                                                   \
    float ptm_##name##_f32_1(float a, float b) {                                                                       \
        I32<1> r = function<1>(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b));                                \
        return __builtin_bit_cast(float, int(r[0]));                                                                   \
    }                                                                                                                  \
    PTM_NARROW_QUOTIENT(4, name, function)                                                                             \
    PTM_NARROW_QUOTIENT(8, name, function)                                                                             \
    PTM_QUOTIENT_LANES(16, name, function)

extern "C" {

PTM_FLOAT(rcp_ftz, rcp_unit)
PTM_FLOAT(rsqrt_ftz, rsqrt_unit)
PTM_FLOAT(sqrt_ftz, sqrt_unit)
PTM_FLOAT(ex2_ftz, ex2_unit)
PTM_FLOAT(lg2_ftz, lg2_unit)
PTM_FLOAT(sin_ftz, sine)
PTM_FLOAT(cos_ftz, cosine)
PTM_FLOAT(rcp, rcp_full)
PTM_FLOAT(rsqrt, rsqrt_full)
PTM_FLOAT(sqrt, sqrt_full)
PTM_FLOAT(ex2, ex2_full)
PTM_FLOAT(lg2, lg2_full)
PTM_FLOAT(sin, sine)
PTM_FLOAT(cos, cosine)
PTM_FLOAT(tanh, tanh_unit)
PTM_QUOTIENT(div_approx, div_approx)
PTM_QUOTIENT(div_approx_ftz, div_approx_ftz)
PTM_QUOTIENT(div_full, div_full)
PTM_QUOTIENT(div_full_ftz, div_full_ftz)
PTM_HIGH(rcp_high, rcp_high)
PTM_HIGH(rsqrt_high, rsqrt_high)
PTM_RSQRT_STEPS(4)
PTM_RSQRT_STEPS(8)
double ptm_rsqrt_operand_f64_1(double a) {
    return rsqrt_operand<1>(F64<1>(a))[0];
}
double ptm_rsqrt_refined_f64_1(double a, double y) {
    return rsqrt_refined<1>(F64<1>(a), F64<1>(y))[0];
}
PTM_WORD(ex2_f16, ex2_half)
PTM_WORD(tanh_f16, tanh_half)
PTM_WORD(ex2_bf16, ex2_bfloat)
PTM_WORD(tanh_bf16, tanh_bfloat)

} // extern "C"
