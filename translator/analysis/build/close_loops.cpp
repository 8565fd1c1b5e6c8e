// SPDX-License-Identifier: Apache-2.0
// Inner loops first, so that a value that leaves several loops gets one phi per loop. Each value is repaired on its
// own: phis at the exits it reaches, further ones where those meet, and the nearest one up the dominator tree for each
// use.
#include "translator/analysis/build/close_loops.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <unordered_map>

namespace ptarmigan::translator {
namespace {

class LoopCloser {
public:
    explicit LoopCloser(FunctionGraph& graph)
        : graph_(graph), successors_(successor_edges(graph)), predecessors_(reverse_edges(successors_)),
          tree_(successors_, predecessors_, 0), frontiers_(dominance_frontiers(tree_, predecessors_)),
          uses_(graph.values.size()), live_(graph.blocks.size(), no_value), by_block_(graph.blocks.size()) {}

    void run() {
        collect_uses();
        for (ValueId value = 0; value < graph_.values.size(); ++value)
            if (graph_.values[value].block != no_block) by_block_[graph_.values[value].block].push_back(value);
        for (std::size_t loop = graph_.forest.loops.size(); loop-- > 0;) close(std::uint32_t(loop));
    }

private:
    struct Use {
        ValueId* place;
        BlockId block; ///< where it is read; for a phi's operand the predecessor
    };

    void collect_uses();
    void close(std::uint32_t loop);
    void close_value(std::uint32_t loop, ValueId value, const std::vector<BlockId>& exits);
    ValueId add_phi(BlockId block, ValueId value);
    ValueId reaching(BlockId block);
    bool inside(BlockId block, std::uint32_t loop) const {
        return graph_.forest.inside(graph_.forest.loop_of[block], loop);
    }

    FunctionGraph& graph_;
    Edges successors_, predecessors_;
    DominatorTree tree_;
    Edges frontiers_;
    std::vector<std::vector<Use>> uses_;
    std::vector<ValueId> live_;
    std::vector<std::vector<ValueId>> by_block_;  ///< values defined in each block
    std::unordered_map<BlockId, ValueId> phi_at_; ///< of the value at hand
};

void LoopCloser::collect_uses() {
    auto add = [&](ValueId& place, BlockId block) {
        if (place != no_value && graph_.values[place].block != no_block) uses_[place].push_back({&place, block});
    };
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        Block& block = graph_.blocks[id];
        for (Phi& phi : block.phis)
            for (std::size_t i = 0; i < phi.incoming.size(); ++i) add(phi.incoming[i], block.predecessors[i]);
        for (GraphInstruction& instruction : block.instructions) {
            if (instruction.inst.guard != ptx::no_id) add(instruction.inst.guard, id);
            for (ValueId& value : instruction.previous) add(value, id);
            for_each_register(graph_, instruction, [&](ptx::Operand& operand, bool definition) {
                if (!definition) add(operand.index, id);
            });
        }
        add(block.terminator.condition, id);
    }
}

void LoopCloser::close(std::uint32_t loop) {
    std::vector<BlockId> exits, blocks = graph_.forest.loops[loop].blocks;
    for (BlockId block : blocks)
        for (BlockId s : successors_[block])
            if (!inside(s, loop)) exits.push_back(s);
    for (BlockId block : blocks) {
        std::vector<ValueId> defined = by_block_[block]; // phis added here belong to inner loops' exits
        for (ValueId value : defined) {
            bool leaves = std::any_of(uses_[value].begin(), uses_[value].end(),
                                      [&](const Use& use) { return !inside(use.block, loop); });
            if (leaves) close_value(loop, value, exits);
        }
    }
}

ValueId LoopCloser::add_phi(BlockId block, ValueId value) {
    SsaValue info;
    info.type = graph_.values[value].type;
    info.name = graph_.values[value].name;
    info.block = block;
    info.is_phi = true;
    ValueId result = ValueId(graph_.values.size());
    graph_.values.push_back(std::move(info));
    uses_.emplace_back();
    by_block_[block].push_back(result);
    Phi phi;
    phi.result = result;
    phi.incoming.assign(predecessors_[block].size(), no_value);
    graph_.blocks[block].phis.push_back(std::move(phi)); // moving a phi keeps the places of its operands
    phi_at_[block] = result;
    return result;
}

ValueId LoopCloser::reaching(BlockId block) {
    for (; block != no_block; block = tree_.parent(block))
        if (auto found = phi_at_.find(block); found != phi_at_.end()) return found->second;
    return no_value;
}

void LoopCloser::close_value(std::uint32_t loop, ValueId value, const std::vector<BlockId>& exits) {
    phi_at_.clear();
    std::vector<Use> outside;
    std::vector<BlockId> work, ends;
    auto& all = uses_[value];
    for (const Use& use : all)
        if (!inside(use.block, loop)) outside.push_back(use);
    std::erase_if(all, [&](const Use& use) { return !inside(use.block, loop); });
    // Blocks outside where the value is needed, back to the exits.
    for (const Use& use : outside) work.push_back(use.block);
    while (!work.empty()) {
        BlockId block = work.back();
        work.pop_back();
        if (live_[block] == value || inside(block, loop)) continue;
        live_[block] = value;
        for (BlockId p : predecessors_[block]) work.push_back(p);
    }
    for (BlockId exit : exits)
        if (live_[exit] == value && !phi_at_.count(exit)) {
            add_phi(exit, value);
            ends.push_back(exit);
        }
    std::vector<BlockId> joins;
    work = ends;
    while (!work.empty()) {
        BlockId block = work.back();
        work.pop_back();
        for (BlockId join : frontiers_[block]) {
            if (live_[join] != value || phi_at_.count(join) || inside(join, loop)) continue;
            add_phi(join, value);
            joins.push_back(join);
            work.push_back(join);
        }
    }
    auto fill = [&](BlockId block, auto&& operand) {
        ValueId result = phi_at_[block];
        for (Phi& phi : graph_.blocks[block].phis) {
            if (phi.result != result) continue;
            for (std::size_t i = 0; i < phi.incoming.size(); ++i) {
                BlockId from = graph_.blocks[block].predecessors[i];
                phi.incoming[i] = operand(from);
                uses_[phi.incoming[i]].push_back({&phi.incoming[i], from});
            }
        }
    };
    for (BlockId exit : ends) fill(exit, [&](BlockId) { return value; });
    for (BlockId join : joins) fill(join, [&](BlockId from) { return reaching(from); });
    for (const Use& use : outside) {
        *use.place = reaching(use.block);
        uses_[*use.place].push_back(use);
    }
}

} // namespace

void close_loops(FunctionGraph& graph) {
    if (graph.forest.reducible && !graph.forest.loops.empty()) LoopCloser(graph).run();
}

} // namespace ptarmigan::translator
