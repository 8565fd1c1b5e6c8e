// SPDX-License-Identifier: Apache-2.0
// Barriers that the order of the steps makes needless. Between barriers a CTA's steps run one after the other, so what
// a barrier keeps apart may be kept apart by that already: in a scan (`before = s[t - d]; barrier; s[t] += before`) a
// step reads below what it writes, so if the last step runs first, each reads what none has written yet; and where only
// the first step's threads are active, as in the last rounds of a reduction, there is no other to wait for.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

#include <set>

namespace ptarmigan::translator {

struct StepOrder {
    bool changed = false;
    /// Barriers' blocks (no_block: the kernel's beginning) behind which steps run from the last one to the first.
    std::set<BlockId> falling;
};

/// Takes such barriers out of the graph. `plan`: the graph's, which is splittable. Only where every access on both
/// sides is plain, its address in shared memory is known thread by thread (or but for what all threads have in common),
/// and no loop lies between the barriers that stay. Needs shapes for `width` lanes.
StepOrder drop_ordered_barriers(FunctionGraph& graph, const BlockShape& block, unsigned width, const BarrierPlan& plan);

} // namespace ptarmigan::translator
