// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/graph/split_block.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/own_company.h"

#include <algorithm>

namespace ptarmigan::translator {

void split_block(FunctionGraph& graph, BlockId id, std::size_t first) {
    const auto rest_id = BlockId(graph.blocks.size());
    Block& rest = graph.blocks.emplace_back();
    Block& block = graph.blocks[id];
    const auto from = block.instructions.begin() + static_cast<std::ptrdiff_t>(first);
    rest.instructions.assign(std::make_move_iterator(from), std::make_move_iterator(block.instructions.end()));
    block.instructions.erase(from, block.instructions.end());
    rest.terminator = block.terminator;
    rest.successors = std::move(block.successors);
    rest.ends_with_barrier = block.ends_with_barrier;
    rest.predecessors = {id};
    block.terminator = {};
    block.terminator.kind = Terminator::Kind::jump;
    block.terminator.location = rest.terminator.location;
    block.successors = {rest_id};
    block.ends_with_barrier = false;
    if (graph.exit_block == id) graph.exit_block = rest_id;
    for (BlockId successor : rest.successors)
        std::replace(graph.blocks[successor].predecessors.begin(), graph.blocks[successor].predecessors.end(), id,
                     rest_id);
    for (LoopInfo& loop : graph.forest.loops) {
        if (loop.latch == id) loop.latch = rest_id;
        if (loop.preheader == id) loop.preheader = rest_id;
    }
    for (const GraphInstruction& instruction : rest.instructions)
        for (ValueId value : definitions(graph, instruction)) graph.values[value].block = rest_id;
    LoopForest& forest = graph.forest;
    forest.loop_of.push_back(forest.loop_of[id]);
    for (std::uint32_t loop = forest.loop_of[id]; loop != no_loop; loop = forest.loops[loop].parent)
        forest.loops[loop].blocks.push_back(rest_id);
}

bool split_before_gatherings(FunctionGraph& graph) {
    using ptx::Effects;
    bool changed = false;
    for (BlockId block = 0; block < graph.blocks.size(); ++block) { // those that are split off, too
        const std::vector<GraphInstruction>& instructions = graph.blocks[block].instructions;
        bool writes = false;
        OwnCompany is_of_active_lanes; // for which nobody gathers
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const ptx::Instruction& inst = instructions[i].inst;
            const bool is_own = is_of_active_lanes(inst);
            if (writes && !is_own && has_effect(inst, Effects::convergent | Effects::barrier | Effects::waits)) {
                split_block(graph, block, i);
                changed = true;
                break;
            }
            writes = writes || has_effect(inst, Effects::store | Effects::atomic | Effects::async | Effects::call);
        }
    }
    return changed;
}

} // namespace ptarmigan::translator
