// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/settle_races.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/split_block.h"
#include "translator/analysis/waits/race_points.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

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

bool has_races(const FunctionGraph& graph, const BlockShape& block, unsigned width, const CalledFunctions& called) {
    const RacePoints races = race_points(graph, block, width, MeetingPoints::for_anyone, called);
    return !races.points.empty() || races.left > 0;
}

} // namespace ptarmigan::translator
