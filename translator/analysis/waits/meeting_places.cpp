// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/meeting_places.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/own_company.h"
#include "translator/analysis/graph/split_block.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/analysis/waits/converged_waits.h"

#include <algorithm>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Role;

/// Threads meet at it: collectives with a member mask, and barriers of the CTA. Not the queries of who is here.
bool is_meeting(const ptx::Instruction& inst) {
    if (!has_effect(inst, Effects::convergent | Effects::barrier)) return false;
    return has_effect(inst, Effects::barrier) || inst[Role::membermask].kind != ptx::Operand::Kind::none;
}

class MeetingSearch {
public:
    explicit MeetingSearch(const FunctionGraph& graph)
        : graph_(graph), meetings_(graph.blocks.size()), divergent_(graph.blocks.size(), false) {}

    bool run() {
        bool any = false;
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            OwnCompany is_of_active_lanes;
            for (const GraphInstruction& instruction : graph_.blocks[id].instructions) {
                const ptx::Instruction& inst = instruction.inst;
                if (is_of_active_lanes(inst) || !is_meeting(inst)) continue;
                meetings_[id].push_back(&inst);
                any = true;
            }
        }
        if (!any) return false;
        RegionGraph region = region_graph(graph_, whole_graph(graph_));
        if (!region.reducible) return true; // who waits where is not known
        for (BlockId block : region.order) divergent_[block] = is_divergent_branch(graph_, block);
        PendingFlow flow = simulate(region, divergent_);
        Edges backward = reverse_edges(region.successors);
        DominatorTree post(backward, region.successors, graph_.exit_block);
        for (BlockId block : region.order)
            for (const ptx::Instruction* meeting : meetings_[block])
                for (std::uint32_t waiting : flow.pending[region.position[block]])
                    if (comes_to_like(*meeting, block, region.order[waiting], region.successors, post)) return true;
        return false;
    }

private:
    std::optional<std::uint64_t> constant(const ptx::Operand& operand) const { return constant_of(graph_, operand); }
    /// Lanes at `a` and at `b` may be there for each other.
    bool may_match(const ptx::Instruction& a, const ptx::Instruction& b) const {
        if (has_effect(a, Effects::barrier) || has_effect(b, Effects::barrier))
            return has_effect(a, Effects::barrier) && has_effect(b, Effects::barrier);
        if (a.form != b.form) return false;
        const auto first = constant(a[Role::membermask]), second = constant(b[Role::membermask]);
        return !first || !second || *first == *second;
    }
    /// Lanes may pass `block` a different number of times.
    bool in_divergent_loop(BlockId block) const {
        for (std::uint32_t loop = graph_.forest.loop_of[block]; loop != no_loop;
             loop = graph_.forest.loops[loop].parent)
            if (graph_.forest.loops[loop].divergent_exit) return true;
        return false;
    }
    /// Lanes that wait at `from` while others are at `meeting` in `block` come to something that matches: before the
    /// ways join, or behind the join where not all lanes pass it equally often.
    bool comes_to_like(const ptx::Instruction& meeting, BlockId block, BlockId from, const Edges& successors,
                       const DominatorTree& post) const {
        const BlockId join = post.parent(block);
        std::vector<bool> seen(graph_.blocks.size(), false), behind_join(seen), ahead(seen);
        mark_reachable(from, no_block, successors, ahead);
        mark_reachable(join, no_block, successors, behind_join);
        mark_reachable(from, join, successors, seen);
        const std::vector<bool> apart = where_lanes_part(behind_join, successors, post);
        for (BlockId at = 0; at < graph_.blocks.size(); ++at) {
            const bool all_come = post.dominates(at, join) || !apart[at];
            const bool same_for_all = behind_join[at] && !seen[at] && all_come && !in_divergent_loop(at);
            if (!ahead[at] || (!seen[at] && !behind_join[at]) || same_for_all) continue;
            for (const ptx::Instruction* other : meetings_[at])
                if (may_match(meeting, *other)) return true;
        }
        return false;
    }
    /// Blocks to which not all lanes come that come to `region`: between a branch at which lanes part and where their
    /// ways have joined again.
    std::vector<bool> where_lanes_part(const std::vector<bool>& region, const Edges& successors,
                                       const DominatorTree& post) const {
        std::vector<bool> apart(graph_.blocks.size(), false);
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            if (!region[block] || !divergent_[block]) continue;
            std::vector<bool> influenced(graph_.blocks.size(), false);
            for (BlockId next : successors[block]) mark_reachable(next, post.parent(block), successors, influenced);
            for (BlockId at = 0; at < graph_.blocks.size(); ++at) apart[at] = apart[at] || influenced[at];
        }
        return apart;
    }
    /// Blocks that control can get to from `from` without passing `end`.
    static void mark_reachable(BlockId from, BlockId end, const Edges& successors, std::vector<bool>& marked) {
        std::vector<BlockId> work{from};
        while (!work.empty()) {
            const BlockId at = work.back();
            work.pop_back();
            if (at == no_block || at == end || marked[at]) continue;
            marked[at] = true;
            work.insert(work.end(), successors[at].begin(), successors[at].end());
        }
    }

    const FunctionGraph& graph_;
    std::vector<std::vector<const ptx::Instruction*>> meetings_; ///< by block
    std::vector<bool> divergent_;                                ///< branches at which lanes part, by block
};

} // namespace

