// SPDX-License-Identifier: Apache-2.0
// The order in which the CTAs of a large grid run whose accesses leap from each CTA to the next, although others of the
// grid continue them: copies of permuted arrays, and whatever else takes an element's number apart into places along
// several dimensions.
#pragma once

#include "translator/address_program.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace ptarmigan::runtime {

/// The grid is cut into columns of CTAs, as evenly as `ctas` CTAs can be cut into `columns`: the first CTA of each of
/// these columns runs, then the second of each, and so on; then those of the next `ctas` CTAs. What is left at the
/// grid's end and is no whole column runs in order.
struct CtaWalk {
    std::uint64_t ctas = 0; ///< 0: all in order
    std::uint64_t columns = 0;
    explicit operator bool() const { return ctas != 0; }
};

/// The `number`th CTA of a grid of `total`. A permutation of the grid.
inline std::uint64_t cta_in_walk(std::uint64_t number, const CtaWalk& walk, std::uint64_t total) {
    const std::uint64_t first = number / walk.ctas * walk.ctas, inside = number - first;
    const std::uint64_t columns = std::min(walk.columns, (total - first) * walk.columns / walk.ctas);
    const auto begin = [&](std::uint64_t column) { return (column * walk.ctas + walk.columns - 1) / walk.columns; };
    if (inside >= begin(columns)) return number;
    const std::uint64_t least = walk.ctas / walk.columns; // of a column; `longer` have one more
    if (inside < columns * least) return first + begin(inside % columns) + inside / columns;
    const std::uint64_t longer = walk.ctas - walk.columns * least;
    return first + begin((inside - columns * least) * walk.columns / longer) + least;
}

/// Chosen by the addresses of a few CTAs' threads. Only for kernels whose CTAs wait for nobody: a CTA may come before a
/// lower one.
CtaWalk choose_cta_walk(const translator::AddressProgram& program, std::span<const std::uint8_t> parameters,
                        const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& block);

} // namespace ptarmigan::runtime
