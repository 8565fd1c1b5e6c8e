// SPDX-License-Identifier: Apache-2.0
// Masks, jumps and blends of a region, from the simulation in region_graph.cpp.
#include "translator/analysis/plans/plan_linearization.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/plans/region_graph.h"

#include <algorithm>
#include <stdexcept>

namespace ptarmigan::translator {

RegionView whole_graph(const FunctionGraph& graph) {
    RegionView view;
    view.entry = 0;
    view.blocks = reverse_post_order(successor_edges(graph), 0);
    view.contains.assign(graph.blocks.size(), false);
    view.cut_after.assign(graph.blocks.size(), false);
    for (BlockId block : view.blocks) view.contains[block] = true;
    return view;
}

namespace {

/// Post-dominators of the region with every back edge led to where its loop's lanes leave instead: "all lanes of D get
/// to S in the same pass, before D runs again".
DominatorTree forward_post_dominators(const RegionGraph& region) {
    BlockId count = BlockId(region.successors.size()), end = count;
    Edges forward(count + 1);
    for (BlockId block : region.order) {
        for (BlockId s : region.successors[block])
            if (!region.is_back_edge(block, s)) forward[block].push_back(s);
    }
    for (const LoopInfo& loop : region.forest.loops)
        for (BlockId block : loop.blocks)
            for (BlockId s : region.successors[block])
                if (!region.forest.inside(region.forest.loop_of[s], region.forest.loop_of[loop.header]))
                    forward[loop.latch].push_back(s);
    for (BlockId block : region.order)
        if (forward[block].empty()) forward[block].push_back(end);
    Edges backward = reverse_edges(forward);
    return DominatorTree(backward, forward, end);
}

/// Dominators of the control flow of generated code. Each block is two nodes: where control arrives (2b) and, behind
/// the test for an empty mask, its code (2b + 1).
DominatorTree control_dominators(const RegionGraph& region, const PendingFlow& flow) {
    Edges edges(region.successors.size() * 2);
    for (BlockId block : region.order) {
        edges[2 * block].push_back(2 * block + 1);
        if (flow.may_be_empty[block] && flow.skip_to[block] != no_block)
            edges[2 * block].push_back(2 * flow.skip_to[block]);
        for (BlockId to : flow.jump_to[block]) edges[2 * block + 1].push_back(2 * to);
    }
    return DominatorTree(edges, reverse_edges(edges), 2 * region.order.front());
}

class Planner {
public:
    Planner(const FunctionGraph& graph, const RegionView& view, LinearPlan& plan)
        : graph_(graph), plan_(plan), region_(region_graph(graph, view)) {}

    void run() {
        plan_.reducible = region_.reducible;
        if (!plan_.reducible) return;
        std::vector<bool> divergent(graph_.blocks.size(), false);
        for (BlockId block : region_.order) divergent[block] = is_divergent_branch(graph_, block);
        flow_ = simulate(region_, divergent);
        after_ = forward_post_dominators(region_);
        control_ = control_dominators(region_, flow_);
        plan_.order = region_.order;
        plan_.loops = region_.forest.loops;
        plan_.immediate_dominator = region_.tree.parents();
        plan_.blocks.resize(graph_.blocks.size());
        for (std::size_t l = 0; l < plan_.loops.size(); ++l) plan_.loops[l].divergent_exit = flow_.divergent_exit[l];
        for (const LoopInfo& loop : plan_.loops) {
            plan_.waiting_at_latch.emplace_back();
            for (std::uint32_t waiting : flow_.pending[region_.position[loop.latch]])
                plan_.waiting_at_latch.back().push_back(region_.order[waiting]);
        }
        for (BlockId block : region_.order) plan_block(block, divergent[block]);
    }
    PendingFlow take_flow() { return std::move(flow_); }

private:
    void plan_block(BlockId block, bool divergent);
    MaskSource mask_of(BlockId block, bool& never_empty) const;
    BlockId common_mask(BlockId block) const;
    /// Whenever control gets to `block`, `before` has run with lanes in the same pass.
    bool runs_after(BlockId block, BlockId before) const { return control_.dominates(2 * before + 1, 2 * block); }
    bool leaves_divergent_loop(BlockId from, BlockId to) const;
    /// A part of the graph, between barriers.
    bool is_cut_out() const {
        return plan_.region.entry != 0 || std::find(plan_.region.cut_after.begin(), plan_.region.cut_after.end(),
                                                    true) != plan_.region.cut_after.end();
    }

