// SPDX-License-Identifier: Apache-2.0
// Finds loads that all warps make of the same words, asks which stores can follow before a barrier, and splits blocks.
#include "translator/analysis/settle_broadcasts.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/form_queries.h"
#include "translator/analysis/graph_queries.h"
#include "translator/analysis/linear_sums.h"

#include <algorithm>
#include <optional>

namespace ptarmigan::translator {

using ptx::Operand;

namespace {

using Term = LinearSum::Term;
constexpr unsigned warp_threads = 32;

class Broadcasts {
public:
    Broadcasts(const FunctionGraph& graph, const BlockShape& block)
        : graph_(graph), sums_(graph), several_warps_(block.ntid[0] * block.ntid[1] * block.ntid[2] > warp_threads),
          is_line_(block.ntid[1] == 1 && block.ntid[2] == 1) {}

    /// Behind which instruction of a block a barrier is missing.
    std::optional<std::size_t> missing_barrier(BlockId id) const {
        const std::vector<GraphInstruction>& instructions = graph_.blocks[id].instructions;
        for (std::size_t i = instructions.size(); i-- > 0;)
            if (is_broadcast(instructions[i]) && store_follows(id, i + 1, variable_of(instructions[i].inst))) return i;
        return std::nullopt;
    }

private:
    static bool is_shared_access(const ptx::Instruction& inst) {
        return inst.space == ptx::StateSpace::shared && inst[ptx::Role::a].kind == Operand::Kind::address;
    }

    bool is_broadcast(const GraphInstruction& instruction) const {
        const ptx::Instruction& inst = instruction.inst;
        if (!has_effect(inst, ptx::Effects::load) || has_effect(inst, ptx::Effects::atomic) ||
            !is_shared_access(inst) || inst.guard != ptx::no_id)
            return false;
        const Operand& address = inst[ptx::Role::a];
        if (address.base != Operand::Base::reg) return true;
        if (graph_.values[address.index].shape.level == Shape::Level::cta_uniform) return true;
        if (!several_warps_) return false;
        const std::optional<LinearSum> sum = sums_.of(address, no_loop);
        return sum && std::all_of(sum->terms.begin(), sum->terms.end(),
                                  [&](const auto& entry) { return is_same_in_each_warp(entry.first); });
    }

    /// Depends on the lane alone.
    bool is_same_in_each_warp(const Term& term) const {
        if (term.kind == Term::Kind::special) return ptx::SpecialRegister(term.id) == ptx::SpecialRegister::laneid;
        const ValueId value = term.id;
        if (graph_.values[value].shape.level == Shape::Level::cta_uniform) return true;
        const GraphInstruction* definition = sums_.definition(value).instruction;
        if (term.kind != Term::Kind::value || !definition || definition->inst.form != ptx::FormId::and_bits ||
            !is_line_)
            return false;
        const auto number = sums_.of(definition->inst.operands[1], no_loop),
                   mask = sums_.of(definition->inst.operands[2], no_loop);
        return number && mask && mask->terms.empty() && mask->constant >= 0 && mask->constant < warp_threads &&
               number->constant == 0 && number->terms.size() == 1 && number->terms.begin()->second == 1 &&
               number->terms.begin()->first == Term{Term::Kind::special, std::uint32_t(ptx::SpecialRegister::tid), 0};
    }

    /// The shared variable that an address is inside of, as far as it tells.
    std::optional<std::uint32_t> variable_of(const ptx::Instruction& inst) const {
        const Operand& address = inst[ptx::Role::a];
        if (address.base == Operand::Base::variable) return address.index;
        if (address.base != Operand::Base::reg) return std::nullopt;
        unsigned phis_left = 4;
        return variable_of(address.index, phis_left);
    }
    std::optional<std::uint32_t> variable_of(ValueId value, unsigned& phis_left) const {
        const std::optional<LinearSum> sum = sums_.of(value, no_loop);
        if (!sum) return std::nullopt;
        for (const auto& [term, factor] : sum->terms) {
            if (term.kind != Term::Kind::value || factor != 1) continue;
            const LinearSums::Definition& definition = sums_.definition(term.id);
            if (definition.phi && phis_left > 0) {
                --phis_left;
                for (ValueId incoming : definition.phi->incoming)
                    if (const auto found = variable_of(incoming, phis_left)) return found;
            }
            if (!definition.instruction || definition.instruction->inst.form != ptx::FormId::mov) continue;
            const Operand& source = definition.instruction->inst.operands[1];
            if (source.kind == Operand::Kind::variable && source.scope == ptx::VariableScope::shared)
                return source.index;
        }
        return std::nullopt;
    }

