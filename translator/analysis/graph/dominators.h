// SPDX-License-Identifier: Apache-2.0
// Orders, dominators and loops of a control flow graph given as successor lists. Used on whole graphs, on regions of
// them, and on reversed graphs (post-dominators).
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

using Edges = std::vector<std::vector<BlockId>>; ///< by BlockId: successors (or predecessors)

/// Predecessor lists with multiplicity, in order of the source block.
Edges reverse_edges(const Edges& successors);
/// Successor lists of a graph.
Edges successor_edges(const FunctionGraph& graph);
/// Blocks reachable from `entry`, each before its successors but for retreating edges.
std::vector<BlockId> reverse_post_order(const Edges& successors, BlockId entry);

/// Of the blocks that can be reached from `entry`; a snapshot, which does not follow changes of the graph.
class DominatorTree {
public:
    DominatorTree() = default;
    DominatorTree(const Edges& successors, const Edges& predecessors, BlockId entry);

    bool reachable(BlockId block) const { return number_[block] != no_block; }
    /// Reflexive. False if either is unreachable.
    bool dominates(BlockId a, BlockId b) const {
        return reachable(a) && reachable(b) && enter_[a] <= enter_[b] && leave_[b] <= leave_[a];
    }
    BlockId parent(BlockId block) const { return parent_[block]; } ///< no_block for the entry
    const std::vector<BlockId>& order() const { return order_; }   ///< reverse post order
    /// In order(); no_block if it can't be reached.
    std::uint32_t position(BlockId block) const { return number_[block]; }
    const std::vector<BlockId>& children(BlockId block) const { return children_[block]; }
    const std::vector<BlockId>& parents() const { return parent_; }
    /// The lowest block that dominates both, which can be reached.
    BlockId common(BlockId a, BlockId b) const;

private:
    void number_tree(BlockId entry);
    std::vector<BlockId> order_, parent_;
    std::vector<std::uint32_t> number_, enter_, leave_;
    Edges children_;
};

/// Calls enter(block) for each block down the tree, before the blocks that it dominates, and leave(block) behind these:
/// for what holds below a block only. Not by recursion: trees are as deep as graphs are long.
template <typename Enter, typename Leave> void walk_down(const DominatorTree& tree, Enter&& enter, Leave&& leave) {
    struct Visit {
        BlockId block;
        std::size_t child;
    };
    std::vector<Visit> visits{{0, 0}};
    enter(BlockId(0));
    while (!visits.empty()) {
        Visit& visit = visits.back();
        const std::vector<BlockId>& children = tree.children(visit.block);
        if (visit.child < children.size()) {
            const BlockId child = children[visit.child++];
            enter(child);
            visits.push_back({child, 0});
            continue;
        }
        leave(visit.block);
        visits.pop_back();
    }
}

/// For each block the blocks at whose entry its dominance ends.
Edges dominance_frontiers(const DominatorTree& tree, const Edges& predecessors);

/// Natural loops, outer before inner; latch and preheader are filled where unique. Loops with one header are one loop.
LoopForest find_loops(const Edges& successors, const Edges& predecessors, const DominatorTree& tree);
/// Those of the graph, whose blocks or edges have changed.
void find_loops_again(FunctionGraph& graph);

} // namespace ptarmigan::translator
