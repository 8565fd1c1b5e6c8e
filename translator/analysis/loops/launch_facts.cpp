// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/launch_facts.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/build/close_loops.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/memory/alignment.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

constexpr unsigned deepest = 8; ///< definitions that are looked through

class SingleRounds {
public:
    SingleRounds(const FunctionGraph& graph, const CtaSpans& spans, LaunchFacts& facts)
        : graph_(graph), spans_(spans), facts_(facts), definitions_(definitions_of(graph)) {}

    void run() {
        if (graph_.forest.loops.empty()) return;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            if (graph_.forest.loop_of[block] == no_loop)
                for (const GraphInstruction& instruction : graph_.blocks[block].instructions) consider(instruction);
        const Edges successors = successor_edges(graph_);
        const DominatorTree tree(successors, reverse_edges(successors), 0);
        for (const LoopInfo& loop : graph_.forest.loops)
            if (loop.parent == no_loop && loop.latch != no_block && loop.preheader != no_block) consider(loop, tree);
    }

private:
    /// The rounds of a thread, as compilers count them before they unroll a loop.
    void consider(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if (inst.form != FormId::div_int || !is_tested_quotient(graph_, instruction) ||
            !depends_on_grid(inst.operands[2], deepest))
            return;
        if (is_of_cta(inst.operands[1], inst.operands[2])) facts_.rounds[inst.operands[0].index] = 0;
    }

    /// All rounds come through the comparison, which ends the first one.
    void consider(const LoopInfo& loop, const DominatorTree& tree) {
        for (const BlockId block : loop.blocks) {
            const Terminator& end = graph_.blocks[block].terminator;
            if (end.kind != Terminator::Kind::branch || !tree.dominates(block, loop.latch)) continue;
            const GraphInstruction* made = definitions_[end.condition];
            if (!made || !is_inside(graph_.values[end.condition].block, loop)) continue;
            const auto line = line_of_comparison(graph_, made->inst);
            if (!line || !depends_on_grid(made->inst.operands[*line], deepest)) continue;
            const auto& successors = graph_.blocks[block].successors;
            const bool first_leaves = !is_inside(successors[0], loop), second_leaves = !is_inside(successors[1], loop);
            if (first_leaves == second_leaves || !is_of_cta(made->inst.operands[*line], made->inst.operands[5 - *line]))
                continue;
            facts_.rounds[end.condition] = first_leaves != end.negated;
            note_firsts(loop);
            return;
        }
    }
    bool is_inside(BlockId block, const LoopInfo& loop) const {
        return std::find(loop.blocks.begin(), loop.blocks.end(), block) != loop.blocks.end();
    }
    void note_firsts(const LoopInfo& loop) {
        const Block& header = graph_.blocks[loop.header];
        for (std::size_t edge = 0; edge < header.predecessors.size(); ++edge)
            if (header.predecessors[edge] == loop.preheader)
                for (const Phi& phi : header.phis) facts_.firsts[phi.result] = phi.incoming[edge];
    }

    /// A line in the CTA, and a number that is the same for all of it.
    bool is_of_cta(const Operand& line, const Operand& uniform) const {
        if (spans_.empty()) return true; // of the step
        return line.kind == Operand::Kind::reg && spans_[line.index].is_line &&
               (uniform.kind == Operand::Kind::imm ||
                (uniform.kind == Operand::Kind::reg && spans_[uniform.index].is_uniform));
    }

    bool depends_on_grid(const Operand& operand, unsigned depth) const {
        if (operand.kind == Operand::Kind::special)
            return ptx::SpecialRegister(operand.index) == ptx::SpecialRegister::nctaid;
        if (operand.kind != Operand::Kind::reg || depth == 0) return false;
        const GraphInstruction* made = definitions_[operand.index];
        if (!made || !is_pure(made->inst)) return false;
        const auto infos = ptx::form_info(made->inst.form).operands;
        for (unsigned i = 0; i < made->inst.operand_count; ++i)
            if (!infos[i].is_destination && depends_on_grid(made->inst.operands[i], depth - 1)) return true;
        return false;
    }

    const FunctionGraph& graph_;
    const CtaSpans& spans_;
    LaunchFacts& facts_;
    std::vector<const GraphInstruction*> definitions_;
};

class NearStrides {
public:
    NearStrides(const FunctionGraph& graph, LaunchFacts& facts)
        : graph_(graph), facts_(facts), definitions_(definitions_of(graph)) {}

