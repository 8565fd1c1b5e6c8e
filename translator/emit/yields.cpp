// SPDX-License-Identifier: Apache-2.0
// Where a step on a fiber lets others run: lanes at hand-over points, loops that wait, atomics in them.
#include "translator/analysis/graph/dominators.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::translator {

/// Lanes that run one by one wait for those that a GPU has in step with them: analysis/waits/hand_over_points.h.
void GraphEmitter::emit_hand_over(std::uint32_t point) {
    if (width_ != 1 || !unit_.fiber_form) return; // marked for a form that was not taken
    call_service(offsetof(abi::Services, reconverge), ir_.getVoidTy(),
                 {cta_context_, step_, ir_.getInt32(point), ir_.getInt32(inside_waiting_loop())});
}

void GraphEmitter::emit_yield() {
    llvm::Value* lanes = current_ ? ir_.getInt64(0) : lanes_here(); // before an instruction nobody waits
    const std::uint32_t loop = graph_.forest.loop_of[current_block_];
    if (loop != no_loop && counter_goals().loops[loop])
        call_await_goal(abi::GoalEvent::waits, lanes);
    else
        call_service(offsetof(abi::Services, yield), ir_.getVoidTy(), {cta_context_, step_, lanes, ir_.getInt64(0)});
}

/// Every cycle goes through one of these: latches, and in an irreducible graph the sources of retreating edges.
std::vector<bool> GraphEmitter::find_round_ends() const {
    std::vector<bool> ends(graph_.blocks.size(), false);
    for (const LoopInfo& loop : graph_.forest.loops)
        if (loop.latch != no_block) ends[loop.latch] = true;
    if (graph_.forest.reducible) return ends;
    std::vector<std::uint32_t> position(graph_.blocks.size(), 0);
    std::uint32_t count = 0;
    for (BlockId block : reverse_post_order(successor_edges(graph_), 0)) position[block] = count++;
    for (BlockId block = 0; block < graph_.blocks.size(); ++block)
        for (BlockId to : graph_.blocks[block].successors)
            if (position[to] <= position[block]) ends[block] = true;
    return ends;
}

/// On the back edges of kernels that wait for memory: every so many iterations other steps get their turn.
void GraphEmitter::emit_spin_yield(BlockId id) {
    constexpr std::uint32_t rounds_between_yields = 64;
    const bool is_whole_cta = unit_.gives_turns && unit_.step_count() == 1; // which has nobody else to stop for
    if (!(unit_.fiber_form || is_whole_cta) || !(unit_.spins || unit_.options.random_schedule)) return;
    if (!ends_round_[id]) return;
    if (unit_.options.random_schedule) return emit_yield();
    emit_yield_each(rounds_between_yields);
}

/// Where threads take back what they did, as in `while (atomicAdd(l, 1) != 0) atomicSub(l, 1)`, steps that only gave
/// way at the end of a round would see each other's additions for ever. So they also do before their atomics, but with
/// another period.
void GraphEmitter::emit_atomic_yield() {
    constexpr std::uint32_t atomics_between_yields = 61;
    if (!unit_.fiber_form || !unit_.spins) return;
    if (in_waiting_loop()) emit_yield_each(atomics_between_yields);
}

/// When this place has been passed `period` times.
void GraphEmitter::emit_yield_each(std::uint32_t period) {
    const Place counter = make_place(ir_.getInt32Ty(), "passes");
    {
        llvm::IRBuilderBase::InsertPointGuard keep(ir_);
        ir_.SetInsertPoint(llvm::cast<llvm::Instruction>(counter.address)->getNextNode());
        ir_.CreateStore(ir_.getInt32(0), counter.address);
    }
    llvm::Value* count = ir_.CreateAdd(ir_.CreateLoad(counter.type, counter.address), ir_.getInt32(1));
    ir_.CreateStore(count, counter.address);
    llvm::Value* due = ir_.CreateICmpEQ(ir_.CreateURem(count, ir_.getInt32(period)), ir_.getInt32(0));
    const auto give_turn = [&] {
        if (!in_waiting_loop()) set_work_mark(nullptr);
        emit_yield();
    };
    if_then(due, give_turn, false);
}

} // namespace ptarmigan::translator