    /// A store to shared memory that may be to `variable`, from instruction `first` of a block to the next barriers.
    bool store_follows(BlockId start, std::size_t first, std::optional<std::uint32_t> variable) const {
        std::vector<bool> seen(graph_.blocks.size(), false);
        std::vector<BlockId> work;
        const auto walk = [&](BlockId id, std::size_t from) {
            const std::vector<GraphInstruction>& instructions = graph_.blocks[id].instructions;
            for (std::size_t i = from; i < instructions.size(); ++i) {
                const ptx::Instruction& inst = instructions[i].inst;
                if (is_cta_barrier(inst)) return false;
                if (!has_effect(inst, ptx::Effects::store | ptx::Effects::atomic) || !is_shared_access(inst)) continue;
                const auto stored = variable_of(inst);
                if (!variable || !stored || variable == stored) return true;
            }
            for (BlockId next : graph_.blocks[id].successors) work.push_back(next);
            return false;
        };
        if (walk(start, first)) return true;
        while (!work.empty()) {
            const BlockId id = work.back();
            work.pop_back();
            if (seen[id]) continue;
            seen[id] = true;
            if (walk(id, 0)) return true;
        }
        return false;
    }

    const FunctionGraph& graph_;
    const LinearSums sums_;
    const bool several_warps_, is_line_;
};

/// The instructions from `first` on move to a block of their own, the last one of the graph; the block keeps its number
/// and its predecessors.
void split_block(FunctionGraph& graph, BlockId id, std::size_t first) {
    const auto rest_id = BlockId(graph.blocks.size());
    Block& rest = graph.blocks.emplace_back();
    Block& block = graph.blocks[id];
    const auto from = block.instructions.begin() + static_cast<std::ptrdiff_t>(first);
    rest.instructions.assign(std::make_move_iterator(from), std::make_move_iterator(block.instructions.end()));
    block.instructions.erase(from, block.instructions.end());
    rest.terminator = block.terminator;
    rest.successors = std::move(block.successors);
    rest.ends_with_barrier = block.ends_with_barrier;
    rest.predecessors = {id};
    block.terminator = {};
    block.terminator.kind = Terminator::Kind::jump;
    block.terminator.location = rest.terminator.location;
    block.successors = {rest_id};
    block.ends_with_barrier = false;
    for (BlockId successor : rest.successors)
        std::replace(graph.blocks[successor].predecessors.begin(), graph.blocks[successor].predecessors.end(), id,
                     rest_id);
    for (LoopInfo& loop : graph.forest.loops) {
        if (loop.latch == id) loop.latch = rest_id;
        if (loop.preheader == id) loop.preheader = rest_id;
    }
    for (const GraphInstruction& instruction : rest.instructions)
        for (ValueId value : definitions(graph, instruction)) graph.values[value].block = rest_id;
    LoopForest& forest = graph.forest;
    forest.loop_of.push_back(forest.loop_of[id]);
    for (std::uint32_t loop = forest.loop_of[id]; loop != no_loop; loop = forest.loops[loop].parent)
        forest.loops[loop].blocks.push_back(rest_id);
}

/// A barrier like the graph's others behind instruction `last` of a block.
void add_barrier(FunctionGraph& graph, BlockId id, std::size_t last) {
    GraphInstruction barrier;
    for (const Block& block : graph.blocks)
        if (block.ends_with_barrier) barrier = block.instructions.back();
    barrier.inst.location = graph.blocks[id].instructions[last].inst.location;
    split_block(graph, id, last + 1);
    graph.blocks[id].instructions.push_back(std::move(barrier));
    graph.blocks[id].ends_with_barrier = true;
}

} // namespace

bool settle_broadcasts(FunctionGraph& graph, const BlockShape& block) {
    std::vector<std::pair<BlockId, std::size_t>> missing;
    const Broadcasts broadcasts(graph, block);
    for (BlockId id = 0; id < graph.blocks.size(); ++id) {
        const std::vector<BlockId>& predecessors = graph.blocks[id].predecessors;
        if (predecessors.size() != 1 || !graph.blocks[predecessors[0]].ends_with_barrier) continue;
        if (const auto last = broadcasts.missing_barrier(id)) missing.emplace_back(id, *last);
    }
    for (auto [id, last] : missing) add_barrier(graph, id, last);
    return !missing.empty();
}

} // namespace ptarmigan::translator
