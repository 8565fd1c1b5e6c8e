// SPDX-License-Identifier: Apache-2.0
// Loops in which steps take turns: a step saves what is live at the loop's header and returns, and finds its way back
// there when it is called again. See analysis/loops/plan_turns.h.
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>

namespace ptarmigan::translator {

/// In the order in which RegionInterface::Turn hands them on.
std::vector<llvm::AllocaInst*> GraphEmitter::masks_at(const TurnPoint& point) const {
    std::vector<llvm::AllocaInst*> slots;
    for (BlockId block : point.edge_masks) slots.push_back(accumulated_mask_[block]);
    for (BlockId block : point.block_masks) slots.push_back(current_mask_[block]);
    return slots;
}

/// Behind the entry block: to the loop where the step stopped, or on.
void GraphEmitter::emit_resumption() {
    rounds_ = entry_alloca(ir_.getInt32Ty(), "rounds");
    ir_.CreateStore(ir_.getInt32(0), rounds_);
    llvm::BasicBlock* start = new_block("start");
    llvm::SwitchInst* places =
        ir_.CreateSwitch(interface_->turn_to_resume(), start, unsigned(interface_->turns.size()));
    for (std::size_t i = 0; i < interface_->turns.size(); ++i) {
        const RegionInterface::Turn& turn = interface_->turns[i];
        llvm::BasicBlock* resume = new_block("resume");
        places->addCase(ir_.getInt32(std::uint32_t(i) + 1), resume);
        ir_.SetInsertPoint(resume);
        const std::vector<llvm::Value*> masks = turn.resume();
        const std::vector<llvm::AllocaInst*> slots = masks_at(turn.point);
        for (std::size_t k = 0; k < slots.size(); ++k) store_mask(slots[k], masks.at(k));
        ir_.CreateBr(blocks_[turn.point.header]);
    }
    ir_.SetInsertPoint(start);
}

/// On a back edge, when the phis of the header have their values.
void GraphEmitter::emit_turn(BlockId latch) {
    const auto turn = std::find_if(interface_->turns.begin(), interface_->turns.end(),
                                   [&](const RegionInterface::Turn& t) { return t.point.latch == latch; });
    if (turn == interface_->turns.end()) return;
    llvm::Value* rounds = ir_.CreateAdd(ir_.CreateLoad(ir_.getInt32Ty(), rounds_), ir_.getInt32(1));
    ir_.CreateStore(rounds, rounds_);
    llvm::BasicBlock* stop = new_block("stop");
    llvm::BasicBlock* round = new_block("round");
    // Loops of one step count together: another one may have gone further than this one would.
    ir_.CreateCondBr(ir_.CreateICmpUGE(rounds, ir_.getInt32(turn->rounds)), stop, round,
                     llvm::MDBuilder(context()).createBranchWeights(1, turn->rounds));
    ir_.SetInsertPoint(stop);
    if (turn->point.waits)
        call_service(offsetof(abi::Services, note_wait), ir_.getVoidTy(), {cta_context_, step_, lanes_here()});
    // What the block knows of its values, and the place of its loads, are from before the edge.
    const KnownValues::Mark known = known_.mark();
    known_.clear();
    llvm::Instruction* loads_end = std::exchange(loads_end_, nullptr);
    std::vector<llvm::Value*> masks;
    for (llvm::AllocaInst* slot : masks_at(turn->point)) masks.push_back(load_mask(slot));
    turn->stop(masks);
    known_.go_back(known);
    loads_end_ = loads_end;
    ir_.SetInsertPoint(round);
}

} // namespace ptarmigan::translator
