// SPDX-License-Identifier: Apache-2.0
// Double arithmetic rounded toward zero (1), down (2) or up (3), in integers: for CPUs without embedded rounding. Exact
// and slow; such instructions are rare.
#include "lanes.h"

namespace {

using Wide = unsigned __int128;

enum Mode : int { toward_zero = 1, down = 2, up = 3 };

inline constexpr long infinity_bits = 0x7ff0000000000000l;
inline constexpr unsigned long sign_mask = 1ul << 63;

PTM_INLINE bool is_nan(unsigned long b) {
    return (b & ~sign_mask) > (unsigned long)infinity_bits;
}
PTM_INLINE bool is_infinite(unsigned long b) {
    return (b & ~sign_mask) == (unsigned long)infinity_bits;
}
PTM_INLINE bool is_zero(unsigned long b) {
    return (b & ~sign_mask) == 0;
}

/// (-1)^negative * magnitude * 2^exponent
struct Number {
    bool negative;
    int exponent;
    Wide magnitude;
};

PTM_INLINE Number unpack(unsigned long b) {
    int field = int(b >> 52) & 2047;
    unsigned long fraction = b & 0xffffffffffffful;
    return {bool(b >> 63), (field ? field : 1) - 1075, field ? fraction | 1ul << 52 : fraction};
}

PTM_INLINE int leading_zeros(Wide v) {
    unsigned long high = (unsigned long)(v >> 64), low = (unsigned long)v;
    return high ? __builtin_clzl(high) : low ? 64 + __builtin_clzl(low) : 128;
}

// Shifts right; bits that fall out leave a one behind in the last place.
PTM_INLINE Wide shift_right_sticky(Wide v, int count) {
    if (count <= 0) return v;
    if (count > 127) return v != 0;
    return v >> count | Wide((v & ((Wide(1) << count) - 1)) != 0);
}

// The number, whose last bit may be sticky if there are more than 55 bits, rounded to a double.
PTM_INLINE unsigned long pack(Number n, int mode) {
    unsigned long sign = n.negative ? sign_mask : 0;
    if (n.magnitude == 0) return mode == down ? sign_mask : 0; // exact cancellation
    int bits = 128 - leading_zeros(n.magnitude);
    int exponent = n.exponent + bits - 53; // of the last place of a normal result
    if (exponent < -1074) exponent = -1074;
    int drop = exponent - n.exponent;
    bool inexact = false;
    unsigned long result;
    if (drop > 0) {
        Wide kept = drop > 127 ? Wide(0) : n.magnitude >> drop;
        inexact = drop > 127 || (kept << drop) != n.magnitude;
        result = (unsigned long)kept;
    } else {
        result = (unsigned long)(n.magnitude << -drop);
    }
    bool away = mode == up ? !n.negative : mode == down ? n.negative : false;
    if (inexact && away) ++result; // may carry into the next power of two: the encoding below absorbs it
    long field = exponent + 1074;  // subnormal: 0
    unsigned long encoded = (field << 52) + result; // the hidden bit adds one to the exponent field
    if (encoded >= (unsigned long)infinity_bits) encoded = away ? infinity_bits : infinity_bits - 1;
    return encoded | sign;
}

PTM_INLINE unsigned long quiet(unsigned long b) {
    return b | 1ul << 51;
}
inline constexpr unsigned long invalid = 0xfff8000000000000ul;

PTM_INLINE unsigned long add_numbers(Number a, Number b, int mode) {
    // The larger one to the top, with room for a carry; the smaller one aligned to it.
    int top_a = a.magnitude ? a.exponent + 128 - leading_zeros(a.magnitude) : -100000;
    int top_b = b.magnitude ? b.exponent + 128 - leading_zeros(b.magnitude) : -100000;
    if (top_a < top_b) {
        Number t = a;
        a = b, b = t;
    }
    if (b.magnitude == 0) return pack(a, mode);
    int lift = leading_zeros(a.magnitude) - 2;
    a.magnitude <<= lift;
    a.exponent -= lift;
    int shift = a.exponent - b.exponent;
    b.magnitude = shift >= 0 ? shift_right_sticky(b.magnitude, shift) : b.magnitude << -shift;
    if (a.negative == b.negative)
        a.magnitude += b.magnitude;
    else if (a.magnitude >= b.magnitude)
        a.magnitude -= b.magnitude;
    else
        a = {b.negative, a.exponent, b.magnitude - a.magnitude};
    return pack(a, mode);
}

PTM_INLINE unsigned long add_rounded(unsigned long a, unsigned long b, int mode) {
    if (is_nan(a)) return quiet(a);
    if (is_nan(b)) return quiet(b);
    if (is_infinite(a)) return is_infinite(b) && a != b ? invalid : a;
    if (is_infinite(b)) return b;
    if (is_zero(a) && is_zero(b)) return a == b ? a : mode == down ? sign_mask : 0;
    return add_numbers(unpack(a), unpack(b), mode);
}

PTM_INLINE unsigned long fma_rounded(unsigned long a, unsigned long b, unsigned long c, int mode) {
    if (is_nan(a)) return quiet(a);
    if (is_nan(b)) return quiet(b);
    if (is_nan(c)) return quiet(c);
    unsigned long sign = (a ^ b) & sign_mask;
    if (is_infinite(a) || is_infinite(b)) {
        if (is_zero(a) || is_zero(b)) return invalid;
        unsigned long product = sign | infinity_bits;
        return is_infinite(c) && c != product ? invalid : product;
    }
    if (is_infinite(c)) return c;
    if (is_zero(a) || is_zero(b)) {
        if (!is_zero(c)) return c;
        return sign == (c & sign_mask) ? c : mode == down ? sign_mask : 0;
    }
    Number x = unpack(a), y = unpack(b);
    Number product = {sign != 0, x.exponent + y.exponent, x.magnitude * y.magnitude};
    return add_numbers(product, unpack(c), mode);
}

PTM_INLINE unsigned long mul_rounded(unsigned long a, unsigned long b, int mode) {
    if (is_nan(a)) return quiet(a);
    if (is_nan(b)) return quiet(b);
    unsigned long sign = (a ^ b) & sign_mask;
    if (is_infinite(a) || is_infinite(b)) return is_zero(a) || is_zero(b) ? invalid : sign | infinity_bits;
    if (is_zero(a) || is_zero(b)) return sign;
    Number x = unpack(a), y = unpack(b);
    return pack({sign != 0, x.exponent + y.exponent, x.magnitude * y.magnitude}, mode);
}

PTM_INLINE unsigned long div_rounded(unsigned long a, unsigned long b, int mode) {
    if (is_nan(a)) return quiet(a);
    if (is_nan(b)) return quiet(b);
    unsigned long sign = (a ^ b) & sign_mask;
    if (is_infinite(a)) return is_infinite(b) ? invalid : sign | infinity_bits;
    if (is_infinite(b)) return sign;
    if (is_zero(b)) return is_zero(a) ? invalid : sign | infinity_bits;
    if (is_zero(a)) return sign;
    Number x = unpack(a), y = unpack(b);
    // Both to 53 bits, then long division: 57 quotient bits and a sticky one.
    int lift_x = leading_zeros(x.magnitude) - 75, lift_y = leading_zeros(y.magnitude) - 75;
    unsigned long rest = (unsigned long)x.magnitude << lift_x, divisor = (unsigned long)y.magnitude << lift_y;
    unsigned long quotient = 0;
    for (int i = 0; i < 57; ++i) {
        quotient <<= 1;
        if (rest >= divisor) rest -= divisor, quotient |= 1;
        rest <<= 1;
    }
    quotient = quotient << 1 | (rest != 0);
    return pack({sign != 0, x.exponent - lift_x - y.exponent + lift_y - 57, quotient}, mode);
}

PTM_INLINE unsigned long sqrt_rounded(unsigned long a, int mode) {
    if (is_nan(a)) return quiet(a);
    if (is_zero(a)) return a;
    if (a >> 63) return invalid;
    if (is_infinite(a)) return a;
    Number x = unpack(a);
    int lift = leading_zeros(x.magnitude) - 12; // to 116 bits or, for an even exponent, 115
    if ((x.exponent - lift) & 1) --lift;
    x.magnitude <<= lift;
    x.exponent -= lift;
    Wide root = 0, rest = x.magnitude;
    for (Wide bit = Wide(1) << 116; bit; bit >>= 2) {
        if (rest >= root + bit) {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return pack({false, x.exponent / 2 - 1, root << 1 | (rest != 0)}, mode);
}

PTM_INLINE unsigned long sub_rounded(unsigned long a, unsigned long b, int mode) {
    return add_rounded(a, is_nan(b) ? b : b ^ sign_mask, mode);
}

PTM_INLINE unsigned long to_bits(double v) {
    return __builtin_bit_cast(unsigned long, v);
}
PTM_INLINE double to_double(unsigned long v) {
    return __builtin_bit_cast(double, v);
}

} // namespace

// One lane as plain scalars, and vectors lane by lane.
#define PTM_BINARY_LANES(n, name, function)                                                                            \
    F64<n> ptm_##name##_round_f64_##n(F64<n> a, F64<n> b, int mode) {                                                  \
        F64<n> r;                                                                                                      \
        for (int i = 0; i < n; ++i) r[i] = to_double(function(to_bits(a[i]), to_bits(b[i]), mode));                    \
        return r;                                                                                                      \
    }
#define PTM_BINARY(name, function)                                                                                     \
    double ptm_##name##_round_f64_1(double a, double b, int mode) {                                                    \
        return to_double(function(to_bits(a), to_bits(b), mode));                                                      \
    }                                                                                                                  \
    PTM_BINARY_LANES(4, name, function)                                                                                \
    PTM_BINARY_LANES(8, name, function)
