// SPDX-License-Identifier: Apache-2.0
// Values that are looked at only by lanes for which some predicates hold or fail (guards, arms of choices, branches):
// for them a choice by such a predicate is made. Machine code computes under predicates what PTX branches around, and
// has registers for many things in turn, so an address is often "this one, or what the register held".
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Where nobody sees the previous value of a guarded result it becomes undefined, which takes chains of predicated
/// instructions out of loop-carried phis. Where only lanes on one side of a predicate see a result, its instruction
/// reads that side of what `selp` or a guarded `mov` chose by the predicate. True if anything changed; values may be
/// new. Before close_loops().
bool resolve_needed_lanes(FunctionGraph& graph);

} // namespace ptarmigan::translator