    void run() {
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                const ptx::Effects effects = ptx::form_info(inst.form).effects;
                if (!ptx::any(effects, ptx::Effects::load | ptx::Effects::store) ||
                    ptx::any(effects, ptx::Effects::atomic))
                    continue;
                const Operand& address = accessed_memory(inst);
                if (address.kind == Operand::Kind::address && address.base == Operand::Base::reg)
                    follow(address.index, std::int64_t(access_bytes(inst)), deepest);
            }
    }

private:
    bool has_stride(const Operand& operand) const {
        if (operand.kind != Operand::Kind::reg) return false;
        const Shape& shape = graph_.values[operand.index].shape;
        return shape.is_affine() && shape.steps;
    }

    /// Lanes of `value`, whose distance only the launch knows, are to be `distance` apart.
    void follow(ValueId value, std::int64_t distance, unsigned depth) {
        const GraphInstruction* made = definitions_[value];
        if (!made || depth == 0 || made->inst.guard != ptx::no_id || distance == 0) return;
        const ptx::Instruction& inst = made->inst;
        const auto go = [&](const Operand& operand, std::int64_t of_operand) {
            if (has_stride(operand)) follow(operand.index, of_operand, depth - 1);
        };
        switch (ptx::form_info(inst.form).shape) {
        case ptx::ShapeRule::copy:
        case ptx::ShapeRule::narrow:
        case ptx::ShapeRule::widen:
        case ptx::ShapeRule::subtract: return go(inst.operands[1], distance);
        case ptx::ShapeRule::add: go(inst.operands[1], distance); return go(inst.operands[2], distance);
        case ptx::ShapeRule::shift_left:
            if (const auto amount = constant_of(graph_, inst.operands[2]); amount && *amount < 16)
                if (distance % (std::int64_t(1) << *amount) == 0) go(inst.operands[1], distance >> *amount);
            return;
        case ptx::ShapeRule::multiply_add:
        case ptx::ShapeRule::multiply_wide_add:
            if (has_stride(inst.operands[3])) return go(inst.operands[3], distance);
            return product(inst, distance, depth);
        case ptx::ShapeRule::multiply:
        case ptx::ShapeRule::multiply_wide: return product(inst, distance, depth);
        default: return;
        }
    }

    void product(const ptx::Instruction& inst, std::int64_t distance, unsigned depth) {
        for (const unsigned side : {1u, 2u}) {
            const Operand &factor = inst.operands[side], &line = inst.operands[3 - side];
            if (line.kind != Operand::Kind::reg) continue;
            if (const auto number = constant_of(graph_, factor)) {
                const auto by = std::int64_t(*number);
                if (by > 0 && distance % by == 0 && has_stride(line)) follow(line.index, distance / by, depth - 1);
                continue;
            }
            const Shape& shape = graph_.values[line.index].shape;
            if (factor.kind != Operand::Kind::reg || !graph_.values[factor.index].shape.is_uniform() ||
                !shape.is_affine() || shape.steps || shape.offsets->size() < 2)
                continue;
            const std::int64_t apart = (*shape.offsets)[1];
            if (apart > 0 && distance % apart == 0) parameter(factor.index, distance / apart, deepest);
        }
    }

    /// Back to the parameter that `value` is computed of.
    void parameter(ValueId value, std::int64_t number, unsigned depth) {
        const GraphInstruction* made = definitions_[value];
        if (!made || depth == 0 || made->inst.guard != ptx::no_id) return;
        const ptx::Instruction& inst = made->inst;
        if (loads_kernel_parameter(graph_, inst)) return note(inst, value, number);
        const Operand& source = inst.operands[1];
        if (source.kind != Operand::Kind::reg) return;
        const auto times = [&](const Operand& factor) {
            const auto by = constant_of(graph_, factor);
            if (by && std::int64_t(*by) > 0 && number % std::int64_t(*by) == 0)
                parameter(source.index, number / std::int64_t(*by), depth - 1);
        };
        switch (ptx::form_info(inst.form).shape) {
        case ptx::ShapeRule::copy:
        case ptx::ShapeRule::narrow:
        case ptx::ShapeRule::widen: return parameter(source.index, number, depth - 1);
        case ptx::ShapeRule::multiply:
        case ptx::ShapeRule::multiply_wide: return times(inst.operands[2]);
        case ptx::ShapeRule::shift_left:
            if (const auto amount = constant_of(graph_, inst.operands[2]); amount && *amount < 16)
                times(constant_operand(std::uint64_t(1) << *amount, ptx::ScalarType::u64));
            return;
        default: return;
        }
    }

    /// By the first access that asks for it.
    void note(const ptx::Instruction& load, ValueId value, std::int64_t number) {
        const unsigned bits = ptx::bit_size(load.type());
        if (load[ptx::Role::d].kind != Operand::Kind::reg || (bits != 32 && bits != 64) ||
            ptx::bit_size(graph_.values[value].type) != bits)
            return;
        if (!stride_of(graph_, facts_, load))
            facts_.strides.push_back({load[ptx::Role::a], load.type(), std::uint64_t(number)});
    }

    const FunctionGraph& graph_;
    LaunchFacts& facts_;
    std::vector<const GraphInstruction*> definitions_;
};

