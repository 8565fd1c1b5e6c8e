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

/// Of memory that other threads see and may write.
bool touches_memory(const ptx::Instruction& inst) {
    return has_effect(inst, visible) ||
           (has_effect(inst, Effects::load) && inst.space != ptx::StateSpace::param &&
            inst.space != ptx::StateSpace::constant && inst.space != ptx::StateSpace::local);
}

/// No instruction from the beginning of `block` on is of the kind.
template <typename Fn> bool none_from(const FunctionGraph& graph, BlockId block, Fn&& is_of_kind) {
    std::vector<bool> seen(graph.blocks.size(), false);
    std::vector<BlockId> work{block};
    while (!work.empty()) {
        const BlockId id = work.back();
        work.pop_back();
        if (seen[id]) continue;
        seen[id] = true;
        for (const GraphInstruction& instruction : graph.blocks[id].instructions)
            if (is_of_kind(instruction.inst)) return false;
        work.insert(work.end(), graph.blocks[id].successors.begin(), graph.blocks[id].successors.end());
    }
    return true;
}

/// `holds` for each block in the order of masked execution, with the blocks at which lanes are held back while others
/// of their step are in it. False if that is not known.
template <typename Fn> bool for_all_held_back(const FunctionGraph& graph, Fn&& holds) {
    const RegionGraph region = region_graph(graph, whole_graph(graph));
    if (!region.reducible) return false;
    std::vector<bool> divergent(graph.blocks.size(), false);
    for (BlockId block : region.order) divergent[block] = is_divergent_branch(graph, block);
    const PendingFlow flow = simulate(region, divergent);
    return std::all_of(region.order.begin(), region.order.end(), [&](BlockId block) {
        std::vector<BlockId> held_back;
        for (std::uint32_t position : flow.pending[region.position[block]]) held_back.push_back(region.order[position]);
        return holds(graph.blocks[block], held_back);
    });
}

} // namespace

bool only_exits(const FunctionGraph& graph, BlockId block) {
    return none_from(graph, block, [](const ptx::Instruction& inst) { return has_effect(inst, visible); });
}

bool is_mbarrier_wait(const ptx::Instruction& inst) {
    using ptx::FormId;
    return inst.form == FormId::mbarrier_test_wait || inst.form == FormId::mbarrier_test_wait_parity ||
           inst.form == FormId::mbarrier_try_wait || inst.form == FormId::mbarrier_try_wait_parity;
}

bool mbarrier_waits_are_converged(const FunctionGraph& graph) {
    return for_all_held_back(graph, [&](const Block& block, const std::vector<BlockId>& held_back) {
        bool waits = false;
        for (const GraphInstruction& instruction : block.instructions) {
            if (!is_mbarrier_wait(instruction.inst)) continue;
            if (!is_uniform(graph, instruction)) return false;
            waits = true;
        }
        return !waits ||
               std::all_of(held_back.begin(), held_back.end(), [&](BlockId other) { return only_exits(graph, other); });
    });
}

bool barriers_hold_nobody_back(const FunctionGraph& graph) {
    return for_all_held_back(graph, [&](const Block& block, const std::vector<BlockId>& held_back) {
        const bool waits =
            std::any_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& instruction) {
                return has_effect(instruction.inst, Effects::barrier);
            });
        return !waits || std::all_of(held_back.begin(), held_back.end(),
                                     [&](BlockId other) { return none_from(graph, other, touches_memory); });
    });
}

} // namespace ptarmigan::translator
