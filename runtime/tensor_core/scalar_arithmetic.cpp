// SPDX-License-Identifier: Apache-2.0
// Both operands of the inner sum are moved up to the same place of a wide integer; what falls out of the smaller one
// leaves a sticky bit.
#include "runtime/tensor_core/scalar_arithmetic.h"

#include "runtime/tensor_core/number.h"

#include <utility>

namespace ptarmigan::runtime::tensor_core {
namespace {

__extension__ using Wide = unsigned __int128;

/// magnitude * 2^exponent.
template <typename Integer> struct Term {
    bool negative;
    Integer magnitude;
    int exponent;
};

constexpr int top_bit(std::uint64_t value) {
    return 63 - std::countl_zero(value);
}
constexpr int top_bit(Wide value) {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    return high ? 64 + top_bit(high) : top_bit(static_cast<std::uint64_t>(value));
}

/// x + y, with bit 0 as a sticky bit. Neither is zero; the result may be.
template <typename Integer> Term<Integer> add_terms(Term<Integer> x, Term<Integer> y) {
    constexpr int bits = sizeof(Integer) * 8;
    for (Term<Integer>* term : {&x, &y}) {
        const int up = bits - 3 - top_bit(term->magnitude);
        term->magnitude <<= up;
        term->exponent -= up;
    }
    if (x.exponent < y.exponent || (x.exponent == y.exponent && x.magnitude < y.magnitude)) std::swap(x, y);
    const int down = x.exponent - y.exponent;
    Integer small = y.magnitude;
    if (down >= bits)
        small = 1;
    else if (down != 0)
        small = small >> down | Integer{(small & ((Integer{1} << down) - 1)) != 0};
    x.magnitude = x.negative == y.negative ? x.magnitude + small : x.magnitude - small;
    return x;
}

std::uint64_t pack_f64(const Term<Wide>& term, Rounding rounding) {
    int top = top_bit(term.magnitude) + term.exponent;
    if (top < -1022) top = -1022;
    const int dropped = top - 52 - term.exponent;
    Wide kept = 0, rest = 1, half = 2;
    if (dropped <= 0) {
        kept = term.magnitude << -dropped;
        rest = 0;
    } else if (dropped < 128) {
        kept = term.magnitude >> dropped;
        rest = term.magnitude & ((Wide{1} << dropped) - 1);
        half = Wide{1} << (dropped - 1);
    }
    bool up = false;
    switch (rounding) {
    case Rounding::nearest_even: up = rest > half || (rest == half && (kept & 1)); break;
    case Rounding::toward_zero: break;
    case Rounding::down: up = term.negative && rest != 0; break;
    case Rounding::up: up = !term.negative && rest != 0; break;
    }
    std::uint64_t bits = static_cast<std::uint64_t>(kept) + up;
    const std::uint64_t sign = std::uint64_t{term.negative} << 63;
    if (bits >> 53) {
        bits >>= 1;
        ++top;
    }
    if (top > 1023) {
        const bool stays_finite = rounding == Rounding::toward_zero || (rounding == Rounding::down && !term.negative) ||
                                  (rounding == Rounding::up && term.negative);
        return sign | (stays_finite ? 0x7fefffffffffffff : 0x7ff0000000000000);
    }
    if (bits >> 52 == 0) return sign | bits;
    return sign | static_cast<std::uint64_t>(top + 1023) << 52 | (bits & 0xfffffffffffff);
}

} // namespace

std::uint32_t fma_f32(std::uint32_t x_bits, std::uint32_t y_bits, std::uint32_t z_bits) {
    const Number x = unpack(Format::f32, x_bits), y = unpack(Format::f32, y_bits), z = unpack(Format::f32, z_bits);
    const bool negative = x.negative != y.negative;
    const auto is_zero = [](const Number& number) { return number.significand == 0; };
    if (x.nan || y.nan || z.nan) return f32_nan;
    if (x.infinite || y.infinite) {
        if ((x.infinite && is_zero(y)) || (y.infinite && is_zero(x)) || (z.infinite && z.negative != negative))
            return f32_nan;
        return 0x7f800000 | std::uint32_t{negative} << 31;
    }
    if (z.infinite) return z_bits;
    const Term<std::uint64_t> product{negative, std::uint64_t{x.significand} * y.significand,
                                      x.exponent + y.exponent - 46};
    if (product.magnitude == 0) {
        if (!is_zero(z)) return z_bits;
        return negative == z.negative ? std::uint32_t{negative} << 31 : 0;
    }
    if (is_zero(z))
        return std::uint32_t{negative} << 31 | pack(false, product.magnitude, product.exponent, f32_nearest);
    const Term<std::uint64_t> sum = add_terms(product, Term<std::uint64_t>{z.negative, z.significand, z.exponent - 23});
    if (sum.magnitude == 0) return 0;
    return std::uint32_t{sum.negative} << 31 | pack(false, sum.magnitude, sum.exponent, f32_nearest);
}

std::uint64_t fma_f64(std::uint64_t a, std::uint64_t b, std::uint64_t c, Rounding rounding) {
    constexpr std::uint64_t quiet = 0x8000000000000, invalid = 0xfff8000000000000, fractions = 0xfffffffffffff;
    const auto is_nan = [](std::uint64_t bits) { return bits << 1 > 0xffe0000000000000; };
    if (is_nan(b)) return b | quiet;
    if (is_nan(c)) return c | quiet;
    if (is_nan(a)) return a | quiet;
    const auto field = [](std::uint64_t bits) { return static_cast<int>(bits >> 52 & 2047); };
    const auto significand = [&](std::uint64_t bits) {
        return (bits & fractions) | std::uint64_t{field(bits) != 0} << 52;
    };
    const auto exponent = [&](std::uint64_t bits) { return (field(bits) ? field(bits) : 1) - 1023; };
    const bool negative = (a ^ b) >> 63, c_negative = c >> 63;
    const std::uint64_t x = significand(a), y = significand(b), z = significand(c);
    if (field(a) == 2047 || field(b) == 2047) {
        if (x == 0 || y == 0 || (field(c) == 2047 && c_negative != negative)) return invalid;
        return std::uint64_t{negative} << 63 | 0x7ff0000000000000;
    }
    if (field(c) == 2047) return c;
    const std::uint64_t cancelled = rounding == Rounding::down ? std::uint64_t{1} << 63 : 0;
    if (x == 0 || y == 0) {
        if (z != 0) return c;
        return negative == c_negative ? c : cancelled;
    }
    const Term<Wide> product{negative, Wide{x} * y, exponent(a) + exponent(b) - 104};
    if (z == 0) return pack_f64(product, rounding);
    const Term<Wide> sum = add_terms(product, Term<Wide>{c_negative, z, exponent(c) - 52});
    return sum.magnitude == 0 ? cancelled : pack_f64(sum, rounding);
}

} // namespace ptarmigan::runtime::tensor_core
