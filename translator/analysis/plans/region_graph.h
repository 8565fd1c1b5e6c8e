// SPDX-License-Identifier: Apache-2.0
// The control flow of a region, and the question that masked execution turns on: which blocks may have lanes waiting
// when control is somewhere. See README.md, "Linearization".
#pragma once

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// A region as lists, with its loops and the order in which masked execution visits the blocks.
struct RegionGraph {
    Edges successors, predecessors; ///< cut edges and blocks outside removed
    DominatorTree tree;
    LoopForest forest;
    bool reducible = true;      ///< and every loop has its unique preheader and latch
    std::vector<BlockId> order; ///< topological but for back edges, loops contiguous; cut blocks, then the exit, last
    std::vector<std::uint32_t> position; ///< by block: index in `order`, no_block outside

    bool is_back_edge(BlockId from, BlockId to) const { return position[to] <= position[from]; }
};
/// Leaves `graph` as it is; `view` says which blocks and where it is cut.
RegionGraph region_graph(const FunctionGraph& graph, const RegionView& view);

/// Outcome of simulating masked execution over the order, for given divergent branches.
struct PendingFlow {
    std::vector<std::vector<std::uint32_t>> pending; ///< by position: later positions where lanes may wait, sorted
    std::vector<bool> conflict;                ///< by block: lanes of several incoming edges may meet there in one pass
    std::vector<bool> may_be_empty;            ///< by block: control may get there although no lane does
    std::vector<bool> divergent_exit;          ///< by loop
    std::vector<std::vector<BlockId>> jump_to; ///< by block and successor
    std::vector<BlockId> skip_to;              ///< by block: where control goes when no lane is active there
};
/// `divergent_branch`: by block. Asked again and again while shapes are raised.
PendingFlow simulate(const RegionGraph& region, const std::vector<bool>& divergent_branch);

} // namespace ptarmigan::translator
