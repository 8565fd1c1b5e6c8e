// SPDX-License-Identifier: Apache-2.0
// Which loops may wait for what another thread does.
#pragma once

#include "translator/analysis/graph/function_graph.h"
#include "translator/compile.h"

namespace ptarmigan::translator {

/// Some loop may wait for memory that another thread writes: whether it goes round again depends on a read that this
/// thread does not move on by itself. Lanes, steps and CTAs must be able to overtake each other then.
bool may_spin(const FunctionGraph& graph, WaitingLoops which);

/// The same without looking at waits for mbarrier objects (converged_waits.h).
bool may_spin_on_memory(const FunctionGraph& graph, WaitingLoops which);

/// By index in the loop forest: which loops may wait as above, for mbarriers or other memory.
std::vector<bool> loops_that_wait(const FunctionGraph& graph, WaitingLoops which);

/// __threadfence() or wider.
bool is_fence_of_all(const ptx::Instruction& inst);

/// An atomic that changes nothing, whatever is there: a read.
bool leaves_memory(const FunctionGraph& graph, const ptx::Instruction& inst);

} // namespace ptarmigan::translator
