// SPDX-License-Identifier: Apache-2.0
// Random kernels whose threads part and meet again: collectives and barriers that lanes come to from different places.
#pragma once

#include <cstdint>
#include <string>

namespace divergence {

/// A kernel `k<seed>(.param .u64 out)` that stores two words per thread. What it stores follows from the manual alone.
struct Program {
    std::string text; ///< without .version and .target
    unsigned grid = 1, block = 32;
    /// A barrier.red stands where lanes of a warp come to it from several places: ptxas 13.0 makes code for sm_90 that runs one of them for all
    /// (WARPSYNC.COLLECTIVE) although they have their predicates and results in different registers. Not compared.
    bool reduces_in_arms = false;
};

inline constexpr unsigned most_threads = 2 * 128;
extern const char* const program_head; ///< .version, .target, .address_size

Program generate(std::uint32_t seed);

} // namespace divergence
