// SPDX-License-Identifier: Apache-2.0
// When all live threads of the CTA pass the barriers alike, the code between them can run step after step.
#include "translator/analysis/plans/barrier_regions.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/liveness.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ptarmigan::translator {

using ptx::Operand;

namespace {

std::uint32_t threads_of(const BlockShape& block) {
    return block.ntid[0] * block.ntid[1] * block.ntid[2];
}

/// Barrier 0, and the number of threads is the CTA's.
bool is_for_all(const FunctionGraph& graph, const ptx::Instruction& inst, std::uint32_t threads) {
    const Operand& count = inst[ptx::Role::b];
    return constant_of(graph, inst[ptx::Role::a]) == std::uint64_t(0) &&
           (count.kind == Operand::Kind::none || constant_of(graph, count) == std::uint64_t(threads));
}

RegionView region_from(const FunctionGraph& graph, BlockId entry, const std::vector<bool>& is_cut) {
    RegionView view;
    view.entry = entry;
    view.contains.assign(graph.blocks.size(), false);
    view.cut_after.assign(graph.blocks.size(), false);
    Edges successors = successor_edges(graph);
    for (BlockId b = 0; b < graph.blocks.size(); ++b)
        if (is_cut[b]) successors[b].clear();
    view.blocks = reverse_post_order(successors, entry);
    for (BlockId b : view.blocks) {
        view.contains[b] = true;
        view.cut_after[b] = is_cut[b];
    }
    return view;
}

class BarrierPlanner {
public:
    BarrierPlanner(const FunctionGraph& graph, const BlockShape& block, BarrierPlan& plan)
        : graph_(graph), threads_(threads_of(block)), plan_(plan) {}

    void run() {
        for (const Block& block : graph_.blocks) plan_.has_barriers |= block.ends_with_barrier;
        check_barriers();
        if (plan_.splittable && plan_.has_barriers) check_control();
        if (plan_.splittable && plan_.has_barriers) make_regions();
        if (!plan_.splittable || !plan_.has_barriers) {
            plan_.regions = {whole_graph(graph_)};
            plan_.resume_of = {no_block};
            plan_.live_in = {{}};
        }
    }

private:
    void refuse(const ptx::Instruction& inst, const char* why) { refuse(inst.location, why); }
    void refuse(const SourceLocation& location, const char* why) {
        if (plan_.splittable) plan_.reason = "line " + std::to_string(location.line) + ": " + why;
        plan_.splittable = false;
    }
    void check_barriers();
    void check_control();
    void make_regions();

    const FunctionGraph& graph_;
    std::uint32_t threads_;
    BarrierPlan& plan_;
};

/// Only barrier 0 for the whole CTA splits; everything else that lets warps meet in pairs needs them resumable.
void BarrierPlanner::check_barriers() {
    for (const Block& block : graph_.blocks) {
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (inst[ptx::Role::after].kind != Operand::Kind::none) refuse(inst, "products may be late");
            if (!has_effect(inst, ptx::Effects::barrier)) continue;
            if (!is_cta_barrier(inst)) {
                refuse(inst, "arrives at a barrier without waiting, or waits for the cluster");
                continue;
            }
            // The warps of a warpgroup meet: where all warps come, as good as all of them.
            if (inst.form == ptx::FormId::wgmma_commit_group) continue;
            if (ptx::form_info(inst.form).shape == ptx::ShapeRule::uniform) refuse(inst, "barrier with a reduction");
            const ptx::Operand& count = inst[ptx::Role::b];
            if (constant_of(graph_, inst[ptx::Role::a]) != std::uint64_t(0)) refuse(inst, "barrier other than 0");
            if (count.kind != ptx::Operand::Kind::none && constant_of(graph_, count) != std::uint64_t(threads_))
                refuse(inst, "barrier for part of the CTA");
        }
    }
}

/// Masked execution of the whole CTA as if it were one step: when it gets to a barrier, threads may wait elsewhere only
/// where no barrier lies ahead of them (an early return), for those will have exited when the barrier completes.
void BarrierPlanner::check_control() {
    RegionGraph region = region_graph(graph_, whole_graph(graph_));
    if (!region.reducible) {
        plan_.splittable = false;
        plan_.reason = "irreducible control flow around barriers";
        return;
    }
    std::vector<bool> divergent(graph_.blocks.size(), false), barrier_ahead(graph_.blocks.size(), false);
    for (BlockId block : region.order) divergent[block] = is_cta_divergent_branch(graph_, block);
    std::vector<BlockId> work;
    for (BlockId block : region.order)
        if (graph_.blocks[block].ends_with_barrier) work.push_back(block);
    while (!work.empty()) {
        BlockId block = work.back();
        work.pop_back();
        if (barrier_ahead[block]) continue;
        barrier_ahead[block] = true;
        work.insert(work.end(), region.predecessors[block].begin(), region.predecessors[block].end());
    }
    PendingFlow flow = simulate(region, divergent);
    for (BlockId block : region.order) {
        if (!graph_.blocks[block].ends_with_barrier) continue;
        for (std::uint32_t waiting : flow.pending[region.position[block]])
            if (barrier_ahead[region.order[waiting]])
                refuse(graph_.blocks[block].instructions.back().inst,
                       "not all threads of the CTA meet this barrier together");
    }
}

