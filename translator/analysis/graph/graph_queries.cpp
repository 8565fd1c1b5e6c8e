// SPDX-License-Identifier: Apache-2.0
// Walks over operands, by the destination flags of the instruction's row.
#include "translator/analysis/graph/graph_queries.h"

namespace ptarmigan::translator {

FewValues definitions(const FunctionGraph& graph, const GraphInstruction& instruction) {
    using Kind = ptx::Operand::Kind;
    FewValues result;
    const ptx::Instruction& inst = instruction.inst;
    const std::span<const ptx::OperandInfo> infos = ptx::form_info(inst.form).operands;
    for (unsigned i = 0; i < inst.operand_count; ++i) { // a base of an address is a use in a destination's place, too
        if (!infos[i].is_destination) continue;
        const ptx::Operand& operand = inst.operands[i];
        if (operand.kind == Kind::reg) result.push_back(operand.index);
        if (!operand.has_elements()) continue;
        for (std::uint32_t element = operand.first; element < operand.first + operand.count; ++element)
            if (graph.pool[element].kind == Kind::reg) result.push_back(graph.pool[element].index);
    }
    return result;
}

std::vector<const GraphInstruction*> definitions_of(const FunctionGraph& graph) {
    std::vector<const GraphInstruction*> result(graph.values.size(), nullptr);
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : definitions(graph, instruction)) result[value] = &instruction;
    return result;
}

FewValues uses(const FunctionGraph& graph, const GraphInstruction& instruction) {
    FewValues result;
    ptx::for_each_register(instruction.inst, graph.pool, [&](const ptx::Operand& operand, bool definition) {
        if (!definition) result.push_back(operand.index);
    });
    if (instruction.inst.guard != ptx::no_id) result.push_back(instruction.inst.guard);
    for (ValueId value : instruction.previous) result.push_back(value);
    return result;
}

ptx::Effects effects_but_of_assertions(const FunctionGraph& graph) {
    ptx::Effects effects = ptx::Effects::pure;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (!is_assertion(graph, instruction.inst))
                effects = effects | ptx::form_info(instruction.inst.form).effects;
    return effects;
}

} // namespace ptarmigan::translator
