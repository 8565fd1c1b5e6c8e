// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// The instructions from `first` on move to a block of their own, the last one of the graph; the block keeps its number
/// and its predecessors.
void split_block(FunctionGraph& graph, BlockId id, std::size_t first);

/// Lanes with program counters gather in front of a block with a barrier or a collective. Blocks are split so that what
/// others may wait for, and stands in front of these, is done before. For kernels whose lanes wait for each other. True
/// if there were any.
bool split_before_gatherings(FunctionGraph& graph);

} // namespace ptarmigan::translator
