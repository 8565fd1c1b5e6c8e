// SPDX-License-Identifier: Apache-2.0
// Dominators after Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm"); everything is iterative because
// graphs come from files and may be deep.
#include "translator/analysis/graph/dominators.h"

#include <algorithm>

namespace ptarmigan::translator {

Edges reverse_edges(const Edges& successors) {
    Edges result(successors.size());
    for (BlockId b = 0; b < successors.size(); ++b)
        for (BlockId s : successors[b]) result[s].push_back(b);
    return result;
}

Edges successor_edges(const FunctionGraph& graph) {
    Edges result(graph.blocks.size());
    for (BlockId b = 0; b < graph.blocks.size(); ++b) result[b] = graph.blocks[b].successors;
    return result;
}

std::vector<BlockId> reverse_post_order(const Edges& successors, BlockId entry) {
    std::vector<BlockId> order;
    std::vector<bool> seen(successors.size(), false);
    std::vector<std::pair<BlockId, std::size_t>> stack{{entry, successors[entry].size()}};
    seen[entry] = true;
    // Later successors are visited first, so that the first one follows its block directly in the result.
    while (!stack.empty()) {
        auto& [block, next] = stack.back();
        if (next == 0) {
            order.push_back(block);
            stack.pop_back();
            continue;
        }
        BlockId s = successors[block][--next];
        if (!seen[s]) {
            seen[s] = true;
            stack.emplace_back(s, successors[s].size());
        }
    }
    std::reverse(order.begin(), order.end());
    return order;
}

DominatorTree::DominatorTree(const Edges& successors, const Edges& predecessors, BlockId entry)
    : order_(reverse_post_order(successors, entry)), parent_(successors.size(), no_block),
      number_(successors.size(), no_block), enter_(successors.size()), leave_(successors.size()),
      children_(successors.size()) {
    for (std::uint32_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i;
    parent_[entry] = entry;
    for (bool changed = true; changed;) {
        changed = false;
        for (BlockId block : order_) {
            if (block == entry) continue;
            BlockId best = no_block;
            for (BlockId p : predecessors[block]) {
                if (number_[p] == no_block || parent_[p] == no_block) continue;
                best = best == no_block ? p : common(best, p);
            }
            if (parent_[block] != best) {
                parent_[block] = best;
                changed = true;
            }
        }
    }
    parent_[entry] = no_block;
    for (BlockId block : order_)
        if (block != entry) children_[parent_[block]].push_back(block);
    number_tree(entry);
}

BlockId DominatorTree::common(BlockId a, BlockId b) const {
    while (a != b) {
        while (number_[a] > number_[b]) a = parent_[a];
        while (number_[b] > number_[a]) b = parent_[b];
    }
    return a;
}

void DominatorTree::number_tree(BlockId entry) {
    std::uint32_t clock = 0;
    std::vector<std::pair<BlockId, std::size_t>> stack{{entry, 0}};
    enter_[entry] = clock++;
    while (!stack.empty()) {
        auto& [block, next] = stack.back();
        if (next == children_[block].size()) {
            leave_[block] = clock++;
            stack.pop_back();
            continue;
        }
        BlockId child = children_[block][next++];
        enter_[child] = clock++;
        stack.emplace_back(child, 0);
    }
}

Edges dominance_frontiers(const DominatorTree& tree, const Edges& predecessors) {
    Edges frontier(predecessors.size());
    for (BlockId block : tree.order()) {
        for (BlockId runner : predecessors[block]) {
            if (!tree.reachable(runner)) continue;
            while (runner != no_block && runner != tree.parent(block)) {
                auto& list = frontier[runner];
                if (std::find(list.begin(), list.end(), block) == list.end()) list.push_back(block);
                runner = tree.parent(runner);
            }
        }
    }
    return frontier;
}

namespace {

/// Blocks from which a back edge source can be reached without passing the header, and the header.
std::vector<BlockId> loop_blocks(BlockId header, std::vector<BlockId> work, const Edges& predecessors,
                                 const DominatorTree& tree, std::vector<BlockId>& mark) {
    std::vector<BlockId> blocks{header};
    mark[header] = header;
    while (!work.empty()) {
        BlockId block = work.back();
        work.pop_back();
        if (mark[block] == header || !tree.reachable(block)) continue;
        mark[block] = header;
        blocks.push_back(block);
        for (BlockId p : predecessors[block]) work.push_back(p);
    }
    std::sort(blocks.begin(), blocks.end(), [&](BlockId a, BlockId b) { return tree.position(a) < tree.position(b); });
    return blocks;
}

} // namespace

LoopForest find_loops(const Edges& successors, const Edges& predecessors, const DominatorTree& tree) {
    LoopForest forest;
    forest.loop_of.assign(successors.size(), no_loop);
    std::vector<BlockId> mark(successors.size(), no_block);
    for (BlockId header : tree.order()) {
        std::vector<BlockId> latches, outside;
        for (BlockId p : predecessors[header]) {
            if (!tree.reachable(p)) continue;
            bool retreating = tree.position(p) >= tree.position(header);
            if (tree.dominates(header, p))
                latches.push_back(p);
            else if (retreating)
                forest.reducible = false;
            else
                outside.push_back(p);
        }
        if (latches.empty()) continue;
        LoopInfo loop;
        loop.header = header;
        if (latches.size() == 1) loop.latch = latches[0];
        if (outside.size() == 1) loop.preheader = outside[0];
        loop.blocks = loop_blocks(header, latches, predecessors, tree, mark);
        loop.parent = forest.loop_of[header];
        loop.depth = loop.parent == no_loop ? 1 : forest.loops[loop.parent].depth + 1;
        for (BlockId b : loop.blocks) forest.loop_of[b] = std::uint32_t(forest.loops.size());
        forest.loops.push_back(std::move(loop));
    }
    return forest;
}

void find_loops_again(FunctionGraph& graph) {
    const Edges successors = successor_edges(graph), predecessors = reverse_edges(successors);
    graph.forest = find_loops(successors, predecessors, DominatorTree(successors, predecessors, 0));
}

} // namespace ptarmigan::translator
