// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/predicate_facts.h"

#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::FormId;
using ptx::Operand;

ValueDefinitions::ValueDefinitions(const FunctionGraph& graph) : graph_(graph), definitions_(graph.values.size()) {
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const FewValues results = definitions(graph, instruction);
            for (std::size_t i = 0; i < results.size(); ++i) definitions_[results[i]] = {&instruction, i};
        }
}

bool ValueDefinitions::is_predicate(const Operand& operand) const {
    return operand.kind == Operand::Kind::reg && graph_.values[operand.index].type == ptx::ScalarType::pred;
}

std::pair<ValueId, bool> ValueDefinitions::plain(ValueId value) const {
    bool inverted = false;
    for (unsigned step = 0; step < 8; ++step) {
        const GraphInstruction* instruction = definitions_[value].instruction;
        if (instruction == nullptr) break;
        const ptx::Instruction& inst = instruction->inst;
        if (inst.form != FormId::not_bits || inst.guard != ptx::no_id || !is_predicate(inst.operands[1])) break;
        inverted = inverted != !inst.operands[1].negated;
        value = inst.operands[1].index;
    }
    return {value, inverted};
}

void ValueDefinitions::assume(ValueId value, bool holds, PredicateFacts& facts, unsigned depth) const {
    const auto [base, inverted] = plain(value);
    holds = holds != inverted;
    const ValueId predicate = base;
    if (std::any_of(facts.begin(), facts.end(), [&](const PredicateFact& f) { return f.predicate == predicate; }))
        return;
    facts.push_back({predicate, holds});
    const GraphInstruction* instruction = definitions_[predicate].instruction;
    if (instruction == nullptr || depth > 8) return;
    const ptx::Instruction& inst = instruction->inst;
    if (inst.form != (holds ? FormId::and_bits : FormId::or_bits) || inst.guard != ptx::no_id) return;
    if (graph_.values[predicate].type != ptx::ScalarType::pred) return;
    for (unsigned i = 1; i < inst.operand_count; ++i)
        if (is_predicate(inst.operands[i]))
            assume(inst.operands[i].index, holds != inst.operands[i].negated, facts, depth + 1);
}

} // namespace ptarmigan::translator
