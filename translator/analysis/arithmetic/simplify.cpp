// SPDX-License-Identifier: Apache-2.0
// Simplification of the SSA graph, repeated until the control flow stops changing: copies and constants are propagated
// in one walk in dominance order, branches on constants become jumps, then everything that nothing needs goes.
#include "translator/analysis/build/build_ssa.h"

#include "frontend/ptx/queries.h"
#include "translator/analysis/arithmetic/guarded_values.h"
#include "translator/analysis/arithmetic/needed_bits.h"
#include "translator/analysis/arithmetic/needed_lanes.h"
#include "translator/analysis/arithmetic/value_ranges.h"
#include "translator/analysis/build/canonical_cfg.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;
using ptx::ScalarType;

class Simplifier {
public:
    Simplifier(FunctionGraph& graph, const BlockShape& shape) : graph_(graph), shape_(shape) {
        replacement_.resize(graph.values.size());
        std::iota(replacement_.begin(), replacement_.end(), 0);
    }

    void run() {
        for (unsigned round = 0;; ++round) {
            // Every round after the first removes an edge or a phi, so this ends.
            do {
                while (propagate()) {
                }
            } while (fold_branches());
            resolve_all();
            if (round == 3) break; // what the last one changed is propagated
            const bool has_fewer_sources = resolve_needed_bits(graph_);
            if (!resolve_needed_lanes(graph_) && !has_fewer_sources) break;
            for (ValueId value = ValueId(replacement_.size()); value < graph_.values.size(); ++value)
                replacement_.push_back(value);
        }
        remove_dead();
        while (merge_chains(graph_)) {
        }
        renumber_blocks(graph_);
        compact_values();
    }

private:
    ValueId find(ValueId value) {
        while (replacement_[value] != value) {
            replacement_[value] = replacement_[replacement_[value]];
            value = replacement_[value];
        }
        return value;
    }
    bool replace(ValueId value, ValueId by) {
        by = find(by);
        if (find(value) == by) return false;
        replacement_[find(value)] = by;
        return true;
    }
    ValueId constant(ScalarType type, std::uint64_t bits);
    bool propagate();
    bool simplify_phi(Phi& phi);
    bool simplify_instruction(GraphInstruction& instruction, bool& dead);
    bool is_copy(const ptx::Instruction& inst) const;
    bool is_same_either_way(const GraphInstruction& instruction) const;
    bool is_undefined(const Operand& operand);
    std::optional<Operand> chosen_side(const ptx::Instruction& inst);
    bool fold_undefined(const ptx::Instruction& inst);
    std::optional<std::uint64_t> source_bits(const Operand& operand);
    bool fold(const ptx::Instruction& inst);
    bool fold_guard(GraphInstruction& instruction, bool& dead);
    bool fold_branches();
    void resolve_all();
    void remove_dead();
    void compact_values();

    FunctionGraph& graph_;
    const BlockShape& shape_;
    std::vector<ValueId> replacement_;
    std::map<std::pair<ScalarType, std::uint64_t>, ValueId> constants_;
};

/// The bits of an integer register are its value at every width up to its own.
ValueId Simplifier::constant(ScalarType type, std::uint64_t bits) {
    auto [found, is_new] = constants_.try_emplace({type, bits}, ValueId(graph_.values.size()));
    if (is_new) {
        SsaValue value;
        value.type = type;
        value.is_constant = true;
        value.constant = bits;
        graph_.values.push_back(std::move(value));
        replacement_.push_back(found->second);
    }
    return found->second;
}

/// A phi whose operands are one value, or itself, is that value.
bool Simplifier::simplify_phi(Phi& phi) {
    ValueId only = no_value;
    bool unknown = false;
    for (ValueId& incoming : phi.incoming) {
        incoming = find(incoming);
        if (incoming == phi.result) continue;
        if (graph_.values[incoming].is_undefined) {
            unknown = true;
            continue;
        }
        if (only != no_value && only != incoming) return false;
        only = incoming;
    }
    // An undefined operand may be taken for the other one only where that one is defined on every path.
    if (unknown && (only == no_value ? false : !graph_.values[only].is_constant)) return false;
    if (only == no_value) {
        for (ValueId incoming : phi.incoming)
            if (incoming != phi.result) only = incoming;
        if (only == no_value) return false; // a phi of itself: unreachable, removed with its block
    }
    return replace(phi.result, only);
}

