// SPDX-License-Identifier: Apache-2.0
// Kernels whose threads wait for memory, split at their barriers nevertheless. The CTA is one flow of control, so a
// step that waits has to let the others of its CTA run, and the CTA other CTAs: in a loop that waits it stops as in
// those of plan_turns.h, and the driver calls it again when the others have had their turns, then those of other CTAs.
// The lanes of a step are masked, so none may wait for another one of its own step.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// True if no lane of a step waits for what a lane that masks hold back meanwhile would do: in loops of a region that
/// wait, nobody writes but to take a lock, and who waits elsewhere then comes to the region's end without a write, or
/// without one that those wait for (descending_waits.h). The regions end at barriers, which no lane passes before the
/// one that waits has come there (regions_between_barriers()). `waits` is loops_that_wait(). Needs the shapes of the
/// mask form for the width at hand.
bool lanes_wait_apart(const FunctionGraph& graph, const BlockShape& block, const std::vector<RegionView>& regions,
                      const std::vector<bool>& waits, unsigned width);

/// The smallest loop of the graph with all of a region's loop in it; no_loop if there is none.
std::uint32_t loop_around(const FunctionGraph& graph, const LoopInfo& region_loop);

/// Lets steps stop in the loops that wait: sets LoopInfo::waits_in_turns.
void choose_waiting_turns(FunctionGraph& graph, const std::vector<bool>& waits);

} // namespace ptarmigan::translator
