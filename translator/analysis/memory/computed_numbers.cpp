// SPDX-License-Identifier: Apache-2.0
// Optimistic: all that pure integer instructions make counts, until an operand does not.
#include "translator/analysis/memory/computed_numbers.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {

std::vector<bool> computed_numbers(const FunctionGraph& graph) {
    std::vector<bool> computed(graph.values.size(), true);
    const auto refute = [&](ValueId value) {
        const bool was = computed[value] && graph.values[value].shape.is_varying();
        if (was) computed[value] = false;
        return was;
    };
    const auto all_computed = [&](const auto& values) {
        return std::all_of(values.begin(), values.end(), [&](ValueId value) { return computed[value]; });
    };
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const bool pure = ptx::form_info(instruction.inst.form).effects == ptx::Effects::pure;
            for (ValueId value : definitions(graph, instruction))
                if (!pure || ptx::is_float(graph.values[value].type)) refute(value);
        }
    for (bool changed = true; changed;) {
        changed = false;
        for (const Block& block : graph.blocks) {
            for (const Phi& phi : block.phis)
                if (!all_computed(phi.incoming)) changed |= refute(phi.result);
            for (const GraphInstruction& instruction : block.instructions)
                if (!all_computed(uses(graph, instruction)))
                    for (ValueId value : definitions(graph, instruction)) changed |= refute(value);
        }
    }
    return computed;
}

} // namespace ptarmigan::translator