    const FunctionGraph& graph_;
    LinearPlan& plan_;
    RegionGraph region_;
    PendingFlow flow_;
    DominatorTree after_, control_;
};

bool Planner::leaves_divergent_loop(BlockId from, BlockId to) const {
    const LoopForest& forest = region_.forest;
    for (std::uint32_t loop = forest.loop_of[from]; loop != no_loop; loop = forest.loops[loop].parent) {
        if (forest.inside(forest.loop_of[to], loop)) return false;
        if (flow_.divergent_exit[loop]) return true;
    }
    return false;
}

/// `never_empty`: the block only runs in a pass in which the block it takes its mask from ran with lanes.
MaskSource Planner::mask_of(BlockId block, bool& never_empty) const {
    const LoopForest& forest = region_.forest;
    if (block == plan_.region.entry) return {MaskSource::Kind::entry, no_block};
    std::uint32_t loop = forest.loop_of[block];
    bool header = loop != no_loop && forest.loops[loop].header == block;
    if (header) {
        never_empty =
            runs_after(block, forest.loops[loop].preheader); // it jumps here with all its lanes, as the latch does
        if (flow_.divergent_exit[loop] || !never_empty) return {MaskSource::Kind::accumulated, no_block};
        return {MaskSource::Kind::same_as, forest.loops[loop].preheader};
    }
    // All lanes of D come here: D dominates, nothing leads past this block, and each time D runs so does it.
    BlockId d = region_.tree.parent(block);
    while (d != no_block && !forest.inside(loop, forest.loop_of[d])) {
        std::uint32_t outermost = forest.loop_of[d];
        while (!forest.inside(loop, forest.loops[outermost].parent)) outermost = forest.loops[outermost].parent;
        d = forest.loops[outermost].preheader;
    }
    if (d != no_block && forest.loop_of[d] == loop && after_.dominates(block, d) && runs_after(block, d)) {
        never_empty = true;
        return {MaskSource::Kind::same_as, d};
    }
    // A side of a uniform branch, entered only straight from it.
    const auto& predecessors = region_.predecessors[block];
    if (predecessors.size() == 1 && !flow_.may_be_empty[block] && !is_divergent_branch(graph_, predecessors[0]) &&
        !leaves_divergent_loop(predecessors[0], block))
        return {MaskSource::Kind::same_as, predecessors[0]};
    if (const BlockId common = common_mask(block); common != no_block) return {MaskSource::Kind::same_as, common};
    return {MaskSource::Kind::accumulated, no_block};
}

/// The block whose lanes all come here, whichever way: sides of uniform branches meet.
BlockId Planner::common_mask(BlockId block) const {
    if (flow_.may_be_empty[block] || flow_.conflict[block]) return no_block;
    const std::uint32_t loop = region_.forest.loop_of[block];
    BlockId common = no_block;
    for (BlockId from : region_.predecessors[block]) {
        if (region_.forest.loop_of[from] != loop || is_divergent_branch(graph_, from) ||
            region_.position[from] >= region_.position[block])
            return no_block;
        BlockId source = from;
        while (plan_.blocks[source].mask.kind == MaskSource::Kind::same_as) source = plan_.blocks[source].mask.block;
        if (common != no_block && common != source) return no_block;
        common = source;
    }
    return common;
}

void Planner::plan_block(BlockId block, bool divergent) {
    BlockPlan& plan = plan_.blocks[block];
    bool never_empty = false;
    plan.mask = mask_of(block, never_empty);
    plan.needs_skip_check = flow_.may_be_empty[block] && !never_empty;
    plan.skip_to = flow_.skip_to[block];
    plan.divergent_branch = divergent;
    plan.jump_to = flow_.jump_to[block];
    plan.loop = region_.forest.loop_of[block];
    for (const Phi& phi : graph_.blocks[block].phis) {
        // Lanes of several edges, or of several iterations of a loop that the edge leaves.
        bool leaves = false;
        for (BlockId from : region_.predecessors[block]) leaves = leaves || leaves_divergent_loop(from, block);
        bool blend = flow_.conflict[block] || leaves;
        // Lanes come by one edge in a pass, as the whole graph says, in which the phi has a shape. A region's own order
        // puts what is behind its end elsewhere, and the simulation takes ways together that no pass takes both.
        if (!leaves && is_cut_out() && !graph_.values[phi.result].shape.is_varying()) blend = false;
        if (blend && !graph_.values[phi.result].shape.is_varying()) {
            // Only where all defined incoming values are one does a join under divergence keep a shape.
            ValueId only = no_value;
            for (ValueId value : phi.incoming) {
                if (value == phi.result || value == only) continue;
                if (only != no_value)
                    throw std::logic_error("a join of diverged lanes has a shape: " + graph_.values[phi.result].name);
                only = value;
            }
            blend = false;
        }
        plan.blend.push_back(blend);
    }
}

} // namespace

LinearPlan plan_linearization(const FunctionGraph& graph, const RegionView& view, PendingFlow& flow) {
    LinearPlan plan;
    plan.region = view;
    Planner planner(graph, view, plan);
    planner.run();
    flow = planner.take_flow();
    return plan;
}

LinearPlan plan_linearization(const FunctionGraph& graph, const RegionView& view) {
    PendingFlow flow;
    return plan_linearization(graph, view, flow);
}

} // namespace ptarmigan::translator
