// SPDX-License-Identifier: Apache-2.0
// How much a thread of a launch executes, as far as that follows from the kernel's parameters and the grid's extents:
// loops whose rounds can be counted before they run. A hint; what loops do that nobody can count is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptarmigan::translator {

/// An integer that a launch can work out. Sources are numbers in front of it in LaunchWork::numbers.
struct LaunchNumber {
    enum class Kind : std::uint8_t {
        constant,      ///< `value`
        parameter,     ///< `bits` from byte `value` of the parameter block
        grid_extent,   ///< component `value` of %nctaid
        cta_index,     ///< component `value` of %ctaid; in LaunchWork 0
        thread_index,  ///< component `value` of %tid; in LaunchWork 0
        add,           ///< a + b
        subtract,      ///< a - b
        multiply,      ///< a * b
        multiply_high, ///< the upper half of a * b
        divide,        ///< a / b, 0 for a divisor of 0
        remainder,     ///< a % b, 0 for a divisor of 0
        minimum,       ///< the lesser of a and b
        maximum,       ///< the greater of a and b
        bit_and,       ///< a & b
        bit_or,        ///< a | b
        bit_xor,       ///< a ^ b
        shift_left,    ///< a << b
        shift_right,   ///< a >> b
        equal,         ///< a == b ? 1 : 0
        less,          ///< a < b ? 1 : 0
        extend,        ///< a
    };
    Kind kind = Kind::constant;
    std::uint8_t bits = 64; ///< sources are cut to so many and extended, by their sign if `is_signed`
    bool is_signed = true;
    std::uint32_t a = 0, b = 0; ///< sources
    std::int64_t value = 0;
};

/// A loop, or what is in none (the first).
struct LaunchLoop {
    static constexpr std::uint32_t unknown = 0xffffffffu;
    std::uint32_t parent = 0;         ///< index of the loop around it, less than its own but for the first
    std::uint32_t cost = 0;           ///< of a round, in plain statements, without inner loops
    std::uint32_t distance = unknown; ///< number: how far it is to the end; unknown: one round
    std::uint32_t gain = 0;           ///< number: by how much each round changes that
};

struct LaunchWork {
    std::vector<LaunchNumber> numbers;
    std::vector<LaunchLoop> loops; ///< outer before inner; empty: unknown
};

/// An arithmetic number, of its sources.
std::int64_t combine(const LaunchNumber& number, std::int64_t left, std::int64_t right);
/// A parameter; 0 beyond the block's end.
std::int64_t parameter(const LaunchNumber& number, std::span<const std::uint8_t> parameters);
/// False of sources: constants, parameters, extents and indices.
inline bool is_arithmetic(LaunchNumber::Kind kind) {
    return kind > LaunchNumber::Kind::thread_index;
}

/// Every index is that of something in front of it.
bool is_consistent(const LaunchWork& work);
/// Plain statements that a thread executes, for a consistent `work`. Arms of branches count as if all were taken.
/// `grid_extents`: of CTAs, x, y and z.
std::uint64_t statements_of_thread(const LaunchWork& work, std::span<const std::uint8_t> parameters,
                                   std::span<const std::uint32_t, 3> grid_extents);

} // namespace ptarmigan::translator