void mark_whole_meetings(FunctionGraph& graph, bool lanes_wait) {
    const bool masks_may_differ = lanes_wait || has_queries(graph);
    PendingFlow flow;
    const LinearPlan plan = plan_linearization(graph, whole_graph(graph), flow);
    if (!plan.reducible) return;
    std::vector<bool> all_come(graph.blocks.size(), false);
    for (std::uint32_t position = 0; position < plan.order.size(); ++position) {
        const BlockId block = plan.order[position];
        const MaskSource& mask = plan.blocks[block].mask;
        const auto only_exits_at = [&](std::uint32_t elsewhere) { return only_exits(graph, plan.order[elsewhere]); };
        const std::vector<std::uint32_t>& elsewhere = flow.pending[position];
        all_come[block] = (mask.kind == MaskSource::Kind::same_as && all_come[mask.block]) ||
                          (!flow.may_be_empty[block] && std::all_of(elsewhere.begin(), elsewhere.end(), only_exits_at));
        if (!all_come[block]) continue;
        const auto is_one = [&](ValueId value) { return graph.shape_at(block, value).is_uniform(); };
        for (GraphInstruction& instruction : graph.blocks[block].instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const ptx::Operand& mask_operand = inst[Role::membermask];
            if (!is_meeting(inst) || has_effect(inst, Effects::barrier)) continue;
            if (inst.guard != ptx::no_id && !is_one(inst.guard)) continue;
            instruction.meets_whole_warp = mask_operand.kind != ptx::Operand::Kind::reg ||
                                           graph.values[mask_operand.index].is_constant ||
                                           (!masks_may_differ && is_one(mask_operand.index));
        }
    }
}

bool may_meet_elsewhere(const FunctionGraph& graph) {
    return MeetingSearch(graph).run();
}

bool asks_who_is_here(const Block& block) {
    return std::any_of(block.instructions.begin(), block.instructions.end(),
                       [](const GraphInstruction& instruction) { return is_query(instruction.inst); });
}

bool has_queries(const FunctionGraph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), asks_who_is_here);
}

bool meets_in_part(const FunctionGraph& graph) {
    std::vector<bool> is_answer(graph.values.size(), false);
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (is_query(instruction.inst) && instruction.inst.operands[0].kind == ptx::Operand::Kind::reg)
                is_answer[instruction.inst.operands[0].index] = true;
    for (const Block& block : graph.blocks) {
        OwnCompany is_of_active_lanes;
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (is_of_active_lanes(inst) || !is_meeting(inst) || has_effect(inst, Effects::barrier)) continue;
            const ptx::Operand& mask = inst[Role::membermask];
            if (!instruction.meets_whole_warp && mask.kind == ptx::Operand::Kind::reg && is_answer[mask.index])
                return true;
        }
    }
    return false;
}

bool gathers(const Block& block) {
    OwnCompany is_of_active_lanes;
    return std::any_of(block.instructions.begin(), block.instructions.end(), [&](const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if (is_of_active_lanes(inst) || is_query(inst)) return false;
        return has_effect(inst, Effects::convergent | Effects::barrier);
    });
}

const ptx::Operand* common_members(const FunctionGraph& graph, BlockId block) {
    const ptx::Operand* members = nullptr;
    for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
        const ptx::Instruction& inst = instruction.inst;
        if (!has_effect(inst, Effects::convergent | Effects::barrier | Effects::waits)) continue;
        const ptx::Operand& mask = inst[Role::membermask];
        const bool is_register = mask.kind == ptx::Operand::Kind::reg;
        if (has_effect(inst, Effects::barrier | Effects::waits) || is_query(inst) || inst.guard != ptx::no_id ||
            (!is_register && mask.kind != ptx::Operand::Kind::imm))
            return nullptr;
        if (is_register && graph.values[mask.index].block == block) return nullptr;
        if (members && (members->kind != mask.kind || members->index != mask.index || members->value != mask.value))
            return nullptr;
        members = &mask;
    }
    return members;
}

bool split_at_queries(FunctionGraph& graph) {
    bool changed = false;
    for (BlockId block = 0; block < graph.blocks.size(); ++block) { // those that are split off, too
        const std::vector<GraphInstruction>& instructions = graph.blocks[block].instructions;
        OwnCompany is_of_active_lanes;
        bool asks = false;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const ptx::Instruction& inst = instructions[i].inst;
            const bool is_own = is_of_active_lanes(inst);
            const bool begins = is_query(inst)
                                    ? !asks && i != 0
                                    : asks && !is_own && has_effect(inst, Effects::convergent | Effects::barrier);
            asks = asks || is_query(inst);
            if (!begins) continue;
            split_block(graph, block, i);
            changed = true;
            break;
        }
    }
    return changed;
}

} // namespace ptarmigan::translator
