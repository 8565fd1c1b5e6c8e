// SPDX-License-Identifier: Apache-2.0
// Bits of small integers in the formats of matrices, so that products and sums are exact and a host checks them by integers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace test {

inline std::uint32_t float_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
/// |value| <= 256.
inline std::uint16_t bfloat_of(int value) {
    return static_cast<std::uint16_t>(float_bits(static_cast<float>(value)) >> 16);
}
/// |value| <= 2048.
inline std::uint16_t half_of(int value) {
    if (value == 0) return 0;
    const std::uint32_t bits = float_bits(static_cast<float>(value));
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - ((127 - 15) << 10)));
}
inline double value_of_half(std::uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double magnitude = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

} // namespace test