bool Simplifier::is_copy(const ptx::Instruction& inst) const {
    bool form = inst.form == ptx::FormId::mov || inst.form == ptx::FormId::mov_b128 ||
                inst.form == ptx::FormId::cvt_same_32 || inst.form == ptx::FormId::cvt_same_64 ||
                inst.form == ptx::FormId::cvt_same_16;
    const Operand &d = inst.operands[0], &a = inst.operands[1];
    if (!form || d.kind != Operand::Kind::reg || a.kind != Operand::Kind::reg || a.negated) return false;
    unsigned size = ptx::bit_size(graph_.values[d.index].type);
    return size == ptx::bit_size(graph_.values[a.index].type) && size == ptx::bit_size(d.type) &&
           size == ptx::bit_size(a.type);
}

std::optional<std::uint64_t> Simplifier::source_bits(const Operand& operand) {
    if (operand.kind == Operand::Kind::imm) return operand.value;
    if (operand.kind == Operand::Kind::special) return constant_special(operand, shape_);
    if (operand.kind != Operand::Kind::reg || !graph_.values[operand.index].is_constant) return std::nullopt;
    std::uint64_t bits = graph_.values[operand.index].constant;
    unsigned size = ptx::bit_size(operand.type);
    if (size < 64) bits &= (std::uint64_t(1) << size) - 1;
    return operand.negated ? bits ^ 1 : bits;
}

bool Simplifier::is_undefined(const Operand& operand) {
    return operand.kind == Operand::Kind::reg && graph_.values[find(operand.index)].is_undefined;
}

/// Which side a choice is, if that is known: the predicate is, or one side is undefined.
std::optional<Operand> Simplifier::chosen_side(const ptx::Instruction& inst) {
    if (inst.form != ptx::FormId::selp) return std::nullopt;
    const Operand &a = inst.operands[1], &b = inst.operands[2];
    if (const auto bits = source_bits(inst.operands[3])) return *bits & 1 ? a : b;
    if (is_undefined(a)) return b;
    if (is_undefined(b)) return a;
    return std::nullopt;
}

/// What is put together of undefined registers only is undefined.
bool Simplifier::fold_undefined(const ptx::Instruction& inst) {
    if (inst.form != ptx::FormId::mov_pack || inst.operands[0].kind != Operand::Kind::reg) return false;
    const Operand& parts = inst.operands[1];
    if (parts.kind != Operand::Kind::vector) return false;
    for (unsigned i = 0; i < parts.count; ++i)
        if (!is_undefined(graph_.pool[parts.first + i])) return false;
    SsaValue value;
    value.type = graph_.values[inst.operands[0].index].type;
    value.is_undefined = true;
    graph_.values.push_back(std::move(value));
    replacement_.push_back(ValueId(graph_.values.size() - 1));
    return replace(inst.operands[0].index, ValueId(graph_.values.size() - 1));
}

/// A single result from constants becomes a constant.
bool Simplifier::fold(const ptx::Instruction& inst) {
    auto infos = ptx::form_info(inst.form).operands;
    if (inst.operand_count < 2) return false;
    const Operand& d = inst.operands[0];
    if (d.kind != Operand::Kind::reg) return false;
    ScalarType reg = graph_.values[d.index].type;
    if (ptx::bit_size(reg) > 64) return false;
    std::vector<std::uint64_t> sources;
    for (unsigned i = 1; i < inst.operand_count; ++i) {
        const Operand& operand = inst.operands[i];
        if (operand.kind == Operand::Kind::none) continue;
        if (infos[i].is_destination) {
            if (operand.kind != Operand::Kind::sink) return false;
            continue;
        }
        auto bits = source_bits(operand);
        if (!bits) return false;
        sources.push_back(*bits);
    }
    auto result = fold_constant(inst, sources);
    if (!result) return false;
    unsigned from = ptx::bit_size(d.type), to = ptx::bit_size(reg);
    std::uint64_t bits = *result;
    if (from < to && ptx::is_signed(d.type)) {
        bits = std::uint64_t(std::int64_t(bits << (64 - from)) >> (64 - from));
        if (to < 64) bits &= (std::uint64_t(1) << to) - 1;
    }
    return replace(d.index, constant(reg, bits));
}

/// A guard that is known: the instruction is unguarded, or leaves the previous values.
bool Simplifier::fold_guard(GraphInstruction& instruction, bool& dead) {
    ptx::Instruction& inst = instruction.inst;
    if (inst.guard == ptx::no_id || !graph_.values[inst.guard].is_constant) return false;
    bool holds = ((graph_.values[inst.guard].constant & 1) != 0) != inst.guard_negated;
    if (!holds) {
        FewValues results = definitions(graph_, instruction);
        for (std::size_t i = 0; i < results.size(); ++i) replace(results[i], instruction.previous[i]);
        dead = true;
        return true;
    }
    inst.guard = ptx::no_id;
    inst.guard_negated = false;
    instruction.previous.clear();
    return true;
}

