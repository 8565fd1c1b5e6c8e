// SPDX-License-Identifier: Apache-2.0
// Masked execution holds lanes of other arms back until the arms meet: they must not be the ones who are waited for.
#include "translator/analysis/waits/converged_waits.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;

/// What may end another thread's wait, by itself or through a third one; collectives too, whose lanes wait for each
/// other.
constexpr Effects visible =
    Effects::store | Effects::atomic | Effects::async | Effects::barrier | Effects::call | Effects::convergent;

/// All active lanes get one answer.
bool is_uniform(const FunctionGraph& graph, const GraphInstruction& wait) {
    if (wait.inst.guard != ptx::no_id && !graph.values[wait.inst.guard].shape.is_uniform()) return false;
    const FewValues results = definitions(graph, wait);
    return std::all_of(results.begin(), results.end(),
                       [&](ValueId value) { return graph.values[value].shape.is_uniform(); });
}

} // namespace

bool only_exits(const FunctionGraph& graph, BlockId block) {
    std::vector<bool> seen(graph.blocks.size(), false);
    std::vector<BlockId> work{block};
    while (!work.empty()) {
        const BlockId id = work.back();
        work.pop_back();
        if (seen[id]) continue;
        seen[id] = true;
        for (const GraphInstruction& instruction : graph.blocks[id].instructions)
            if (has_effect(instruction.inst, visible)) return false;
        work.insert(work.end(), graph.blocks[id].successors.begin(), graph.blocks[id].successors.end());
    }
    return true;
}

bool is_mbarrier_wait(const ptx::Instruction& inst) {
    using ptx::FormId;
    return inst.form == FormId::mbarrier_test_wait || inst.form == FormId::mbarrier_test_wait_parity ||
           inst.form == FormId::mbarrier_try_wait || inst.form == FormId::mbarrier_try_wait_parity;
}

bool mbarrier_waits_are_converged(const FunctionGraph& graph) {
    const RegionGraph region = region_graph(graph, whole_graph(graph));
    if (!region.reducible) return false;
    std::vector<bool> divergent(graph.blocks.size(), false);
    for (BlockId block : region.order) divergent[block] = is_divergent_branch(graph, block);
    const PendingFlow flow = simulate(region, divergent);
    for (BlockId block : region.order)
        for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
            if (!is_mbarrier_wait(instruction.inst)) continue;
            if (!is_uniform(graph, instruction)) return false;
            for (std::uint32_t held_back : flow.pending[region.position[block]])
                if (!only_exits(graph, region.order[held_back])) return false;
        }
    return true;
}

namespace {

/// Of memory that other threads see and may write.
bool touches_memory(const ptx::Instruction& inst) {
    if (has_effect(inst, visible)) return true;
    return has_effect(inst, Effects::load) && inst.space != ptx::StateSpace::param &&
           inst.space != ptx::StateSpace::constant && inst.space != ptx::StateSpace::local;
}

bool exits_untouched(const FunctionGraph& graph, BlockId block) {
    std::vector<bool> seen(graph.blocks.size(), false);
    std::vector<BlockId> work{block};
    while (!work.empty()) {
        const BlockId id = work.back();
        work.pop_back();
        if (seen[id]) continue;
        seen[id] = true;
        for (const GraphInstruction& instruction : graph.blocks[id].instructions)
            if (touches_memory(instruction.inst)) return false;
        work.insert(work.end(), graph.blocks[id].successors.begin(), graph.blocks[id].successors.end());
    }
    return true;
}

} // namespace

bool barriers_hold_nobody_back(const FunctionGraph& graph) {
    const RegionGraph region = region_graph(graph, whole_graph(graph));
    if (!region.reducible) return false;
    std::vector<bool> divergent(graph.blocks.size(), false);
    for (BlockId block : region.order) divergent[block] = is_divergent_branch(graph, block);
    const PendingFlow flow = simulate(region, divergent);
    for (BlockId block : region.order) {
        const auto& instructions = graph.blocks[block].instructions;
        const bool is_barrier = std::any_of(instructions.begin(), instructions.end(), [](const auto& instruction) {
            return has_effect(instruction.inst, Effects::barrier);
        });
        if (!is_barrier) continue;
        for (std::uint32_t held_back : flow.pending[region.position[block]])
            if (!exits_untouched(graph, region.order[held_back])) return false;
    }
    return true;
}

} // namespace ptarmigan::translator
