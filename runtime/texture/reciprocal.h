// SPDX-License-Identifier: Apache-2.0
// The reciprocal of Hopper's special function unit, one number at a time: the closed integers of which
// translator/builtins/library/sfu.h corrects the CPU's quotients, for compilers without its vector types.
#pragma once

#include "translator/builtins/library/sfu_tables.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ptarmigan::runtime {

/// Of the square of a 17-bit number, without the low 19 bits: partial products are cut row by row.
constexpr std::int64_t truncated_square(std::int64_t value) {
    std::int64_t sum = 0;
    for (int bit = 0; bit < 17; ++bit)
        if ((value >> bit) & 1) sum += value >> (18 - bit);
    return sum >> 1;
}

/// Subnormal numbers count as zero and are never the result.
inline float unit_reciprocal(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const int exponent = static_cast<int>(bits >> 23 & 255);
    if (std::isnan(value)) return std::bit_cast<float>(0x7fffffffu);
    if (exponent == 0) return std::copysign(std::numeric_limits<float>::infinity(), value);
    const int(&row)[3] = sfu::rcp_table[bits >> 16 & 127];
    const std::int64_t x = bits & 0xffff;
    const std::int64_t polynomial =
        (std::int64_t{row[0]} << 13) + row[1] * x + row[2] * truncated_square(2 * x) + 0x47e7;
    const std::int64_t magnitude = (std::int64_t{253 - exponent} << 23) + (polynomial >> 15) - (1 << 23);
    if (magnitude < 1 << 23) return std::copysign(0.0f, value);
    return std::bit_cast<float>((bits & 0x80000000u) | static_cast<std::uint32_t>(magnitude));
}

} // namespace ptarmigan::runtime