/// A guarded copy of what was there before, or a choice between a value and itself.
bool Simplifier::is_same_either_way(const GraphInstruction& instruction) const {
    const ptx::Instruction& inst = instruction.inst;
    if (inst.form == ptx::FormId::selp) {
        const Operand &d = inst.operands[0], &a = inst.operands[1], &b = inst.operands[2];
        return inst.guard == ptx::no_id && d.kind == Operand::Kind::reg && a.kind == Operand::Kind::reg &&
               b.kind == Operand::Kind::reg && a.index == b.index &&
               graph_.values[d.index].type == graph_.values[a.index].type;
    }
    return inst.guard != ptx::no_id && is_copy(inst) && instruction.previous.size() == 1 &&
           instruction.previous[0] == inst.operands[1].index;
}

bool Simplifier::simplify_instruction(GraphInstruction& instruction, bool& dead) {
    ptx::Instruction& inst = instruction.inst;
    if (inst.guard != ptx::no_id) inst.guard = find(inst.guard);
    for (ValueId& value : instruction.previous) value = find(value);
    for_each_register(graph_, instruction, [&](Operand& operand, bool definition) {
        if (!definition) operand.index = find(operand.index);
    });
    bool changed = fold_guard(instruction, dead);
    if (!dead && is_same_either_way(instruction)) {
        dead = true;
        return replace(inst.operands[0].index, inst.operands[1].index);
    }
    // Any value will do in lanes whose guard is false.
    if (!dead && inst.guard != ptx::no_id && inst.form == ptx::FormId::mov && instruction.previous.size() == 1 &&
        graph_.values[instruction.previous[0]].is_undefined) {
        inst.guard = ptx::no_id;
        inst.guard_negated = false;
        instruction.previous.clear();
        changed = true;
    }
    if (dead || inst.guard != ptx::no_id) return changed;
    if (const auto side = chosen_side(inst)) {
        inst.form = ptx::FormId::mov;
        inst.operands[1] = *side;
        inst.operand_count = 2;
        changed = true;
    }
    if (fold_undefined(inst)) {
        dead = true;
        return true;
    }
    if (is_copy(inst)) {
        dead = true;
        return replace(inst.operands[0].index, inst.operands[1].index);
    }
    if (fold(inst)) {
        dead = true;
        return true;
    }
    return changed;
}

bool Simplifier::propagate() {
    bool changed = false;
    for (Block& block : graph_.blocks) {
        for (std::size_t i = 0; i < block.phis.size();) {
            changed |= simplify_phi(block.phis[i]);
            if (find(block.phis[i].result) != block.phis[i].result) {
                block.phis[i] = std::move(block.phis.back());
                block.phis.pop_back();
            } else {
                ++i;
            }
        }
        std::size_t kept = 0;
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            bool dead = false;
            changed |= simplify_instruction(block.instructions[i], dead);
            if (dead) continue;
            if (kept != i) block.instructions[kept] = std::move(block.instructions[i]);
            ++kept;
        }
        block.instructions.resize(kept);
        if (block.terminator.condition != no_value) block.terminator.condition = find(block.terminator.condition);
    }
    return changed;
}

bool Simplifier::fold_branches() {
    bool changed = false;
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        Terminator& terminator = graph_.blocks[id].terminator;
        if (terminator.condition == no_value) continue;
        const SsaValue& condition = graph_.values[find(terminator.condition)];
        if (!condition.is_constant) continue;
        std::size_t count = graph_.blocks[id].successors.size();
        std::size_t keep = 0;
        if (terminator.kind == Terminator::Kind::branch)
            keep = ((condition.constant & 1) != 0) != terminator.negated ? 0 : 1;
        else
            keep = std::min<std::size_t>(condition.constant & 0xffffffffu, count - 1);
        for (std::size_t s = count; s-- > 0;)
            if (s != keep) remove_edge(graph_, id, unsigned(s));
        terminator.kind = Terminator::Kind::jump;
        terminator.condition = no_value;
        terminator.negated = false;
        changed = true;
    }
    if (changed) renumber_blocks(graph_);
    return changed;
}

