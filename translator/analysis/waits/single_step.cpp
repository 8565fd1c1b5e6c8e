// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/single_step.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

/// Does more than to compute values.
bool acts(const Block& block) {
    return std::any_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& instruction) {
        return ptx::form_info(instruction.inst.form).effects != ptx::Effects::pure;
    });
}

/// By block: whether it acts, or one does that lies behind it.
std::vector<bool> acting(const FunctionGraph& graph, const RegionGraph& region) {
    std::vector<bool> result(graph.blocks.size(), false);
    std::vector<BlockId> work;
    for (const BlockId block : region.order)
        if (acts(graph.blocks[block])) work.push_back(block);
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        if (result[block]) continue;
        result[block] = true;
        work.insert(work.end(), region.predecessors[block].begin(), region.predecessors[block].end());
    }
    return result;
}

/// When lanes come to a barrier, in the order that blocks have without any, others may be on their way to the end with
/// something left to do.
bool may_be_passed(const FunctionGraph& graph) {
    const RegionGraph region = region_graph(graph, whole_graph(graph));
    if (!region.reducible) return true;
    std::vector<bool> divergent(graph.blocks.size(), false);
    for (const BlockId block : region.order) divergent[block] = is_cta_divergent_branch(graph, block);
    const PendingFlow flow = simulate(region, divergent);
    const std::vector<bool> acts = acting(graph, region);
    return std::any_of(region.order.begin(), region.order.end(), [&](BlockId block) {
        const std::vector<std::uint32_t>& waiting = flow.pending[region.position[block]];
        return graph.blocks[block].ends_with_barrier &&
               std::any_of(waiting.begin(), waiting.end(),
                           [&](std::uint32_t position) { return acts[region.order[position]]; });
    });
}

} // namespace

bool drop_barriers_of_single_step(FunctionGraph& graph, const BarrierPlan& plan) {
    const auto stays = [&](BlockId block) {
        return has_effect(graph.blocks[block].instructions.back().inst, ptx::Effects::async);
    };
    // All or none: otherwise blocks have another order than the one that was looked at.
    if (plan.regions.size() < 2 || std::any_of(plan.resume_of.begin() + 1, plan.resume_of.end(), stays) ||
        may_be_passed(graph))
        return false;
    for (std::size_t region = 1; region < plan.regions.size(); ++region) {
        Block& block = graph.blocks[plan.resume_of[region]];
        block.instructions.pop_back();
        block.ends_with_barrier = false;
    }
    return true;
}

} // namespace ptarmigan::translator
