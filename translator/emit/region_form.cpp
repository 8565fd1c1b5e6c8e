// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/region_form.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/emit/known_in_steps.h"
#include "translator/emit/lane_regions.h"
#include "translator/emit/region_driver.h"
#include "translator/emit/region_functions.h"
#include "translator/emit/region_plan.h"
#include "translator/kernel_abi.h"

#include <algorithm>
#include <functional>

namespace ptarmigan::translator {

LinearPlan plan_region(const KernelUnit& unit, const FunctionGraph& graph, const RegionView& view) {
    if (unit.width > 1) return plan_linearization(graph, view);
    LinearPlan plan;
    plan.region = view;
    if (unit.gives_turns) plan.loops = region_graph(graph, view).forest.loops;
    plan.waiting_at_latch.resize(plan.loops.size());
    plan.order = view.blocks;
    plan.blocks.resize(graph.blocks.size());
    for (BlockId id : view.blocks) {
        plan.blocks[id].jump_to = graph.blocks[id].successors;
        plan.blocks[id].blend.assign(graph.blocks[id].phis.size(), false);
    }
    return plan;
}

LoopAccumulators loop_accumulators(const KernelUnit& unit, const FunctionGraph& graph, const ProductGroups& groups,
                                   llvm::ArrayRef<LinearPlan> plans) {
    if (unit.width != abi::warp_size || unit.divergence == DivergenceForm::program_counters) return {};
    return LoopAccumulators(graph, groups, [&](BlockId header) {
        return std::any_of(plans.begin(), plans.end(), [&](const LinearPlan& plan) {
            if (!plan.reducible) return true;
            const std::vector<bool>& blends = plan.blocks[header].blend;
            return std::find(blends.begin(), blends.end(), true) != blends.end();
        });
    });
}

namespace {

/// Blocks of a region from which `goal` can be reached inside it.
std::vector<bool> reaching(const FunctionGraph& graph, const RegionView& v, const std::function<bool(BlockId)>& goal) {
    std::vector<bool> reaches(graph.blocks.size(), false);
    for (bool changed = true; changed;) {
        changed = false;
        for (BlockId block : v.blocks) {
            if (reaches[block]) continue;
            bool now = goal(block);
            if (!is_cut(v, block))
                for (BlockId successor : graph.blocks[block].successors) now |= reaches[successor];
            if (now) reaches[block] = changed = true;
        }
    }
    return reaches;
}

/// True if at some barrier a step or a lane may have exited while others wait.
bool steps_may_exit_early(const FunctionGraph& graph, const BarrierPlan& barriers) {
    if (barriers.regions.size() < 2) return false;
    for (const RegionView& v : barriers.regions) {
        std::vector<bool> to_exit = reaching(graph, v, [&](BlockId b) { return b == graph.exit_block; });
        std::vector<bool> to_cut = reaching(graph, v, [&](BlockId b) { return is_cut(v, b); });
        for (BlockId block : v.blocks)
            if (to_exit[block] && to_cut[block] && is_cta_divergent_branch(graph, block)) return true;
    }
    return false;
}

/// What is kept needs no places of its own at barriers and turns.
void keep_accumulators(const KernelUnit& unit, const FunctionGraph& graph, RegionPlan& plan) {
    plan.accumulators = loop_accumulators(unit, graph, plan.products, plan.linear);
    const auto is_kept = [&](ValueId value) { return plan.accumulators.place(value) != nullptr; };
    for (auto& live : plan.barriers.live_in) std::erase_if(live, is_kept);
    for (auto& turns : plan.turns)
        for (TurnPoint& point : turns) std::erase_if(point.live, is_kept);
}

void choose_lanes(const KernelUnit& unit, const FunctionGraph& graph, RegionPlan& plan) {
    plan.lane_by_lane.assign(plan.barriers.regions.size(), false);
    if (plan.counters || unit.width == 1 || unit.options.optimization == Optimization::least ||
        unit.options.random_schedule || unit.options.checked_memory || unit.partial_last_step() || unit.runs_in_rows ||
        unit.gives_turns || plan.accumulators.bytes() != 0 || steps_may_exit_early(graph, plan.barriers))
        return;
    plan.lane_by_lane = choose_lane_regions(graph, unit.shape, plan.barriers);
    for (std::size_t region = 0; region < plan.lane_by_lane.size(); ++region)
        if (!plan.turns[region].empty()) plan.lane_by_lane[region] = false;
}

RegionPlan plan_regions(const KernelUnit& unit, const FunctionGraph& graph, const BarrierPlan& barriers,
                        KnownInSteps& known) {
    RegionPlan plan(graph);
    plan.barriers = barriers;
    plan.counters = unit.width > 1 && unit.divergence == DivergenceForm::program_counters;
    if (!plan.counters)
        for (const RegionView& view : barriers.regions) plan.linear.push_back(plan_region(unit, graph, view));
    plan.turns.resize(plan.count());
    for (std::size_t region = 0; region < plan.linear.size(); ++region)
        if (unit.step_count() > 1) plan.turns[region] = plan_turns(graph, plan.linear[region]);
    keep_accumulators(unit, graph, plan);
    choose_lanes(unit, graph, plan);
    std::vector<TurnPoint> all_turns;
    for (const auto& turns : plan.turns) all_turns.insert(all_turns.end(), turns.begin(), turns.end());
    plan.frames = layout_frames(graph, plan.barriers, all_turns, unit.width, steps_may_exit_early(graph, plan.barriers),
                                [&](ValueId value) { return known.number(value) || known.masks(value); });
    plan.step_size = plan.frames.step_size;
    if (plan.count() > 1 || !all_turns.empty()) {
        plan.accumulators_offset = plan.frames.step_size;
        plan.step_size += plan.accumulators.bytes();
    }
    return plan;
}

} // namespace

std::uint32_t emit_region_form(KernelUnit& unit, const FunctionGraph& graph, const BarrierPlan& barriers) {
    KnownInSteps known(unit, graph);
    const RegionPlan plan = plan_regions(unit, graph, barriers, known);
    emit_region_driver(unit, graph, plan, emit_region_functions(unit, graph, plan, known));
    return plan.step_size;
}

} // namespace ptarmigan::translator