#define PTM_FMA_LANES(n)                                                                                               \
    F64<n> ptm_fma_round_f64_##n(F64<n> a, F64<n> b, F64<n> c, int mode) {                                             \
        F64<n> r;                                                                                                      \
        for (int i = 0; i < n; ++i) r[i] = to_double(fma_rounded(to_bits(a[i]), to_bits(b[i]), to_bits(c[i]), mode));  \
        return r;                                                                                                      \
    }
#define PTM_SQRT_LANES(n)                                                                                              \
    F64<n> ptm_sqrt_round_f64_##n(F64<n> a, int mode) {                                                                \
        F64<n> r;                                                                                                      \
        for (int i = 0; i < n; ++i) r[i] = to_double(sqrt_rounded(to_bits(a[i]), mode));                               \
        return r;                                                                                                      \
    }

extern "C" {

PTM_BINARY(add, add_rounded)
PTM_BINARY(sub, sub_rounded)
PTM_BINARY(mul, mul_rounded)
PTM_BINARY(div, div_rounded)
double ptm_fma_round_f64_1(double a, double b, double c, int mode) {
    return to_double(fma_rounded(to_bits(a), to_bits(b), to_bits(c), mode));
}
PTM_FMA_LANES(4)
PTM_FMA_LANES(8)
double ptm_sqrt_round_f64_1(double a, int mode) {
    return to_double(sqrt_rounded(to_bits(a), mode));
}
PTM_SQRT_LANES(4)
PTM_SQRT_LANES(8)

} // extern "C"