/// Puts the final replacement into every operand.
void Simplifier::resolve_all() {
    for (Block& block : graph_.blocks) {
        for (Phi& phi : block.phis)
            for (ValueId& value : phi.incoming) value = find(value);
        for (GraphInstruction& instruction : block.instructions) {
            if (instruction.inst.guard != ptx::no_id) instruction.inst.guard = find(instruction.inst.guard);
            for (ValueId& value : instruction.previous) value = find(value);
            for_each_register(graph_, instruction, [&](Operand& operand, bool definition) {
                if (!definition) operand.index = find(operand.index);
            });
        }
        if (block.terminator.condition != no_value) block.terminator.condition = find(block.terminator.condition);
    }
}

void Simplifier::remove_dead() {
    struct Definition {
        const Phi* phi = nullptr;
        const GraphInstruction* instruction = nullptr;
    };
    std::vector<Definition> definition(graph_.values.size());
    std::vector<bool> live(graph_.values.size(), false);
    std::vector<ValueId> work;
    auto need = [&](ValueId value) {
        if (live[value]) return;
        live[value] = true;
        work.push_back(value);
    };
    auto need_uses = [&](const GraphInstruction& instruction) {
        for (ValueId value : uses(graph_, instruction)) need(value);
    };
    for (const Block& block : graph_.blocks) {
        for (const Phi& phi : block.phis) definition[phi.result].phi = &phi;
        for (const GraphInstruction& instruction : block.instructions) {
            for (ValueId value : definitions(graph_, instruction)) definition[value].instruction = &instruction;
            if (!is_removable(instruction.inst)) need_uses(instruction);
        }
        if (block.terminator.condition != no_value) need(block.terminator.condition);
    }
    while (!work.empty()) {
        ValueId value = work.back();
        work.pop_back();
        if (definition[value].phi)
            for (ValueId incoming : definition[value].phi->incoming) need(incoming);
        if (definition[value].instruction) need_uses(*definition[value].instruction);
    }
    for (Block& block : graph_.blocks) {
        std::erase_if(block.phis, [&](const Phi& phi) { return !live[phi.result]; });
        std::erase_if(block.instructions, [&](const GraphInstruction& instruction) {
            if (!is_removable(instruction.inst)) return false;
            FewValues results = definitions(graph_, instruction);
            return std::none_of(results.begin(), results.end(), [&](ValueId value) { return live[value]; });
        });
        for (GraphInstruction& instruction : block.instructions) {
            const int d = ptx::operand_index(instruction.inst.form, ptx::Role::d);
            if (!has_effect(instruction.inst, ptx::Effects::atomic) || d < 0) continue;
            Operand& result = instruction.inst.operands[d];
            if (result.kind != Operand::Kind::reg || live[result.index]) continue;
            result.kind = Operand::Kind::sink; // as `red`: each lane's result costs a store
            instruction.previous.clear();
        }
    }
}

/// Numbers the values that are still there in order of definition; constants and undefined ones come first.
void Simplifier::compact_values() {
    std::vector<ValueId> number(graph_.values.size(), no_value);
    std::vector<SsaValue> values;
    auto keep = [&](ValueId& value, BlockId block, bool is_phi) {
        if (number[value] == no_value) {
            number[value] = ValueId(values.size());
            values.push_back(std::move(graph_.values[value]));
        }
        value = number[value];
        if (block != no_block) {
            values[value].block = block;
            values[value].is_phi = is_phi;
        }
    };
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        Block& block = graph_.blocks[id];
        for (Phi& phi : block.phis) {
            keep(phi.result, id, true);
            for (ValueId& value : phi.incoming) keep(value, no_block, false);
        }
        for (GraphInstruction& instruction : block.instructions) {
            if (instruction.inst.guard != ptx::no_id) keep(instruction.inst.guard, no_block, false);
            for (ValueId& value : instruction.previous) keep(value, no_block, false);
            for_each_register(graph_, instruction, [&](Operand& operand, bool definition) {
                keep(operand.index, definition ? id : no_block, false);
            });
        }
        if (block.terminator.condition != no_value) keep(block.terminator.condition, no_block, false);
    }
    graph_.values = std::move(values);
}

} // namespace

void simplify(FunctionGraph& graph, const BlockShape& shape) {
    Simplifier(graph, shape).run();
    if (resolve_guarded_values(graph)) Simplifier(graph, shape).run();
    // What is known of thread indices decides comparisons, which may cut off code, which may decide more.
    for (unsigned round = 0; round < 4 && decide_comparisons(graph, shape); ++round) Simplifier(graph, shape).run();
    // A cycle that was entered in its middle is a loop once that edge is gone.
    while (restore_loop_edges(graph)) Simplifier(graph, shape).run();
    if (split_joins(graph)) Simplifier(graph, shape).run();
}

} // namespace ptarmigan::translator
