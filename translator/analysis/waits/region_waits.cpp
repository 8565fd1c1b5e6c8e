// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/region_waits.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/analysis/waits/descending_waits.h"
#include "translator/analysis/waits/spin_loops.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;
using ptx::StateSpace;

/// Others may see that it was executed.
bool is_visible(const ptx::Instruction& inst) {
    if (has_effect(inst, Effects::atomic | Effects::async | Effects::call)) return true;
    const bool is_own = inst.space == StateSpace::local || inst.space == StateSpace::param;
    return has_effect(inst, Effects::store) && !is_own;
}

class LaneWaits {
public:
    LaneWaits(const FunctionGraph& graph, const RegionView& view, const std::vector<bool>& waits,
              const DescendingWaits& descending)
        : graph_(graph), waits_(waits), descending_(descending), region_(region_graph(graph, view)) {}

    bool are_apart(unsigned width) const {
        if (!region_.reducible) return false;
        std::vector<bool> divergent(graph_.blocks.size(), false);
        for (BlockId block : region_.order) divergent[block] = width > 1 && is_divergent_branch(graph_, block);
        const PendingFlow flow = simulate(region_, divergent);
        return std::all_of(region_.forest.loops.begin(), region_.forest.loops.end(), [&](const LoopInfo& loop) {
            const std::uint32_t around = loop_around(graph_, loop);
            return around == no_loop || !waits_[around] || may_stand_still(loop, around, flow);
        });
    }

private:
    /// Lanes may go round in the loop while those that are elsewhere stand still.
    bool may_stand_still(const LoopInfo& loop, std::uint32_t around, const PendingFlow& flow) const {
        return std::all_of(loop.blocks.begin(), loop.blocks.end(), [&](BlockId block) {
            const auto& instructions = graph_.blocks[block].instructions;
            const auto& pending = flow.pending[region_.position[block]];
            return std::all_of(instructions.begin(), instructions.end(),
                               [&](const GraphInstruction& i) { return only_tries(i.inst, loop); }) &&
                   std::all_of(pending.begin(), pending.end(), [&](std::uint32_t held_back) {
                       return ends_unawaited(region_.order[held_back], around);
                   });
        });
    }

    bool is_from_outside(const Operand& operand, const LoopInfo& loop) const {
        if (operand.kind != Operand::Kind::reg) return true;
        const BlockId block = graph_.values[operand.index].block;
        return block == no_block || std::find(loop.blocks.begin(), loop.blocks.end(), block) == loop.blocks.end();
    }

    /// Executed again and again it changes nothing that it would have to take back: no write, or one that takes a lock.
    bool only_tries(const ptx::Instruction& inst, const LoopInfo& loop) const {
        if (!is_visible(inst) || (has_effect(inst, Effects::atomic) && leaves_memory(graph_, inst))) return true;
        const bool takes = has_effect(inst, Effects::atomic) && (inst.has(Modifier::cas) || inst.has(Modifier::exch));
        return takes && is_from_outside(inst[Role::b], loop) && is_from_outside(inst[Role::c], loop);
    }

    /// From there to the barrier behind the region, or the kernel's end, nothing is done that others see, or that those
    /// who wait wait for.
    bool ends_unawaited(BlockId first, std::uint32_t loop) const {
        std::vector<bool> seen(graph_.blocks.size(), false);
        std::vector<BlockId> work{first};
        bool acts = false, orders = false;
        while (!work.empty()) {
            const BlockId block = work.back();
            work.pop_back();
            if (seen[block]) continue;
            seen[block] = true;
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
                const ptx::Instruction& inst = instruction.inst;
                orders = orders || is_fence_of_all(inst);
                if (!is_visible(inst)) continue;
                acts = true;
                if (!descending_.may_come_late(inst, block, loop)) return false;
            }
            if (acts && orders) return false;                   // the host may look, too
            const auto& successors = region_.successors[block]; // ends where the region is cut
            work.insert(work.end(), successors.begin(), successors.end());
        }
        return true;
    }

    const FunctionGraph& graph_;
    const std::vector<bool>& waits_;
    const DescendingWaits& descending_;
    const RegionGraph region_;
};

} // namespace

std::uint32_t loop_around(const FunctionGraph& graph, const LoopInfo& region_loop) {
    const LoopForest& forest = graph.forest;
    std::uint32_t around = forest.loop_of[region_loop.header];
    const auto contains_all = [&] {
        return std::all_of(region_loop.blocks.begin(), region_loop.blocks.end(),
                           [&](BlockId block) { return forest.inside(forest.loop_of[block], around); });
    };
    while (around != no_loop && !contains_all()) around = forest.loops[around].parent;
    return around;
}

bool lanes_wait_apart(const FunctionGraph& graph, const BlockShape& block, const std::vector<RegionView>& regions,
                      const std::vector<bool>& waits, unsigned width) {
    const DescendingWaits descending(graph, block, waits);
    return std::all_of(regions.begin(), regions.end(), [&](const RegionView& view) {
        return LaneWaits(graph, view, waits, descending).are_apart(width);
    });
}

void choose_waiting_turns(FunctionGraph& graph, const std::vector<bool>& waits) {
    for (std::size_t loop = 0; loop < graph.forest.loops.size(); ++loop)
        graph.forest.loops[loop].waits_in_turns = waits[loop];
}

} // namespace ptarmigan::translator
