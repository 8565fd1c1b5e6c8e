// SPDX-License-Identifier: Apache-2.0
// The numbers in which the texture unit measures footprints: floats of 9 bits of fraction, whatever is behind them cut
// off. Found from recorded levels of gradients.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ptarmigan::runtime {

constexpr int footprint_bits = 9;

/// One unit of the last place of `value`, which is positive (and far from a double's limits).
inline double last_place(double value) {
    constexpr std::uint64_t exponent = 0x7ffull << 52;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & exponent) / (1 << footprint_bits);
}

inline double cut_to_unit(double value) {
    constexpr std::uint64_t kept = ~0ull << (52 - footprint_bits);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kept);
}

/// What a sum keeps of its smaller part.
inline double aligned(double value, double larger) {
    return std::floor(value / last_place(larger)) * last_place(larger);
}

/// a - b of coordinates: both are cut to one bit below the last place of the larger, the difference keeps all bits.
/// Infinities are far from everything.
inline double unit_difference(float a, float b) {
    const double largest = std::max(std::fabs(a), std::fabs(b));
    if (largest == 0 || std::isinf(largest)) return largest;
    const double unit = last_place(largest) / (1 << (24 - footprint_bits));
    const auto kept = [&](float value) { return static_cast<std::int64_t>(value / unit); };
    return static_cast<double>(kept(a) - kept(b)) * unit;
}

} // namespace ptarmigan::runtime
