// SPDX-License-Identifier: Apache-2.0
// One backward walk per value from its uses to its definition: linear in the size of the live ranges.
#include "translator/analysis/graph/liveness.h"

#include "translator/analysis/graph/graph_queries.h"

namespace ptarmigan::translator {

std::vector<std::vector<ValueId>> live_at_entry(const FunctionGraph& graph, const std::vector<bool>& wanted) {
    std::vector<std::vector<BlockId>> use_blocks(graph.values.size()); // blocks where the value is live at some point
    auto use = [&](BlockId block, ValueId value) {
        if (value == no_value || graph.values[value].block == no_block || graph.values[value].block == block) return;
        if (use_blocks[value].empty() || use_blocks[value].back() != block) use_blocks[value].push_back(block);
    };
    for (BlockId id = 0; id < graph.blocks.size(); ++id) {
        const Block& block = graph.blocks[id];
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : uses(graph, instruction)) use(id, value);
        use(id, block.terminator.condition);
        for (const Phi& phi : block.phis)
            for (std::size_t i = 0; i < phi.incoming.size(); ++i) use(block.predecessors[i], phi.incoming[i]);
    }
    std::vector<std::vector<ValueId>> live(graph.blocks.size());
    std::vector<ValueId> seen(graph.blocks.size(), no_value);
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        std::vector<BlockId> work = std::move(use_blocks[value]);
        while (!work.empty()) {
            BlockId block = work.back();
            work.pop_back();
            if (seen[block] == value || graph.values[value].block == block) continue;
            seen[block] = value;
            if (wanted[block]) live[block].push_back(value);
            for (BlockId p : graph.blocks[block].predecessors) work.push_back(p);
        }
    }
    return live;
}

} // namespace ptarmigan::translator
