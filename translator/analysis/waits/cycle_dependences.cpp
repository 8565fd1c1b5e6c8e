// SPDX-License-Identifier: Apache-2.0
// Control dependence after Ferrante, Ottenstein and Warren, over one round of the cycle: edges out of it and edges back
// to where the round began both lead to its end.
#include "translator/analysis/waits/cycle_dependences.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <set>

namespace ptarmigan::translator {

using ptx::Effects;
using ptx::Operand;
using ptx::Role;

namespace {

constexpr Effects any_read = Effects::load | Effects::atomic | Effects::waits | Effects::call | Effects::async;

/// Strongly connected parts with an edge inside, after Tarjan, without recursion: PTX may have very deep graphs.
class StrongParts {
public:
    explicit StrongParts(const Edges& successors)
        : successors_(successors), number_(successors.size(), 0), low_(successors.size(), 0),
          open_(successors.size(), false) {}
    std::vector<std::vector<BlockId>> run(BlockId entry) {
        visit(entry);
        while (!path_.empty()) {
            auto& [block, next] = path_.back();
            if (next < successors_[block].size()) {
                const BlockId to = successors_[block][next++];
                if (number_[to] == 0)
                    visit(to);
                else if (open_[to])
                    low_[block] = std::min(low_[block], number_[to]);
                continue;
            }
            const BlockId ended = block;
            path_.pop_back();
            if (!path_.empty()) low_[path_.back().first] = std::min(low_[path_.back().first], low_[ended]);
            if (low_[ended] == number_[ended]) close(ended);
        }
        return std::move(parts_);
    }

private:
    void visit(BlockId block) {
        number_[block] = low_[block] = ++count_;
        open_[block] = true;
        stack_.push_back(block);
        path_.emplace_back(block, 0);
    }
    void close(BlockId root) {
        std::vector<BlockId> part;
        do {
            part.push_back(stack_.back());
            open_[stack_.back()] = false;
            stack_.pop_back();
        } while (part.back() != root);
        const auto& own = successors_[root];
        if (part.size() > 1 || std::find(own.begin(), own.end(), root) != own.end()) parts_.push_back(std::move(part));
    }

