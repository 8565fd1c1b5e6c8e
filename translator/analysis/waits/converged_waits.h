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

/// A barrier waits for threads that exit without it, too. False if masked execution may hold some of them back, in arms
/// in which they still read or write memory, while other lanes of their step are at a barrier inside of the step.
/// (Where kernels are split at their barriers such arms are done at the region's end.) Needs compute_shapes().
bool barriers_hold_nobody_back(const FunctionGraph& graph);

} // namespace ptarmigan::translator
