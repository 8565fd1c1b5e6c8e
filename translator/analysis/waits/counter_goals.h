// SPDX-License-Identifier: Apache-2.0
// Waits for a counter to have just one value, `while (count != goal)`, in kernels that move it on: barriers of blocks
// as Xiao and Feng published them ("Inter-block GPU communication via fast barrier synchronization", 2010).
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <unordered_set>
#include <vector>

namespace ptarmigan::translator {

/// Who does not look between the last addition of one barrier and the first of the next never sees the goal. A GPU wins
/// this race, because all its resident blocks look all the time; here steps that see it let the others look first.
struct CounterGoals {
    std::unordered_set<const ptx::Instruction*>
        comparisons; ///< setp: equal means that the goal is reached. Empty without loops
    /// To the counters; empty likewise. Others, to results and work queues, tell of no wait.
    std::unordered_set<const ptx::Instruction*> additions;
    std::vector<bool> loops; ///< by index in the loop forest: has one of them
};

/// `waits` is loops_that_wait(). Only atomic additions to the object that is polled count: flags that are stored are
/// waited for by those who move them on.
CounterGoals find_counter_goals(const FunctionGraph& graph, const std::vector<bool>& waits);

} // namespace ptarmigan::translator
