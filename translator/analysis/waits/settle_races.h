// SPDX-License-Identifier: Apache-2.0
// Races that every GPU wins: all warps read words of shared memory before one writes them again, with no barrier
// between.
#pragma once

#include "translator/analysis/memory/shared_accesses.h"

namespace ptarmigan::translator {

enum class Meeting : std::uint8_t {
    /// One more like the graph's own. Needs a splittable plan, and that no thread waits for what another does behind
    /// it: for memory, or at a collective for lanes that come to another one (may_meet_elsewhere).
    barrier,
    turn, ///< steps on fibers let the others come as far: for those that a barrier might keep from what they wait for
    turn_where_likely ///< the same for what barriers have left
};

struct SettledRaces {
    bool changed = false; ///< the graph; shapes and plan must be made again
    bool left = false;    ///< likely races are not settled, since not all threads meet between
};

/// A block reduction that ends in `return shared[0]` and is called twice is a race: the second call writes what warps
/// may have yet to read. A GPU decides it as meant, because all warps go on from a barrier together; here one runs to
/// the next barrier before the others start. So warps meet once more between the read and the write (race_points.h).
/// Programs without such a race compute the same with it.
/// Needs compute_shapes(form masks) for `width`.
SettledRaces settle_races(FunctionGraph& graph, const BlockShape& block, unsigned width, Meeting meeting,
                          const CalledFunctions& called = {});

/// Whether there are any that settle_races() would do something about in a kernel whose threads wait for each other.
bool has_races(const FunctionGraph& graph, const BlockShape& block, unsigned width, const CalledFunctions& called = {});

} // namespace ptarmigan::translator
