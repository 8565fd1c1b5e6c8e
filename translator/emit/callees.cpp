// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/callees.h"

#include "translator/analysis/build/callee_graph.h"
#include "translator/analysis/build/late_targets.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/waits/spin_loops.h"
#include "translator/emit/graph_emitter.h"

#include <algorithm>
#include <set>

namespace ptarmigan::translator {

std::vector<ptx::FunctionId> possible_callees(const FunctionGraph& graph, bool* calls_late) {
    std::vector<ptx::FunctionId> callees = graph.real_calls;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (!ptx::any(ptx::form_info(inst.form).effects, ptx::Effects::call) ||
                inst[ptx::Role::f].kind == ptx::Operand::Kind::function)
                continue;
            std::vector<ptx::FunctionId> targets = indirect_targets(graph, instruction);
            if (is_late_call(*graph.module, targets)) {
                if (calls_late) *calls_late = true;
                continue;
            }
            callees.insert(callees.end(), targets.begin(), targets.end());
        }
    return callees;
}

ptx::Effects effects_of(const FunctionGraph& graph) {
    ptx::Effects effects = ptx::Effects::pure;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            effects = effects | ptx::form_info(instruction.inst.form).effects;
    return effects;
}

bool reads_global_in_bulk(const FunctionGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const ptx::Effects effects = ptx::form_info(inst.form).effects;
            if (!ptx::any(effects, ptx::Effects::async) || !ptx::any(effects, ptx::Effects::load)) continue;
            if (ptx::any(effects, ptx::Effects::atomic) || inst[ptx::Role::mbar].kind != ptx::Operand::Kind::none)
                return true;
        }
    return false;
}

bool touches_shared(const FunctionGraph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(),
                           [](const GraphInstruction& i) { return i.inst.space == ptx::StateSpace::shared; });
    });
}

namespace {

void add_callees(ptx::ModuleLoader& loader, const FunctionGraph& graph, const GraphOptions& options,
                 const SharedLayout& layout, WaitingLoops waiting, std::set<ptx::FunctionId>& seen, Callees& callees) {
    bool calls_late = false;
    const std::vector<ptx::FunctionId> possible = possible_callees(graph, &calls_late);
    if (calls_late) callees.add_late();
    for (ptx::FunctionId callee : possible) {
        if (!seen.insert(callee).second) continue;
        callees.are_here = true;
        FunctionGraph body = build_callee_graph(loader, callee, options, layout);
        callees.effects = callees.effects | effects_of(body);
        callees.spin = callees.spin || may_spin(body, waiting);
        callees.could_spin = callees.could_spin || may_spin(body, WaitingLoops::all);
        callees.exit_threads = callees.exit_threads || body.has_thread_exit;
        callees.talk = callees.talk || talks_through_volatile(body, true);
        callees.called.share = callees.called.share || touches_shared(body);
        callees.called.meet = callees.called.meet || ptx::any(effects_of(body), ptx::Effects::barrier);
        callees.read_in_bulk = callees.read_in_bulk || reads_global_in_bulk(body);
        add_callees(loader, body, options, layout, waiting, seen, callees);
    }
}

} // namespace

Callees find_callees(ptx::ModuleLoader& loader, const FunctionGraph& graph, const GraphOptions& options,
                     const SharedLayout& layout, WaitingLoops waiting) {
    std::set<ptx::FunctionId> seen;
    Callees callees;
    add_callees(loader, graph, options, layout, waiting, seen, callees);
    return callees;
}

} // namespace ptarmigan::translator