    const Edges& successors_;
    std::vector<std::uint32_t> number_, low_;
    std::vector<bool> open_;
    std::vector<BlockId> stack_;
    std::vector<std::pair<BlockId, std::size_t>> path_;
    std::vector<std::vector<BlockId>> parts_;
    std::uint32_t count_ = 0;
};

} // namespace

std::vector<Cycle> cycles_of(const FunctionGraph& graph) {
    std::vector<Cycle> result;
    for (const LoopInfo& loop : graph.forest.loops) result.push_back({loop.blocks, loop.header});
    if (graph.forest.reducible) return result;
    const Edges successors = successor_edges(graph);
    for (std::vector<BlockId>& part : StrongParts(successors).run(0)) result.push_back({std::move(part), no_block});
    return result;
}

CycleDependences::CycleDependences(const FunctionGraph& graph, const MemoryPlaces& places, const Cycle& cycle)
    : graph_(graph), places_(places), cycle_(cycle), local_(graph.blocks.size(), no_block) {
    for (std::uint32_t i = 0; i < cycle.blocks.size(); ++i) local_[cycle.blocks[i]] = i;
    for (BlockId block : cycle.blocks) {
        const std::vector<BlockId>& successors = graph.blocks[block].successors;
        if (std::any_of(successors.begin(), successors.end(), [&](BlockId s) { return !contains(s); }))
            exits_.push_back(block);
    }
    if (has_exit()) find_control();
}

void CycleDependences::find_control() {
    const auto size = std::uint32_t(cycle_.blocks.size());
    const BlockId outside = size; // before the round and behind it
    // Where a round begins: at the header, or where control comes from outside.
    Edges forward(size + 1), backward;
    const auto begins_round = [&](BlockId block) {
        if (cycle_.header != no_block) return block == cycle_.header;
        const std::vector<BlockId>& from = graph_.blocks[block].predecessors;
        return std::any_of(from.begin(), from.end(), [&](BlockId p) { return !contains(p); });
    };
    for (BlockId block : cycle_.blocks)
        if (begins_round(block)) forward[outside].push_back(local_[block]);
    for (BlockId block : cycle_.blocks)
        for (BlockId to : graph_.blocks[block].successors)
            if (contains(to) && !begins_round(to)) forward[local_[block]].push_back(local_[to]);
    tree_ = DominatorTree(forward, reverse_edges(forward), outside);
    // The end of the round is one more block, so that every block gets to it.
    Edges with_end = forward;
    with_end[outside].clear();
    for (BlockId block : cycle_.blocks)
        for (BlockId to : graph_.blocks[block].successors)
            if (!contains(to) || begins_round(to)) with_end[local_[block]].push_back(outside);
    backward = reverse_edges(with_end);
    const DominatorTree after(backward, with_end, outside);
    control_.resize(size);
    for (std::uint32_t branch = 0; branch < size; ++branch) {
        if (with_end[branch].size() < 2 || !after.reachable(branch)) continue;
        for (BlockId to : with_end[branch])
            for (BlockId b = to; b != outside && b != no_block && after.reachable(b) && b != after.parent(branch);
                 b = after.parent(b))
                control_[b].push_back(branch);
    }
}

bool CycleDependences::is_carried(const Phi& phi) const {
    const BlockId block = graph_.values[phi.result].block;
    if (cycle_.header != no_block) return block == cycle_.header;
    const std::vector<BlockId>& from = graph_.blocks[block].predecessors;
    return std::any_of(from.begin(), from.end(), [&](BlockId p) { return contains(p); });
}

/// Backward over values and branches.
class CycleDependences::Walk {
public:
    enum class Follow {
        data,       ///< registers, up to reads
        everything, ///< branches and stores too
        addresses,  ///< registers, through reads to their addresses
    };
    Walk(const CycleDependences& cycle, Follow follow)
        : cycle_(cycle), graph_(cycle.graph_), follow_(follow), seen_values_(graph_.values.size(), false) {}

