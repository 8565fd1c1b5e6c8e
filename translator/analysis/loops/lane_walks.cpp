// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/lane_walks.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/memory/computed_numbers.h"

#include <algorithm>

namespace ptarmigan::translator {

LaneWalks::LaneWalks(const FunctionGraph& graph)
    : graph_(graph), definitions_(definitions_of(graph)), computed_(computed_numbers(graph)) {}

bool LaneWalks::loads_more_than(double share, const LoopInfo& loop) const {
    unsigned gathers = 0, total = 0;
    for (BlockId block : loop.blocks)
        for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
            ++total;
            const ptx::Operand& address = instruction.inst[ptx::Role::a];
            gathers += has_effect(instruction.inst, ptx::Effects::load) &&
                       address.kind == ptx::Operand::Kind::address && address.base == ptx::Operand::Base::reg &&
                       graph_.values[address.index].shape.is_varying();
        }
    return gathers > share * total;
}

bool LaneWalks::lanes_leave_apart(const LoopInfo& loop) const {
    return loop.divergent_exit && !leaves_at_end_of_range(loop);
}

bool LaneWalks::is_innermost(const LoopInfo& loop) const {
    return std::none_of(graph_.forest.loops.begin(), graph_.forest.loops.end(), [&](const LoopInfo& other) {
        return other.parent != no_loop && &graph_.forest.loops[other.parent] == &loop;
    });
}

/// In the second of two loops that an unrolled one became i is not affine any more.
bool LaneWalks::leaves_at_end_of_range(const LoopInfo& loop) const {
    auto is_inside = [&](BlockId block) {
        return std::find(loop.blocks.begin(), loop.blocks.end(), block) != loop.blocks.end();
    };
    for (BlockId id : loop.blocks) {
        const Block& block = graph_.blocks[id];
        if (std::all_of(block.successors.begin(), block.successors.end(), is_inside)) continue;
        if (block.terminator.kind != Terminator::Kind::branch) return false;
        const ValueId condition = block.terminator.condition;
        if (graph_.values[condition].shape.is_uniform()) continue;
        const GraphInstruction* test = definitions_[condition];
        if (!test || test->inst.guard != ptx::no_id) return false;
        for (unsigned i = 1; i < test->inst.operand_count; ++i) {
            const ptx::Operand& operand = test->inst.operands[i];
            if (operand.kind == ptx::Operand::Kind::imm || operand.kind == ptx::Operand::Kind::none) continue;
            if (operand.kind != ptx::Operand::Kind::reg || !computed_[operand.index]) return false;
        }
    }
    return true;
}

} // namespace ptarmigan::translator
