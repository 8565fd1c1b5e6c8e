// SPDX-License-Identifier: Apache-2.0
// Waits for mbarrier objects that masks can take: the step waits as a whole, and no lane that could end the wait stands
// aside.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// An instruction that tells whether an mbarrier's phase is complete.
bool is_mbarrier_wait(const ptx::Instruction& inst);

/// Nothing that others can see happens from `block` on: no store, arrival, collective or call.
bool only_exits(const FunctionGraph& graph, BlockId block);

/// True if all lanes of a step that are in a wait get the same answer, and lanes that masks would hold back meanwhile
/// (they took another arm) can do nothing any more but exit. Needs the shapes of the mask form.
bool mbarrier_waits_are_converged(const FunctionGraph& graph);

} // namespace ptarmigan::translator
