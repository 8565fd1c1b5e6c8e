// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/graph/copies.h"

#include "translator/analysis/graph/graph_queries.h"

namespace ptarmigan::translator {

using ptx::Operand;

ValueId Copies::add(ValueId value, BlockId block) {
    SsaValue copy = graph_.values[value];
    copy.block = block;
    copy.is_phi = false;
    graph_.values.push_back(std::move(copy));
    return names_[value] = ValueId(graph_.values.size() - 1);
}

GraphInstruction Copies::copy(const GraphInstruction& instruction) {
    GraphInstruction result = instruction;
    for (unsigned i = 0; i < result.inst.operand_count; ++i) {
        Operand& operand = result.inst.operands[i];
        if (!operand.has_elements()) continue;
        const std::uint32_t first = operand.first;
        operand.first = std::uint32_t(graph_.pool.size());
        for (std::uint32_t e = 0; e < operand.count; ++e) {
            const Operand element = graph_.pool[first + e];
            graph_.pool.push_back(element);
        }
    }
    for_each_register(graph_, result, [&](Operand& operand, bool) { operand.index = name(operand.index); });
    if (result.inst.guard != ptx::no_id) result.inst.guard = name(result.inst.guard);
    for (ValueId& value : result.previous) value = name(value);
    return result;
}

} // namespace ptarmigan::translator
