// SPDX-License-Identifier: Apache-2.0
// Votes of the whole warp that steps of one lane make together: each meeting of the lanes costs a change of stacks for
// each of them, and what sorts and matches by digits is ballots on one bit after the other.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Moves votes next to each other where nothing but arithmetic is between, which waits behind them if it needs their
/// results. Needs mark_whole_meetings().
void gather_votes(FunctionGraph& graph);

/// How many instructions of the block from `first` on are votes that may be made as one; 0 or 1: there is nothing to
/// join.
unsigned joined_votes(const FunctionGraph& graph, const Block& block, std::size_t first);

} // namespace ptarmigan::translator
