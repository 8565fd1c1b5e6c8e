// SPDX-License-Identifier: Apache-2.0
// Per-lane program counters: every lane has the number of the block it is to run next; a dispatch loop picks a block
// that some lane waits for and runs it for all lanes that wait there. Takes any control flow graph, reducible or not.
// Blocks are numbered in topological order as far as there is one and the lowest is picked, so that lanes meet again at
// joins; blocks with collectives or barriers come last, so that their members gather; and now and then the block of
// another lane is picked, so that a lane that spins cannot starve the one it waits for.
#include "frontend/isa/instruction_form.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <llvm/IR/Constants.h>

namespace ptarmigan::translator {

namespace {
constexpr std::uint32_t finished = 0x7fffffff;
constexpr std::uint32_t gathering = 0x40000000; ///< added to the number of a block where lanes gather
constexpr std::uint32_t waiting = 0x20000000;   ///< likewise of a block where lanes wait for others
/// Every so many dispatches a block is picked by lane in turn instead of by number.
constexpr std::uint32_t fairness_period = 64;
/// Values that cross blocks times blocks from which on slots stay in memory.
constexpr std::size_t memory_slot_threshold = 512;

/// What is added to the block's number: lanes that can go on do so first.
std::uint32_t rank_of(const Block& block) {
    std::uint32_t rank = 0;
    for (const GraphInstruction& instruction : block.instructions) {
        const ptx::Effects effects = ptx::form_info(instruction.inst.form).effects;
        const bool waits = ptx::any(effects, ptx::Effects::waits);
        const bool gathers = ptx::any(effects, ptx::Effects::convergent | ptx::Effects::barrier);
        rank = std::max(rank, (gathers ? gathering : 0) + (waits ? waiting : 0));
    }
    return rank;
}

void number_blocks(const FunctionGraph& graph, const RegionView& view, BlockId block,
                   std::vector<std::uint32_t>& number, std::vector<bool>& seen, std::uint32_t& next) {
    // Iterative post-order: PTX may have very deep graphs.
    std::vector<std::pair<BlockId, std::size_t>> stack{{block, 0}};
    seen[block] = true;
    while (!stack.empty()) {
        auto& [id, position] = stack.back();
        const Block& info = graph.blocks[id];
        bool cut = id < view.cut_after.size() && view.cut_after[id];
        if (!cut && position < info.successors.size()) {
            BlockId successor = info.successors[position++];
            if (!seen[successor]) {
                seen[successor] = true;
                stack.emplace_back(successor, 0);
            }
            continue;
        }
        number[id] = next-- | rank_of(info);
        stack.pop_back();
    }
}
} // namespace

/// What the turns start from: with a random schedule a state of xorshift32 that differs between steps and CTAs.
llvm::Value* GraphEmitter::initial_turn() {
    if (!unit_.options.random_schedule) return ir_.getInt32(0);
    llvm::Type* i64 = ir_.getInt64Ty();
    llvm::Value* seed = context_field(ir_.getInt32Ty(), offsetof(abi::CtaContext, schedule_seed),
                                      "schedule.seed"); // differs from CTA to CTA
    llvm::Value* mixed = ir_.CreateOr(ir_.CreateShl(ir_.CreateZExt(seed, i64), 32), ir_.CreateZExt(step_, i64));
    mixed = ir_.CreateMul(ir_.CreateAdd(mixed, ir_.getInt64(1)), ir_.getInt64(0x9e3779b97f4a7c15));
    mixed = ir_.CreateMul(ir_.CreateXor(mixed, ir_.CreateLShr(mixed, 29)), ir_.getInt64(0xbf58476d1ce4e5b9));
    return ir_.CreateOr(ir_.CreateTrunc(ir_.CreateLShr(mixed, 32), ir_.getInt32Ty()), ir_.getInt32(1));
}

/// The number of the block that runs next: the lowest, but now and then that of the lane in turn, if it is neither
/// finished nor gathering. With a random schedule that of any such lane.
llvm::Value* GraphEmitter::pick_block(llvm::AllocaInst* turns, llvm::Value* counters) {
    llvm::Value* lowest = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::vector_reduce_umin, counters);
    llvm::Value* turn = ir_.CreateLoad(ir_.getInt32Ty(), turns);
    llvm::Value *lane, *is_special;
    if (unit_.options.random_schedule) {
        turn = ir_.CreateXor(turn, ir_.CreateShl(turn, 13));
        turn = ir_.CreateXor(turn, ir_.CreateLShr(turn, 17));
        turn = ir_.CreateXor(turn, ir_.CreateShl(turn, 5));
        lane = ir_.CreateURem(ir_.CreateLShr(turn, 8), ir_.getInt32(width_));
        is_special = ir_.getTrue();
    } else {
        turn = ir_.CreateAdd(turn, ir_.getInt32(1));
        lane = ir_.CreateURem(ir_.CreateUDiv(turn, ir_.getInt32(fairness_period)), ir_.getInt32(width_));
        is_special = ir_.CreateICmpEQ(ir_.CreateURem(turn, ir_.getInt32(fairness_period)), ir_.getInt32(0));
    }
    ir_.CreateStore(turn, turns);
    llvm::Value* chosen = ir_.CreateExtractElement(counters, lane);
    is_special = ir_.CreateAnd(is_special, ir_.CreateICmpULT(chosen, ir_.getInt32(gathering)));
    return ir_.CreateSelect(is_special, chosen, lowest, "picked");
}