    void add(ValueId value) {
        if (value == no_value || !cycle_.defined_inside(value) || seen_values_[value]) return;
        seen_values_[value] = true;
        work_.push_back(value);
    }
    /// What decides whether `block` runs; not looked for beyond what `top` dominates.
    void add_control(BlockId block, BlockId top) {
        if (follow_ != Follow::everything) return;
        for (BlockId branch : cycle_.control_[block])
            if (top == no_block || cycle_.tree_.dominates(top, branch)) add_branch(branch, top);
    }
    void add_branch(BlockId branch, BlockId top) {
        add(graph_.blocks[cycle_.cycle_.blocks[branch]].terminator.condition);
        if (seen_branches_.insert({branch, top}).second && branch != top) add_control(branch, top);
    }
    Sources run() {
        while (!work_.empty()) {
            const ValueId value = work_.back();
            work_.pop_back();
            const LinearSums::Definition& definition = cycle_.places_.sums().definition(value);
            if (definition.phi) visit(*definition.phi);
            if (definition.instruction) visit(*definition.instruction);
        }
        return std::move(result_);
    }

private:
    void visit(const Phi& phi) {
        if (cycle_.is_carried(phi)) {
            result_.carried = true;
            result_.carried_phis.push_back(&phi);
        }
        const BlockId block = graph_.values[phi.result].block, local = cycle_.local_[block];
        for (std::size_t i = 0; i < phi.incoming.size(); ++i) {
            add(phi.incoming[i]);
            const BlockId from = graph_.blocks[block].predecessors[i];
            // One of several values; and of a value that leaves an inner loop, in which round it was left.
            const bool chosen = phi.incoming.size() > 1 || leaves_loop(from, block);
            if (follow_ != Follow::everything || !chosen || !cycle_.contains(from)) continue;
            const BlockId top = cycle_.tree_.reachable(local) ? cycle_.tree_.parent(local) : no_block;
            const BlockId branch = cycle_.local_[from];
            if (graph_.blocks[from].successors.size() > 1) add_branch(branch, top);
            add_control(branch, top);
        }
    }
    bool leaves_loop(BlockId from, BlockId to) const {
        return !graph_.forest.inside(graph_.forest.loop_of[to], graph_.forest.loop_of[from]);
    }
    void visit(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if (follow_ != Follow::addresses && cycle_.tells_of_retry(inst)) return;
        if (has_effect(inst, any_read)) {
            result_.memory = true;
            result_.atomic = result_.atomic || has_effect(inst, Effects::atomic);
            result_.reads.push_back(&instruction);
            if (follow_ == Follow::everything) {
                add(inst.guard);
                if (has_effect(inst, Effects::load)) add_stores_to(inst);
            }
            if (follow_ != Follow::addresses) return;
        }
        for (ValueId used : uses(graph_, instruction)) add(used);
    }
    /// A thread may tell another one, or itself, through memory whether to go on.
    void add_stores_to(const ptx::Instruction& load) {
        if (load.space == ptx::StateSpace::param || load.space == ptx::StateSpace::constant) return;
        const bool is_near = load.space == ptx::StateSpace::local || load.space == ptx::StateSpace::shared;
        const MemoryPlace& place = cycle_.places_.of(load);
        for (BlockId block : cycle_.cycle_.blocks)
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
                if (!has_effect(instruction.inst, Effects::store | Effects::atomic)) continue;
                const Overlap overlap = cycle_.places_.overlap(place, cycle_.places_.of(instruction.inst));
                if (overlap == Overlap::never || (overlap == Overlap::maybe && !is_near)) continue;
                for (ValueId used : uses(graph_, instruction)) add(used);
                if (has_effect(instruction.inst, Effects::atomic)) result_.carried = true; // it counts there
                add_control(cycle_.local_[block], no_block);
            }
    }

    const CycleDependences& cycle_;
    const FunctionGraph& graph_;
    const Follow follow_;
    std::vector<bool> seen_values_;
    std::set<std::pair<BlockId, BlockId>> seen_branches_; ///< and how far up they were followed
    std::vector<ValueId> work_;
    Sources result_;
};

CycleDependences::Sources CycleDependences::of_exits() const {
    Walk walk(*this, Walk::Follow::everything);
    for (BlockId block : exits_) {
        walk.add(graph_.blocks[block].terminator.condition);
        walk.add_control(local_[block], no_block);
    }
    return walk.run();
}

CycleDependences::Sources CycleDependences::of_conditions() const {
    Walk walk(*this, Walk::Follow::data);
    for (BlockId block : exits_) walk.add(graph_.blocks[block].terminator.condition);
    return walk.run();
}

CycleDependences::Sources CycleDependences::of_value(ValueId value) const {
    Walk walk(*this, Walk::Follow::addresses);
    walk.add(value);
    return walk.run();
}

bool CycleDependences::has_counter(const Sources& exits) const {
    return std::any_of(exits.carried_phis.begin(), exits.carried_phis.end(),
                       [&](const Phi* phi) { return !of_value(phi->result).memory; });
}

bool CycleDependences::is_retry(const ptx::Instruction& inst) const {
    return expects_seen(inst) && success_leaves(inst);
}

