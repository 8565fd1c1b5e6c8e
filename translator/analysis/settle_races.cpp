// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/settle_races.h"

#include "translator/analysis/form_queries.h"
#include "translator/analysis/graph_queries.h"
#include "translator/analysis/race_points.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

/// The instructions from `first` on move to a block of their own, the last one of the graph; the block keeps its number
/// and its predecessors.
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

/// A barrier like the graph's others.
GraphInstruction barrier_of(const FunctionGraph& graph) {
    const auto block =
        std::find_if(graph.blocks.begin(), graph.blocks.end(), [](const Block& b) { return b.ends_with_barrier; });
    return block->instructions.back();
}

SourceLocation location_at(const Block& block, std::size_t index) {
    if (index > 0) return block.instructions[index - 1].inst.location;
    return block.instructions.empty() ? block.terminator.location : block.instructions[0].inst.location;
}

/// Behind these instructions others have their turn.
GraphInstruction turn() {
    GraphInstruction result;
    ptx::Instruction& inst = result.inst;
    inst.form = ptx::FormId::nanosleep;
    inst.operand_count = 1;
    inst.types[0] = ptx::ScalarType::u32;
    inst.operands[0].kind = ptx::Operand::Kind::imm;
    inst.operands[0].type = ptx::ScalarType::u32;
    return result;
}

} // namespace

SettledRaces settle_races(FunctionGraph& graph, const BlockShape& block, unsigned width, Meeting meeting,
                          const CalledFunctions& called) {
    const bool barriers = meeting == Meeting::barrier;
    RacePoints races = race_points(graph, block, width,
                                   barriers                   ? MeetingPoints::for_all
                                   : meeting == Meeting::turn ? MeetingPoints::for_anyone
                                                              : MeetingPoints::where_likely,
                                   called);
    // From the last one on, so that those before keep their places.
    std::reverse(races.points.begin(), races.points.end());
    for (const GraphPoint& point : races.points) {
        GraphInstruction instruction = barriers ? barrier_of(graph) : turn();
        Block& before = graph.blocks[point.block];
        instruction.inst.location = location_at(before, point.index);
        if (!barriers) {
            before.instructions.insert(before.instructions.begin() + std::ptrdiff_t(point.index),
                                       std::move(instruction));
            continue;
        }
        split_block(graph, point.block, point.index);
        graph.blocks[point.block].instructions.push_back(std::move(instruction));
        graph.blocks[point.block].ends_with_barrier = true;
    }
    return {!races.points.empty(), races.left > 0};
}

} // namespace ptarmigan::translator