void GraphEmitter::emit_counter_edge(BlockId block, unsigned successor, llvm::Value* mask) {
    BlockId to = graph_.blocks[block].successors[successor];
    auto saved = cache_;
    move_phis(block, successor, mask);
    cache_ = std::move(saved);
    llvm::Value* old = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
    llvm::Value* next = splat(ir_.getInt32(counter_of_[to]));
    ir_.CreateStore(mask ? ir_.CreateSelect(mask, next, old) : next, counters_);
}

/// With program counters: lanes that are neither here nor finished. The caller's lanes that are not in this function
/// have to wait for it.
llvm::Value* GraphEmitter::others_can_run() {
    if (plan_ || !counters_) return ir_.getFalse();
    llvm::Value* counters = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
    llvm::Value* elsewhere = ir_.CreateICmpNE(counters, splat(ir_.getInt32(counter_of_[current_block_])));
    return any(ir_.CreateAnd(elsewhere, ir_.CreateICmpNE(counters, splat(ir_.getInt32(finished)))));
}

llvm::Value* GraphEmitter::live_bits() {
    // In a function the caller's other lanes may be anywhere.
    if (plan_ || !counters_ || !graph_.is_entry) return ir_.getInt64(~std::uint64_t{0});
    llvm::Value* counters = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
    return to_bits(ir_.CreateICmpNE(counters, splat(ir_.getInt32(finished))));
}

void GraphEmitter::emit_program_counters(const RegionView& view, const RegionInterface& interface) {
    plan_ = nullptr;
    prepare(view, interface);
    std::size_t crossing = std::size_t(std::count(crosses_.begin(), crosses_.end(), true));
    if (crossing * view.blocks.size() > memory_slot_threshold) use_memory_slots();
    counter_of_.assign(graph_.blocks.size(), finished);
    std::vector<bool> seen(graph_.blocks.size(), false);
    std::uint32_t next = std::uint32_t(view.blocks.size());
    number_blocks(graph_, view, view.entry, counter_of_, seen, next);

    counters_ = entry_alloca(lanes_type(ir_.getInt32Ty()), "counters");
    llvm::AllocaInst* turns = entry_alloca(ir_.getInt32Ty(), "turns");
    ir_.CreateStore(initial_turn(), turns);
    ir_.CreateStore(
        ir_.CreateSelect(entry_mask_, splat(ir_.getInt32(counter_of_[view.entry])), splat(ir_.getInt32(finished))),
        counters_);
    if (interface.enter) interface.enter();
    dispatch_block_ = new_block("dispatch");
    ir_.CreateBr(dispatch_block_);

    ir_.SetInsertPoint(dispatch_block_);
    llvm::Value* counters = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
    llvm::Value* picked = pick_block(turns, counters);
    llvm::BasicBlock* done = new_block("all.finished");
    llvm::SwitchInst* dispatch = ir_.CreateSwitch(picked, done, unsigned(view.blocks.size()));
    ir_.SetInsertPoint(done);
    interface.exit();

    for (BlockId id : view.blocks) {
        dispatch->addCase(ir_.getInt32(counter_of_[id]), blocks_[id]);
        current_block_ = id;
        current_instruction_ = nullptr;
        cache_.clear();
        ir_.SetInsertPoint(blocks_[id]);
        llvm::Value* current = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
        counter_mask_ = ir_.CreateICmpEQ(current, splat(ir_.getInt32(counter_of_[id])), "block.mask");
        begin_block_code();
        const Block& block = graph_.blocks[id];
        bool cut = id < view.cut_after.size() && view.cut_after[id];
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            if (cut && i + 1 == block.instructions.size()) break;
            emit_instruction(block.instructions[i]);
        }
        current_instruction_ = nullptr;
        current_ = nullptr;
        if (cut) {
            interface.cut(id);
            continue;
        }
        if (block.terminator.location.line)
            ir_.SetCurrentDebugLocation(unit_.location(function_, block.terminator.location));
        if (block.terminator.kind == Terminator::Kind::exit) {
            llvm::Value* old = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
            ir_.CreateStore(ir_.CreateSelect(counter_mask_, splat(ir_.getInt32(finished)), old), counters_);
        } else if (block.terminator.kind == Terminator::Kind::jump) {
            emit_spin_yield(id);
            emit_counter_edge(id, 0, counter_mask_);
        } else {
            LaneValue condition = value_at(id, block.terminator.condition);
            condition = LaneValue::varying(broadcast(condition));
            std::vector<llvm::Value*> masks;
            for (unsigned k = 0; k < block.successors.size(); ++k)
                masks.push_back(ir_.CreateAnd(counter_mask_, edge_condition(id, k, condition)));
            for (unsigned k = 0; k < block.successors.size(); ++k) emit_counter_edge(id, k, masks[k]);
        }
        ir_.CreateBr(dispatch_block_);
    }
    finish_memory_slots();
}

} // namespace ptarmigan::translator
