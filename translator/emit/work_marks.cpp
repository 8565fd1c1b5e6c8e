// SPDX-License-Identifier: Apache-2.0
// Tells the runtime what is work and what is waiting. A barrier that completes is a sign that a CTA gets on, but not in
// a loop that waits: a CTA whose first thread looks at a flag, and tells the others through a reduction or shared
// memory, completes barriers for ever. Such loops may be those of persistent kernels as well, which write what they
// have computed. So marks are set by barriers outside of loops that wait, and by writes of global memory inside of
// them.
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/waits/converged_waits.h"
#include "translator/analysis/waits/spin_loops.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::translator {

const std::vector<bool>& GraphEmitter::waiting_loops() {
    if (!waiting_loops_) waiting_loops_ = loops_that_wait(graph_, unit_.options.waiting_loops);
    return *waiting_loops_;
}

/// The innermost loop around the block at hand waits. What a loop inside of it does is work: the tile of a persistent
/// kernel.
bool GraphEmitter::in_waiting_loop() {
    const std::uint32_t loop = graph_.forest.loop_of[current_block_];
    return loop != no_loop && waiting_loops()[loop];
}

/// The outermost loop around `block` that does; no_loop if none does.
std::uint32_t GraphEmitter::wait_around(BlockId block) {
    std::uint32_t found = no_loop;
    for (std::uint32_t loop = graph_.forest.loop_of[block]; loop != no_loop; loop = graph_.forest.loops[loop].parent)
        if (waiting_loops()[loop]) found = loop;
    return found;
}

/// Some loop around the block at hand does.
bool GraphEmitter::inside_waiting_loop() {
    return wait_around(current_block_) != no_loop;
}

const CounterGoals& GraphEmitter::counter_goals() {
    if (!counter_goals_) {
        const bool suspends = unit_.fiber_form && unit_.spins;
        counter_goals_ =
            find_counter_goals(graph_, suspends ? waiting_loops() : std::vector<bool>(graph_.forest.loops.size()));
    }
    return *counter_goals_;
}

void GraphEmitter::call_await_goal(abi::GoalEvent event, llvm::Value* lanes) {
    call_service(offsetof(abi::Services, await_goal), ir_.getVoidTy(),
                 {cta_context_, ir_.getInt32(std::uint32_t(event)), lanes ? lanes : ir_.getInt64(0)});
}

/// Before an addition to a counter that is waited for: from then on the step has to see what becomes of it.
void GraphEmitter::tell_of_addition(const ptx::Instruction& inst) {
    if (unit_.spins && counter_goals().additions.contains(&inst)) call_await_goal(abi::GoalEvent::adds);
}

/// Behind a comparison that ends a wait for a counter to have one value.
void GraphEmitter::let_others_look(const ptx::Instruction& inst) {
    if (!unit_.spins || !counter_goals().comparisons.contains(&inst)) return;
    const bool is_equal = inst.has(ptx::Modifier::eq);
    llvm::Value* truth = broadcast(read(inst[ptx::Role::p]));
    llvm::Value* reached = ir_.CreateAnd(is_equal ? truth : ir_.CreateNot(truth), active());
    if_then(
        any(reached), [&] { call_await_goal(abi::GoalEvent::reaches); }, false);
}

/// A copy, or a write of global memory or of memory that may be, is meant for others. Neither locks that are tried nor
/// atomics that only read.
bool GraphEmitter::writes_for_others(const ptx::Instruction& inst) const {
    using enum ptx::StateSpace;
    using ptx::Effects;
    if (has_effect(inst, Effects::load) && has_effect(inst, Effects::store | Effects::async)) return true;
    if (inst.space == shared || inst.space == local || inst.space == param || opcode(inst) == "mbarrier") return false;
    if (!has_effect(inst, Effects::atomic)) return has_effect(inst, Effects::store);
    if (inst.has(ptx::Modifier::cas) || inst.has(ptx::Modifier::exch)) return false;
    const ptx::Operand& added = inst[ptx::Role::b];
    if (added.kind == ptx::Operand::Kind::imm) return added.value != 0;
    const bool is_value = added.kind == ptx::Operand::Kind::reg;
    return !is_value || !graph_.values[added.index].is_constant || graph_.values[added.index].constant != 0;
}

/// In front of an instruction where others may wait for what it does. Barriers between regions are the driver's.
void GraphEmitter::mark_work(const ptx::Instruction& inst) {
    if (!unit_.fiber_form && !unit_.gives_turns) return;
    // What completes barriers, and phases of mbarriers.
    const bool meets =
        has_effect(inst, ptx::Effects::barrier) || (has_effect(inst, ptx::Effects::async) && !is_mbarrier_wait(inst));
    const bool writes = unit_.spins && writes_for_others(inst);
    if (!(meets && !in_waiting_loop()) && !(writes && inside_waiting_loop())) return;
    set_work_mark(all_active() ? nullptr : active());
}

/// For those of the step's lanes that are in `lanes`, if any; null: all.
void GraphEmitter::set_work_mark(llvm::Value* lanes) {
    llvm::Value* mark =
        ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), cta_context_, offsetof(abi::CtaContext, worked));
    llvm::Value* bits = ir_.getInt32(~0u);
    if (lanes) {
        llvm::Value* old = ir_.CreateLoad(ir_.getInt32Ty(), mark);
        bits = ir_.CreateOr(old, ir_.CreateSExt(any(lanes), ir_.getInt32Ty()));
    }
    ir_.CreateStore(bits, mark);
}

} // namespace ptarmigan::translator
