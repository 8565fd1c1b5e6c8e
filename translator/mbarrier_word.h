// SPDX-License-Identifier: Apache-2.0
// The contents of an mbarrier object (PTX manual 9.7.13.15.2) as one 64-bit word, and what operations make of it. The
// layout is the H200's (tests/recordings/mbarrier_operations):
//   bit 63         parity of the current phase
//   bits 43 to 62  2^20 minus the pending arrivals; 0 = none is pending
//   bit 42         0, or no object
//   bits 21 to 41  minus the tx-count
//   bits 1 to 20   2^20 minus the expected arrivals
// A `state` is the word's upper half, in its place. Pure functions, for the services and for the copy engine;
// runtime/exec/mbarriers.h keeps objects and waiting steps.
#pragma once

#include <cstdint>

namespace ptarmigan::mbarrier {

inline constexpr unsigned phase_bit = 63, pending_bit = 43, transactions_bit = 21, expected_bit = 1;
inline constexpr std::uint32_t full = 1u << 20; ///< counts are below this
inline constexpr std::uint64_t state_mask = ~std::uint64_t{0} << 32;

/// What init writes; counts out of range leak into other fields as they do there.
constexpr std::uint64_t initial(std::uint32_t count) {
    const std::uint32_t missing = full - count;
    return std::uint64_t{missing << 11} << 32 | (missing << 1);
}

constexpr bool phase(std::uint64_t word) {
    return word >> phase_bit != 0;
}

/// False for words that init can't have written: every operation faults.
constexpr bool is_object(std::uint64_t word) {
    return (word >> 42 & 1) == 0;
}

/// A phase of that parity is complete: it is not the current one.
constexpr bool is_complete(std::uint64_t word, bool parity) {
    return phase(word) != parity;
}

/// The word's fields; wide, so that sums that leave their range can be told.
struct Counts {
    std::int64_t pending = 0, expected = 0, transactions = 0;
    bool phase = false;

    /// The manual's ranges; of transactions the H200 takes 2^20 as well.
    constexpr bool in_range() const {
        return pending >= 0 && pending < full && expected >= 0 && expected < full &&
               transactions > -std::int64_t{full} && transactions <= std::int64_t{full};
    }
};

constexpr Counts unpack(std::uint64_t word) {
    constexpr std::uint64_t field = full - 1, wide_field = 2 * full - 1;
    const auto missing = [&](unsigned bit) { return static_cast<std::int64_t>(full - (word >> bit & field)); };
    const auto negated = static_cast<std::int64_t>(word >> transactions_bit & wide_field);
    Counts counts;
    counts.pending = missing(pending_bit) % full;
    counts.expected = missing(expected_bit) % full;
    counts.transactions = negated < std::int64_t{full} ? -negated : 2 * std::int64_t{full} - negated;
    counts.phase = phase(word);
    return counts;
}

constexpr std::uint64_t pack(const Counts& counts) {
    const auto field = [](std::int64_t value, std::uint64_t mask, unsigned bit) {
        return (static_cast<std::uint64_t>(value) & mask) << bit;
    };
    return field(counts.phase, 1, phase_bit) | field(full - counts.pending, full - 1, pending_bit) |
           field(-counts.transactions, 2 * full - 1, transactions_bit) |
           field(full - counts.expected, full - 1, expected_bit);
}

/// The phase transition, if nothing is pending any more.
constexpr Counts settle(Counts counts) {
    if (counts.pending != 0 || counts.transactions != 0) return counts;
    counts.pending = counts.expected;
    counts.phase = !counts.phase;
    return counts;
}

} // namespace ptarmigan::mbarrier
