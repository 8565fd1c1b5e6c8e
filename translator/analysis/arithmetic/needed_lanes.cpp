// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/needed_lanes.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

/// Who looks at a value.
struct Need {
    enum class Kind : std::uint8_t { none, under_guard, always } kind = Kind::none;
    ValueId guard = no_value; ///< without inversions
    bool negated = false;
    bool operator==(const Need&) const = default;
};

class NeededLanes {
public:
    explicit NeededLanes(FunctionGraph& graph)
        : graph_(graph), needs_(graph.values.size()), made_(graph.values.size()) {}

    bool run() {
        if (!find_definitions()) return false;
        find_needs();
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) {
                hide_previous(instruction);
                resolve_operands(instruction);
            }
        return changed_;
    }

private:
    struct Definition {
        const GraphInstruction* instruction = nullptr;
        const Phi* phi = nullptr;
        std::size_t place = 0; ///< among the instruction's results
    };

    /// Whether anything is chosen by a predicate.
    bool find_definitions() {
        bool any = false;
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis) made_[phi.result].phi = &phi;
            for (const GraphInstruction& instruction : block.instructions) {
                any = any || !instruction.previous.empty() || instruction.inst.form == FormId::selp;
                const FewValues results = definitions(graph_, instruction);
                for (std::size_t i = 0; i < results.size(); ++i) made_[results[i]] = {&instruction, nullptr, i};
            }
        }
        return any;
    }

    Need lanes_of(ValueId predicate, bool negated) const {
        for (unsigned step = 0; step < 8; ++step) {
            const GraphInstruction* instruction = made_[predicate].instruction;
            if (instruction == nullptr) break;
            const ptx::Instruction& inst = instruction->inst;
            const Operand& source = inst.operands[1];
            if (inst.form != FormId::not_bits || inst.guard != ptx::no_id || source.kind != Operand::Kind::reg ||
                graph_.values[source.index].type != ptx::ScalarType::pred)
                break;
            negated = negated != !source.negated;
            predicate = source.index;
        }
        return {Need::Kind::under_guard, predicate, negated};
    }
    Need lanes_of_guard(const ptx::Instruction& inst) const { return lanes_of(inst.guard, inst.guard_negated); }
    static Need other(Need need) {
        need.negated = !need.negated;
        return need;
    }
    static bool is_computed(const ptx::Instruction& inst) {
        return is_removable(inst) && !has_effect(inst, ptx::Effects::load);
    }
    /// A choice by a register.
    static bool is_choice(const ptx::Instruction& inst) {
        return inst.form == FormId::selp && inst.guard == ptx::no_id && inst.operands[3].kind == Operand::Kind::reg;
    }
    Need lanes_of_choice(const ptx::Instruction& inst) const {
        return lanes_of(inst.operands[3].index, inst.operands[3].negated);
    }

    void need(ValueId value, const Need& how) {
        Need& known = needs_[value];
        if (known == how || known.kind == Need::Kind::always) return;
        known = known.kind == Need::Kind::none ? how : Need{Need::Kind::always};
        work_.push_back(value);
    }
    void need_operands(const GraphInstruction& instruction, const Need& how) {
        for_each_register(graph_, instruction, [&](const Operand& operand, bool is_definition) {
            if (!is_definition) need(operand.index, how);
        });
    }
    /// One side of a choice that `how` looks at.
    void need_side(const Operand& operand, const Need& how, const Need& side) {
        if (operand.kind != Operand::Kind::reg || how == other(side)) return;
        need(operand.index, how.kind == Need::Kind::always ? side : how);
    }

    void find_needs() {
        const Need always{Need::Kind::always};
        for (const Block& block : graph_.blocks) {
            if (block.terminator.condition != no_value) need(block.terminator.condition, always);
            for (const GraphInstruction& instruction : block.instructions) {
                const bool is_guarded = instruction.inst.guard != ptx::no_id;
                if (is_guarded) need(instruction.inst.guard, always);
                if (!is_computed(instruction.inst))
                    need_operands(instruction, is_guarded ? lanes_of_guard(instruction.inst) : always);
            }
        }
        while (!work_.empty()) {
            const ValueId value = work_.back();
            work_.pop_back();
            const Definition& definition = made_[value];
            // Another round's guard is another one.
            if (definition.phi != nullptr)
                for (const ValueId incoming : definition.phi->incoming) need(incoming, always);
            if (definition.instruction == nullptr) continue;
            const GraphInstruction& instruction = *definition.instruction;
            const ptx::Instruction& inst = instruction.inst;
            if (inst.guard == ptx::no_id) {
                if (!is_computed(inst)) continue;
                if (is_choice(inst)) {
                    const Need side = lanes_of_choice(inst);
                    need(inst.operands[3].index, always);
                    need_side(inst.operands[1], needs_[value], side);
                    need_side(inst.operands[2], needs_[value], other(side));
                } else {
                    need_operands(instruction, needs_[value]);
                }
                continue;
            }
            const Need own = lanes_of_guard(inst);
            if (needs_[value] != other(own)) need_operands(instruction, own);
            if (needs_[value] != own && !instruction.previous.empty())
                need(instruction.previous[definition.place], other(own));
        }
    }

    void hide_previous(GraphInstruction& instruction) {
        if (instruction.inst.guard == ptx::no_id || instruction.previous.empty()) return;
        const Need own = lanes_of_guard(instruction.inst);
        const FewValues results = definitions(graph_, instruction);
        for (std::size_t i = 0; i < results.size(); ++i) {
            const Need& how = needs_[results[i]];
            if (how.kind != Need::Kind::none && how != own) continue;
            if (graph_.values[instruction.previous[i]].is_undefined) continue;
            instruction.previous[i] = new_value(graph_, graph_.values[results[i]].type, no_block);
            graph_.values.back().is_undefined = true;
            changed_ = true;
        }
    }

    /// All lanes that look at what the instruction computes or does.
    Need lanes_that_see(const GraphInstruction& instruction) const {
        if (instruction.inst.guard != ptx::no_id) return lanes_of_guard(instruction.inst);
        const Need always{Need::Kind::always};
        if (!is_computed(instruction.inst)) return always;
        Need all;
        for (const ValueId result : definitions(graph_, instruction)) {
            const Need& how = needs_[result];
            if (how.kind == Need::Kind::none) continue;
            if (all.kind != Need::Kind::none && all != how) return always;
            all = how;
        }
        return all;
    }

    ValueId resolved(ValueId value, const Need& how) const {
        for (unsigned step = 0; step < 64; ++step) {
            if (value >= made_.size() || made_[value].instruction == nullptr) break;
            const Definition& definition = made_[value];
            const GraphInstruction& instruction = *definition.instruction;
            const ptx::Instruction& inst = instruction.inst;
            ValueId side = no_value;
            if (is_choice(inst)) {
                const Need first = lanes_of_choice(inst);
                if (first != how && other(first) != how) break;
                const Operand& operand = inst.operands[first == how ? 1 : 2];
                if (operand.kind == Operand::Kind::reg && !operand.negated) side = operand.index;
            } else if (!instruction.previous.empty()) {
                const Need own = lanes_of_guard(inst);
                const bool is_copy = inst.form == FormId::mov && inst.operand_count == 2 &&
                                     inst.operands[1].kind == Operand::Kind::reg && !inst.operands[1].negated;
                if (other(own) == how)
                    side = instruction.previous[definition.place];
                else if (own == how && is_copy)
                    side = inst.operands[1].index;
            }
            if (side == no_value || graph_.values[side].type != graph_.values[value].type) break;
            value = side;
        }
        return value;
    }

    void resolve_operands(GraphInstruction& instruction) {
        const Need how = lanes_that_see(instruction);
        if (how.kind != Need::Kind::under_guard) return;
        for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
            if (is_definition || graph_.values[operand.index].type == ptx::ScalarType::pred) return;
            const ValueId side = resolved(operand.index, how);
            changed_ = changed_ || side != operand.index;
            operand.index = side;
        });
    }

    FunctionGraph& graph_;
    std::vector<Need> needs_;      ///< by value
    std::vector<Definition> made_; ///< by value
    std::vector<ValueId> work_;
    bool changed_ = false;
};

} // namespace

bool resolve_needed_lanes(FunctionGraph& graph) {
    return NeededLanes(graph).run();
}

} // namespace ptarmigan::translator
