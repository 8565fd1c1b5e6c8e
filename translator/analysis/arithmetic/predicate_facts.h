// SPDX-License-Identifier: Apache-2.0
// What a predicate's value says about others: inversions, conjunctions and disjunctions.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <boost/container/small_vector.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace ptarmigan::translator {

/// A predicate, which is no inversion of another one, and its value.
struct PredicateFact {
    ValueId predicate = no_value;
    bool holds = true;
    bool operator==(const PredicateFact&) const = default;
};
using PredicateFacts = boost::container::small_vector<PredicateFact, 8>;

/// Which instruction defines a value, and as which of its results. Nothing for phis, constants and undefined values.
class ValueDefinitions {
public:
    struct Definition {
        const GraphInstruction* instruction = nullptr;
        std::size_t place = 0; ///< among the instruction's results
    };
    explicit ValueDefinitions(const FunctionGraph& graph);
    const Definition& operator[](ValueId value) const { return definitions_[value]; }

    /// Without inversions: the value, and whether it is inverted.
    std::pair<ValueId, bool> plain(ValueId value) const;
    /// What follows from `value` being `holds`: of a conjunction that is true, and of a disjunction that is false, the
    /// parts too. Adds to `facts` what is not there.
    void assume(ValueId value, bool holds, PredicateFacts& facts, unsigned depth = 0) const;

    /// What a choice (selp) or a guarded copy leaves where `is_known`(predicate), an optional bool, says which it is;
    /// `value` itself where nothing is known.
    template <typename Known> ValueId resolved(ValueId value, const Known& is_known) const {
        for (unsigned step = 0; step < 64; ++step) {
            const ValueId other = source(value, is_known);
            if (other == no_value || graph_.values[other].type != graph_.values[value].type) break;
            value = other;
        }
        return value;
    }

private:
    template <typename Known> ValueId source(ValueId value, const Known& is_known) const {
        const auto [instruction, place] = definitions_[value];
        if (instruction == nullptr) return no_value;
        const ptx::Instruction& inst = instruction->inst;
        const bool is_choice =
            inst.form == ptx::FormId::selp && inst.guard == ptx::no_id && is_predicate(inst.operands[3]);
        if (!is_choice && instruction->previous.empty()) return no_value;
        const auto [predicate, inverted] = plain(is_choice ? inst.operands[3].index : inst.guard);
        const std::optional<bool> known = is_known(predicate);
        if (!known) return no_value;
        const bool holds = *known != ((is_choice ? inst.operands[3].negated : inst.guard_negated) != inverted);
        if (is_choice) return plain_source(inst.operands[holds ? 1 : 2]);
        if (!holds) return instruction->previous[place];
        return inst.form == ptx::FormId::mov && inst.operand_count == 2 ? plain_source(inst.operands[1]) : no_value;
    }
    static ValueId plain_source(const ptx::Operand& operand) {
        return operand.kind == ptx::Operand::Kind::reg && !operand.negated ? operand.index : no_value;
    }
    bool is_predicate(const ptx::Operand& operand) const;

    const FunctionGraph& graph_;
    std::vector<Definition> definitions_; ///< by value
};

} // namespace ptarmigan::translator