void BarrierPlanner::make_regions() {
    std::vector<bool> wanted(graph_.blocks.size(), false), is_cut(wanted);
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) is_cut[id] = graph_.blocks[id].ends_with_barrier;
    plan_.regions.push_back(region_from(graph_, 0, is_cut));
    plan_.resume_of.push_back(no_block);
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        if (!graph_.blocks[id].ends_with_barrier) continue;
        BlockId next = graph_.blocks[id].successors[0];
        wanted[next] = true;
        plan_.regions.push_back(region_from(graph_, next, is_cut));
        plan_.resume_of.push_back(id);
    }
    for (const RegionView& view : plan_.regions)
        if (!region_graph(graph_, view).reducible) {
            plan_.splittable = false;
            plan_.reason = "a loop is entered in its middle behind a barrier";
            plan_.regions.clear();
            plan_.resume_of.clear();
            return;
        }
    auto live = live_at_entry(graph_, wanted);
    for (const RegionView& view : plan_.regions)
        plan_.live_in.push_back(view.entry == 0 ? std::vector<ValueId>{} : live[view.entry]);
}

} // namespace

BarrierPlan plan_barriers(const FunctionGraph& graph, const BlockShape& block) {
    BarrierPlan plan;
    BarrierPlanner(graph, block, plan).run();
    return plan;
}

std::vector<RegionView> regions_between_barriers(const FunctionGraph& graph, const BlockShape& shape) {
    std::vector<bool> is_cut(graph.blocks.size(), false);
    for (BlockId id = 0; id < graph.blocks.size(); ++id) {
        const Block& block = graph.blocks[id];
        is_cut[id] = block.ends_with_barrier && is_for_all(graph, block.instructions.back().inst, threads_of(shape));
    }
    std::vector<RegionView> regions{region_from(graph, 0, is_cut)};
    for (BlockId id = 0; id < graph.blocks.size(); ++id)
        if (is_cut[id]) regions.push_back(region_from(graph, graph.blocks[id].successors[0], is_cut));
    return regions;
}

bool has_collectives(const FunctionGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (has_effect(instruction.inst, ptx::Effects::convergent) &&
                !has_effect(instruction.inst, ptx::Effects::barrier))
                return true;
    return false;
}

bool talks_through_volatile(const FunctionGraph& graph, bool generic) {
    const auto may_be_shared = [&](const ptx::Instruction& inst) {
        return inst.space == ptx::StateSpace::shared || (inst.space == ptx::StateSpace::generic && generic);
    };
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (has_effect(instruction.inst, ptx::Effects::load) && instruction.inst.has(ptx::Modifier::volatile_) &&
                may_be_shared(instruction.inst))
                return true;
    return false;
}

namespace {

/// The word of shared memory that an access names, as far as it says.
struct SharedPlace {
    Operand::Base base;
    std::uint32_t index;
    std::uint64_t offset;
    auto operator<=>(const SharedPlace&) const = default;
};

/// Stores to shared memory that no barrier of the CTA has followed yet, forward over the blocks.
class OpenStores {
public:
    explicit OpenStores(const FunctionGraph& graph) : graph_(graph), at_entry_(graph.blocks.size()) {}

    bool reach_others_loads() {
        std::vector<BlockId> work;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) work.push_back(block);
        while (!work.empty()) {
            const BlockId block = work.back();
            work.pop_back();
            std::set<SharedPlace> open = at_entry_[block];
            if (walk(graph_.blocks[block], open)) return true;
            for (BlockId successor : graph_.blocks[block].successors) {
                const std::size_t before = at_entry_[successor].size();
                at_entry_[successor].insert(open.begin(), open.end());
                if (at_entry_[successor].size() != before) work.push_back(successor);
            }
        }
        return false;
    }

private:
    /// True at a load of another place than some open store's, or of one that all lanes name alike.
    static bool walk(const Block& block, std::set<SharedPlace>& open) {
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (has_effect(inst, ptx::Effects::barrier)) open.clear();
            if (inst.space != ptx::StateSpace::shared || has_effect(inst, ptx::Effects::atomic)) continue;
            const Operand& address = accessed_memory(inst);
            if (address.kind != Operand::Kind::address) continue;
            const SharedPlace place{address.base, address.index, static_cast<std::uint64_t>(address.value)};
            if (loads_accessed_memory(inst))
                for (const SharedPlace& store : open)
                    if (store != place || place.base != Operand::Base::reg) return true;
            if (has_effect(inst, ptx::Effects::store)) open.insert(place);
        }
        return false;
    }

    const FunctionGraph& graph_;
    std::vector<std::set<SharedPlace>> at_entry_;
};

} // namespace

bool talks_without_barrier(const FunctionGraph& graph) {
    return OpenStores(graph).reach_others_loads();
}

} // namespace ptarmigan::translator
