// SPDX-License-Identifier: Apache-2.0
// Walks over operands, by the destination flags of the instruction's row.
#include "translator/analysis/graph/graph_queries.h"

#include "frontend/ptx/queries.h"

namespace ptarmigan::translator {
void for_each_register(FunctionGraph& graph, GraphInstruction& instruction,
                       const std::function<void(ptx::Operand&, bool)>& fn) {
    ptx::for_each_register(instruction.inst, graph.pool, fn);
}

void for_each_register(const FunctionGraph& graph, const GraphInstruction& instruction,
                       const std::function<void(const ptx::Operand&, bool)>& fn) {
    ptx::for_each_register(instruction.inst, graph.pool, fn);
}

std::vector<ValueId> definitions(const FunctionGraph& graph, const GraphInstruction& instruction) {
    std::vector<ValueId> result;
    ptx::for_each_register(instruction.inst, graph.pool, [&](const ptx::Operand& operand, bool definition) {
        if (definition) result.push_back(operand.index);
    });
    return result;
}

std::vector<ValueId> uses(const FunctionGraph& graph, const GraphInstruction& instruction) {
    std::vector<ValueId> result;
    ptx::for_each_register(instruction.inst, graph.pool, [&](const ptx::Operand& operand, bool definition) {
        if (!definition) result.push_back(operand.index);
    });
    if (instruction.inst.guard != ptx::no_id) result.push_back(instruction.inst.guard);
    for (ValueId value : instruction.previous) result.push_back(value);
    return result;
}

} // namespace ptarmigan::translator
