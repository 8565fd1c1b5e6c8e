// SPDX-License-Identifier: Apache-2.0
// What narrow_upper_halves.cpp and narrow_lower_halves.cpp share: questions about 64-bit values, and making 32-bit
// ones.
#pragma once

#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <optional>

namespace ptarmigan::translator {

class HalfNarrowing {
protected:
    using FormId = ptx::FormId;
    using Operand = ptx::Operand;
    using ScalarType = ptx::ScalarType;

    explicit HalfNarrowing(FunctionGraph& graph) : graph_(graph), is_half_(graph.values.size(), false) {}

    bool is_wide(ValueId value) const {
        return ptx::bit_size(graph_.values[value].type) == 64 && !ptx::is_float(graph_.values[value].type);
    }
    bool is_wide_register(const Operand& operand) const {
        return operand.kind == Operand::Kind::reg && !operand.negated && is_wide(operand.index) &&
               ptx::bit_size(operand.type) == 64;
    }
    std::optional<std::uint64_t> constant(const Operand& operand) const { return constant_of(graph_, operand); }
    /// Of 64 bits, without a guard.
    static bool is_plain(const ptx::Instruction& inst, FormId form) {
        return inst.form == form && inst.guard == ptx::no_id && ptx::bit_size(inst.type()) == 64;
    }
    /// True if it was one.
    bool remove(ValueId value) {
        const bool was = is_half_[value];
        is_half_[value] = false;
        return was;
    }

    ValueId new_value(BlockId block, ScalarType type) {
        is_half_.push_back(false);
        return translator::new_value(graph_, type, block);
    }
    ValueId new_constant(std::uint64_t bits) {
        const ValueId value = new_value(no_block, ScalarType::b32);
        graph_.values[value].is_constant = true;
        graph_.values[value].constant = bits & 0xffffffff;
        return value;
    }
    /// Another instruction in the place of `at`.
    static GraphInstruction made(const GraphInstruction& at, FormId form, std::initializer_list<ScalarType> types,
                                 std::initializer_list<Operand> operands) {
        GraphInstruction instruction = at;
        ptx::Instruction inst;
        inst.form = form;
        inst.location = at.inst.location;
        if (form == at.inst.form) { // .lo
            inst.modifiers = at.inst.modifiers;
            inst.modifier_count = at.inst.modifier_count;
        }
        std::copy(types.begin(), types.end(), inst.types.begin());
        for (const Operand& operand : operands) inst.operands[inst.operand_count++] = operand;
        instruction.inst = inst;
        return instruction;
    }

    FunctionGraph& graph_;
    std::vector<bool> is_half_; ///< by ValueId: becomes a 32-bit number
};

} // namespace ptarmigan::translator