/// Uses of `value` are of `number` instead.
class Numbers {
public:
    explicit Numbers(FunctionGraph& graph) : graph_(graph) {}

    void set(ValueId value, std::uint64_t number) {
        SsaValue constant;
        constant.type = graph_.values[value].type;
        constant.is_constant = true;
        constant.constant = number;
        graph_.values.push_back(std::move(constant));
        names_[value] = ValueId(graph_.values.size() - 1);
    }
    void apply() {
        for (Block& block : graph_.blocks) {
            for (Phi& phi : block.phis)
                for (ValueId& value : phi.incoming) rename(value);
            for (GraphInstruction& instruction : block.instructions) {
                for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                    if (!is_definition) rename(operand.index);
                });
                if (instruction.inst.guard != ptx::no_id) rename(instruction.inst.guard);
                for (ValueId& value : instruction.previous) rename(value);
            }
            if (block.terminator.condition != no_value) rename(block.terminator.condition);
        }
    }

private:
    void rename(ValueId& value) const {
        if (const auto found = names_.find(value); found != names_.end()) value = found->second;
    }

    FunctionGraph& graph_;
    std::unordered_map<ValueId, ValueId> names_;
};

} // namespace

void find_single_rounds(const FunctionGraph& graph, const CtaSpans& spans, LaunchFacts& facts) {
    SingleRounds(graph, spans, facts).run();
}

bool multiplies_by_numbers_of_launch(const FunctionGraph& graph) {
    const auto is_of_launch = [&](const Operand& operand) {
        return operand.kind == Operand::Kind::reg && !graph.values[operand.index].is_constant &&
               graph.values[operand.index].shape.is_uniform();
    };
    const auto differs = [&](const Operand& operand) {
        return operand.kind == Operand::Kind::reg && !graph.values[operand.index].shape.is_uniform();
    };
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            using enum ptx::ShapeRule;
            const ptx::ShapeRule rule = ptx::form_info(instruction.inst.form).shape;
            if (rule != multiply && rule != multiply_add && rule != multiply_wide && rule != multiply_wide_add)
                continue;
            const Operand &a = instruction.inst.operands[1], &b = instruction.inst.operands[2];
            if ((is_of_launch(a) && differs(b)) || (is_of_launch(b) && differs(a))) return true;
        }
    return false;
}

void find_near_strides(const FunctionGraph& graph, LaunchFacts& facts) {
    NearStrides(graph, facts).run();
}

const std::uint64_t* stride_of(const FunctionGraph& graph, const LaunchFacts& facts, const ptx::Instruction& inst) {
    if (!loads_kernel_parameter(graph, inst) || inst[ptx::Role::d].kind != Operand::Kind::reg) return nullptr;
    const Operand& address = inst[ptx::Role::a];
    for (const LaunchFacts::Stride& each : facts.strides)
        if (each.parameter.index == address.index && each.parameter.value == address.value &&
            ptx::bit_size(each.type) == ptx::bit_size(inst.type()))
            return &each.number;
    return nullptr;
}

void assume_facts(FunctionGraph& graph, const LaunchFacts& facts, const BlockShape& block) {
    Numbers numbers(graph);
    for (const auto& [result, number] : facts.rounds) numbers.set(result, number);
    for (const Block& each : graph.blocks)
        for (const GraphInstruction& instruction : each.instructions)
            if (const std::uint64_t* number = stride_of(graph, facts, instruction.inst))
                numbers.set(instruction.inst[ptx::Role::d].index, *number);
    numbers.apply();
    simplify(graph, block);
    find_loops_again(graph);
    close_loops(graph);
}

} // namespace ptarmigan::translator