/// Where a branch of the cycle asks whether `swap` has succeeded, no way from its yes leads to another round; and there
/// is such a branch.
bool CycleDependences::success_leaves(const ptx::Instruction& swap) const {
    bool asked = false;
    for (BlockId id : cycle_.blocks) {
        const Block& block = graph_.blocks[id];
        const ValueId condition = block.terminator.condition;
        if (block.terminator.kind != Terminator::Kind::branch || condition == no_value) continue;
        const GraphInstruction* question = places_.sums().definition(condition).instruction;
        if (!question || !asks_of(question->inst, swap)) continue;
        asked = true;
        const bool yes_when_true = question->inst.has(ptx::Modifier::eq) != block.terminator.negated;
        std::vector<BlockId> work{block.successors[yes_when_true ? 0 : 1]};
        std::vector<bool> seen(cycle_.blocks.size(), false);
        while (!work.empty()) {
            const BlockId next = work.back();
            work.pop_back();
            if (!contains(next)) continue;
            if (next == cycle_.header || next == id || cycle_.header == no_block) return false;
            if (seen[local_[next]]) continue;
            seen[local_[next]] = true;
            work.insert(work.end(), graph_.blocks[next].successors.begin(), graph_.blocks[next].successors.end());
        }
    }
    return asked;
}

/// `question` compares what `swap` returned with what it expected.
bool CycleDependences::asks_of(const ptx::Instruction& question, const ptx::Instruction& swap) const {
    if (opcode(question) != "setp" || !(question.has(ptx::Modifier::eq) || question.has(ptx::Modifier::ne)))
        return false;
    const Operand &a = question[Role::a], &b = question[Role::b], &result = swap[Role::d], &expected = swap[Role::b];
    for (const Operand* operand : {&a, &b, &result, &expected})
        if (operand->kind != Operand::Kind::reg) return false;
    return question[Role::c].kind == Operand::Kind::none && ((a.index == result.index && b.index == expected.index) ||
                                                             (b.index == result.index && a.index == expected.index));
}

/// What it expects is nothing but what it or another read has found at its place.
bool CycleDependences::expects_seen(const ptx::Instruction& inst) const {
    if (!inst.has(ptx::Modifier::cas) || inst[Role::b].kind != Operand::Kind::reg) return false;
    const MemoryPlace& place = places_.of(inst);
    const ValueId result = inst[Role::d].kind == Operand::Kind::reg ? ValueId(inst[Role::d].index) : no_value;
    std::vector<ValueId> work{ValueId(inst[Role::b].index)}, seen;
    bool sees_memory = false;
    while (!work.empty()) {
        const ValueId value = work.back();
        work.pop_back();
        if (!defined_inside(value) || std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
        seen.push_back(value);
        const LinearSums::Definition& definition = places_.sums().definition(value);
        if (definition.phi) {
            work.insert(work.end(), definition.phi->incoming.begin(), definition.phi->incoming.end());
            continue;
        }
        const ptx::Instruction& source = definition.instruction->inst;
        const bool is_copy = source.form == ptx::FormId::mov || source.form == ptx::FormId::cvt_same_32 ||
                             source.form == ptx::FormId::cvt_same_64;
        if (is_copy && source.operands[1].kind == Operand::Kind::reg) {
            work.push_back(source.operands[1].index);
        } else if (value == result || (has_effect(source, Effects::load | Effects::atomic) &&
                                       places_.overlap(place, places_.of(source)) == Overlap::same_place)) {
            sees_memory = true;
        } else {
            return false;
        }
    }
    return sees_memory;
}

/// A comparison of what a retry returned with what it expected: whether this thread has succeeded.
bool CycleDependences::tells_of_retry(const ptx::Instruction& inst) const {
    for (Role role : {Role::a, Role::b}) {
        const Operand& operand = inst[role];
        if (operand.kind != Operand::Kind::reg || !defined_inside(operand.index)) continue;
        const GraphInstruction* swap = places_.sums().definition(operand.index).instruction;
        if (swap && swap->inst.has(ptx::Modifier::cas) && asks_of(inst, swap->inst) && is_retry(swap->inst))
            return true;
    }
    return false;
}

} // namespace ptarmigan::translator
