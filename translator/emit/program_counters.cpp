// SPDX-License-Identifier: Apache-2.0
// Per-lane program counters: every lane has the number of the block it is to run next; a dispatch loop picks a block
// that some lane waits for and runs it for all lanes that wait there. Takes any control flow graph, reducible or not.
// Blocks are numbered in topological order as far as there is one, loops contiguous, and the lowest is picked, so that
// lanes meet again at joins and behind loops; blocks with collectives or barriers come last, so that their members
// gather. Lanes that wait at a join are overtaken by nobody and overtake nobody (as with a GPU's convergence barriers,
// which programs count on), but where others go round in a loop: then the block of another lane is picked now and then,
// so that a lane that spins cannot starve the one it waits for. Lanes that go round together may also be in each
// other's way for ever, each with a lock that its neighbour wants; hardware does not keep them in step. So now and then
// one of them goes round alone.
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/analysis/waits/meeting_places.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <functional>

namespace ptarmigan::translator {

namespace {
constexpr std::uint32_t finished = 0x7fffffff;
constexpr std::uint32_t gathering = 0x40000000; ///< added to the number of a block where lanes gather
constexpr std::uint32_t waiting = 0x20000000;   ///< likewise of a block where lanes wait for others
/// Likewise of a block where lanes gather until no other can go on, whoever has come.
constexpr std::uint32_t closed = 0x08000000;
/// Lanes that are behind have gone round this often, weighted, before one that waits for them at a join goes on.
constexpr std::uint32_t fairness_period = 4096;
/// What a round counts: in a loop that may wait for memory (or that is none, with several entries), and in any other.
constexpr std::uint32_t waiting_round = 64, other_round = 1;
/// Added to the number of lanes that stand still while one goes round alone.
constexpr std::uint32_t parked = 0x10000000;
/// Every so many times that fairness_period is over a lane goes alone, for so many rounds of a loop that may wait.
constexpr std::uint32_t solo_period = 8, solo_rounds = 16;
/// With a random schedule one block in so many is run for one lane only.
constexpr std::uint32_t solo_chance = 8;
/// Values that cross blocks times blocks from which on slots stay in memory.
constexpr std::size_t memory_slot_threshold = 512;

/// What is added to the block's number: lanes that can go on do so first. `queries_gather`: chance decides whose turn
/// it is, which would bring nobody together, and nobody waits for who asks. `opens`: members may meet as soon as all of
/// them have come.
std::uint32_t rank_of(const Block& block, bool queries_gather, bool opens) {
    std::uint32_t rank = queries_gather && asks_who_is_here(block) ? gathering : 0;
    for (const GraphInstruction& instruction : block.instructions) {
        const ptx::Effects effects = ptx::form_info(instruction.inst.form).effects;
        if (!ptx::any(effects, ptx::Effects::waits)) continue;
        const bool meets = ptx::any(effects, ptx::Effects::convergent | ptx::Effects::barrier);
        rank = std::max(rank, (meets ? gathering : 0) + waiting);
    }
    if (gathers(block)) rank = std::max(rank, gathering);
    return rank >= gathering && !opens ? rank | closed : rank;
}

/// In topological order but for back edges, loops contiguous: lanes that leave a loop wait behind it for the others.
/// False if there is no such order.
bool number_by_loops(const FunctionGraph& graph, const RegionView& view, bool queries_gather,
                     const std::vector<bool>& opens, std::vector<std::uint32_t>& number,
                     std::vector<std::uint32_t>& order) {
    const RegionGraph region = region_graph(graph, view);
    if (!region.reducible) return false;
    for (BlockId id : region.order) {
        order[id] = region.position[id] + 1;
        number[id] = order[id] | rank_of(graph.blocks[id], queries_gather, opens[id]);
    }
    return true;
}

void number_blocks(const FunctionGraph& graph, const RegionView& view, BlockId block, bool queries_gather,
                   const std::vector<bool>& opens, std::vector<std::uint32_t>& number,
                   std::vector<std::uint32_t>& order) {
    // Iterative post-order: PTX may have very deep graphs.
    std::vector<bool> seen(graph.blocks.size(), false);
    auto next = std::uint32_t(view.blocks.size());
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
        order[id] = next--;
        number[id] = order[id] | rank_of(info, queries_gather, opens[id]);
        stack.pop_back();
    }
}
} // namespace

/// What a random schedule starts from: a state of xorshift32 that differs between steps and CTAs.
llvm::Value* GraphEmitter::initial_chance() {
    llvm::Type* i64 = ir_.getInt64Ty();
    llvm::Value* seed = context_field(ir_.getInt32Ty(), offsetof(abi::CtaContext, schedule_seed),
                                      "schedule.seed"); // differs from CTA to CTA
    llvm::Value* mixed = ir_.CreateOr(ir_.CreateShl(ir_.CreateZExt(seed, i64), 32), ir_.CreateZExt(step_, i64));
    mixed = ir_.CreateMul(ir_.CreateAdd(mixed, ir_.getInt64(1)), ir_.getInt64(0x9e3779b97f4a7c15));
    mixed = ir_.CreateMul(ir_.CreateXor(mixed, ir_.CreateLShr(mixed, 29)), ir_.getInt64(0xbf58476d1ce4e5b9));
    return ir_.CreateOr(ir_.CreateTrunc(ir_.CreateLShr(mixed, 32), ir_.getInt32Ty()), ir_.getInt32(1));
}

llvm::Value* GraphEmitter::lane_of_chance(llvm::Value* chance) {
    return ir_.CreateURem(ir_.CreateLShr(chance, 8), ir_.getInt32(width_));
}

/// With a random schedule, in loops that wait: lanes that are in step there, and in each other's way, would stay so for
/// ever. So now and then the block is run for the lane alone that it was picked for.
void GraphEmitter::part_by_chance(BlockId block, llvm::Value* counters) {
    if (!unit_.options.random_schedule || counter_of_[block] >= gathering) return;
    if (graph_.forest.reducible && !inside_waiting_loop()) return;
    llvm::Value* chance = ir_.CreateLoad(ir_.getInt32Ty(), turn_lane_);
    llvm::Value* lane = lane_of_chance(chance);
    llvm::Value* is_here = ir_.CreateICmpEQ(ir_.CreateExtractElement(counters, lane), ir_.getInt32(counter_of_[block]));
    llvm::Value* alone = ir_.CreateAnd(
        is_here, ir_.CreateICmpEQ(ir_.CreateAnd(chance, ir_.getInt32(solo_chance - 1)), ir_.getInt32(0)), "alone");
    llvm::Value* is_it = ir_.CreateICmpEQ(lane_numbers(ir_.getInt32Ty()), splat(lane));
    counter_mask_ = ir_.CreateAnd(counter_mask_, ir_.CreateOr(is_it, splat(ir_.CreateNot(alone))));
}

/// The number of the block that runs next: the lowest, but that of a lane further on where it has waited for long. With
/// a random schedule that of any lane that is neither finished nor gathering.
llvm::Value* GraphEmitter::pick_block(llvm::Value* counters) {
    llvm::Value* lowest = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::vector_reduce_umin, counters);
    llvm::Value* turn = ir_.CreateLoad(ir_.getInt32Ty(), turn_lane_);
    if (unit_.options.random_schedule) {
        turn = ir_.CreateXor(turn, ir_.CreateShl(turn, 13));
        turn = ir_.CreateXor(turn, ir_.CreateLShr(turn, 17));
        turn = ir_.CreateXor(turn, ir_.CreateShl(turn, 5));
        ir_.CreateStore(turn, turn_lane_);
        llvm::Value* chosen = ir_.CreateExtractElement(counters, lane_of_chance(turn));
        llvm::Value* can_go = ir_.CreateOr(ir_.CreateICmpULT(chosen, ir_.getInt32(gathering)), is_open(chosen));
        return ir_.CreateSelect(can_go, chosen, lowest, "picked");
    }
    llvm::Value* rounds = ir_.CreateLoad(ir_.getInt32Ty(), waited_rounds_);
    llvm::Value* due = ir_.CreateICmpUGE(rounds, ir_.getInt32(fairness_period));
    llvm::BasicBlock *from = ir_.GetInsertBlock(), *overtake = new_block("overtake"), *go = new_block("go");
    ir_.CreateCondBr(due, overtake, go, llvm::MDBuilder(ir_.getContext()).createUnlikelyBranchWeights());

    // The next lane, in turn, that is neither where the lowest are, nor gathers, nor has finished; or that gathers
    // where all members may have come. Or, if one is to go alone, that neither gathers nor has finished.
    ir_.SetInsertPoint(overtake);
    llvm::Value *alone = ir_.getFalse(), *there = counters, *first = lowest;
    if (may_go_alone_) {
        llvm::Value* count = ir_.CreateAdd(ir_.CreateLoad(ir_.getInt32Ty(), overtakings_), ir_.getInt32(1));
        ir_.CreateStore(count, overtakings_);
        alone = ir_.CreateICmpEQ(ir_.CreateURem(count, ir_.getInt32(solo_period)), ir_.getInt32(0), "alone");
        there = unpark(counters);
        first = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::vector_reduce_umin, there);
    }
    llvm::Value* can_go = ir_.CreateICmpULT(there, splat(ir_.getInt32(gathering)));
    llvm::Value* waits = ir_.CreateAnd(ir_.CreateOr(splat(alone), ir_.CreateICmpNE(there, splat(first))), can_go);
    if (may_go_alone_) {
        llvm::Value* comes_later = ir_.CreateAnd(splat(ir_.CreateNot(alone)), ir_.CreateICmpNE(there, splat(first)));
        waits = ir_.CreateOr(waits, ir_.CreateAnd(is_open(there), comes_later));
    }
    llvm::Value* lanes = to_bits(waits);
    llvm::Value* rotated = ir_.CreateLShr(ir_.CreateOr(lanes, ir_.CreateShl(lanes, std::uint64_t{width_})),
                                          ir_.CreateZExt(turn, ir_.getInt64Ty()));
    llvm::Value* distance = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, rotated, ir_.getFalse());
    llvm::Value* lane =
        ir_.CreateURem(ir_.CreateAdd(turn, ir_.CreateTrunc(distance, ir_.getInt32Ty())), ir_.getInt32(width_));
    llvm::Value* nobody = ir_.CreateICmpEQ(lanes, ir_.getInt64(0));
    ir_.CreateStore(ir_.CreateURem(ir_.CreateAdd(lane, ir_.getInt32(1)), ir_.getInt32(width_)), turn_lane_);
    ir_.CreateStore(
        ir_.CreateSelect(alone, ir_.getInt32(fairness_period - solo_rounds * waiting_round), ir_.getInt32(0)),
        waited_rounds_);
    llvm::Value* chosen = ir_.CreateSelect(nobody, first, ir_.CreateExtractElement(there, lane));
    if (may_go_alone_) park_others(there, lane, ir_.CreateAnd(alone, ir_.CreateNot(nobody)));
    ir_.CreateBr(go);

    ir_.SetInsertPoint(go);
    llvm::PHINode* picked = ir_.CreatePHI(ir_.getInt32Ty(), 2, "picked");
    picked->addIncoming(lowest, from);
    picked->addIncoming(chosen, overtake);
    return picked;
}

/// Of numbers of blocks: may members meet there before all others have come as far as they can?
llvm::Value* GraphEmitter::is_open(llvm::Value* numbers) {
    const auto like = [&](std::uint32_t number) { return llvm::ConstantInt::get(numbers->getType(), number); };
    return ir_.CreateICmpEQ(ir_.CreateAnd(numbers, like(gathering | closed)), like(gathering));
}

/// Where lanes gather and others could go on: for those only whose members are of this step and have all come, and for
/// nobody where there are none. The others go on being waited for: a step that stood still for members in another one
/// might have lanes that those need.
void GraphEmitter::let_members_meet(BlockId block, llvm::Value* counters) {
    llvm::Value* lowest = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::vector_reduce_umin, counters);
    llvm::Value* in_turn = ir_.CreateICmpEQ(lowest, ir_.getInt32(counter_of_[block]), "in.turn");
    const ptx::Operand& members = *common_members(graph_, block);
    llvm::Value* masks = members.kind == ptx::Operand::Kind::reg ? broadcast(value_at(block, members.index))
                                                                 : splat(ir_.getInt32(std::uint32_t(members.value)));
    llvm::Value* elsewhere =
        ir_.CreateTrunc(ir_.CreateAnd(live_bits(), ir_.CreateNot(to_bits(counter_mask_))), ir_.getInt32Ty());
    if (width_ < abi::warp_size) {
        llvm::Value* first_lane =
            ir_.CreateURem(ir_.CreateMul(step_, ir_.getInt32(width_)), ir_.getInt32(abi::warp_size));
        llvm::Value* of_step = ir_.CreateShl(ir_.getInt32((1u << width_) - 1), first_lane);
        elsewhere = ir_.CreateOr(ir_.CreateShl(elsewhere, first_lane), ir_.CreateNot(of_step));
    }
    llvm::Value* missing = ir_.CreateAnd(masks, splat(elsewhere));
    llvm::Value* have_come = ir_.CreateICmpEQ(missing, llvm::Constant::getNullValue(missing->getType()));
    counter_mask_ = ir_.CreateAnd(counter_mask_, ir_.CreateOr(have_come, splat(in_turn)), "members.mask");
    llvm::BasicBlock* meet = new_block("meet");
    ir_.CreateCondBr(any(counter_mask_), meet, dispatch_block_);
    ir_.SetInsertPoint(meet);
}

/// If `alone`, lets all that could go on, but `lane`, stand still; nobody does otherwise.
void GraphEmitter::park_others(llvm::Value* counters, llvm::Value* lane, llvm::Value* alone) {
    llvm::Value* others = ir_.CreateAnd(ir_.CreateICmpNE(lane_numbers(ir_.getInt32Ty()), splat(lane)),
                                        ir_.CreateICmpULT(counters, splat(ir_.getInt32(gathering))));
    llvm::Value* parks = ir_.CreateAnd(others, splat(alone));
    ir_.CreateStore(ir_.CreateSelect(parks, ir_.CreateOr(counters, splat(ir_.getInt32(parked))), counters), counters_);
}

/// The numbers of lanes that stood still while another one went alone, as they were.
llvm::Value* GraphEmitter::unpark(llvm::Value* counters) {
    llvm::Value* is_parked = ir_.CreateICmpULT(counters, splat(ir_.getInt32(gathering)));
    return ir_.CreateSelect(is_parked, ir_.CreateAnd(counters, splat(ir_.getInt32(~parked))), counters);
}

/// Behind a loop that waits all are met again: there nobody goes alone.
void GraphEmitter::find_ends_of_waits() {
    ends_wait_.assign(graph_.blocks.size(), false);
    for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
        const std::uint32_t around = wait_around(block);
        if (around == no_loop) continue;
        for (BlockId to : graph_.blocks[block].successors)
            if (wait_around(to) != around) ends_wait_[to] = true;
    }
}

/// Which loops' rounds count for how much; by header. Retreating edges to other blocks are of irreducible cycles.
void GraphEmitter::weigh_rounds() {
    const std::vector<bool>& waits = waiting_loops();
    round_weight_.assign(graph_.blocks.size(), waiting_round);
    for (std::size_t i = 0; i < graph_.forest.loops.size(); ++i)
        if (!waits[i]) round_weight_[graph_.forest.loops[i].header] = other_round;
}

void GraphEmitter::emit_counter_edge(BlockId block, unsigned successor, llvm::Value* mask) {
    BlockId to = graph_.blocks[block].successors[successor];
    const KnownValues::Mark known = known_.mark();
    move_phis(block, successor, mask);
    known_.go_back(known);
    llvm::Value* old = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
    llvm::Value* next = splat(ir_.getInt32(counter_of_[to]));
    ir_.CreateStore(mask ? ir_.CreateSelect(mask, next, old) : next, counters_);
}

/// Before the edges out of `block`: where one goes back, a round may have been made.
void GraphEmitter::count_round(BlockId block) {
    if (unit_.options.random_schedule) return;
    std::uint32_t weight = 0;
    for (BlockId to : graph_.blocks[block].successors)
        if (order_of_[to] <= order_of_[block]) weight = std::max(weight, round_weight_[to]);
    if (weight == 0) return;
    llvm::Value* rounds = ir_.CreateLoad(ir_.getInt32Ty(), waited_rounds_);
    ir_.CreateStore(ir_.CreateAdd(rounds, ir_.getInt32(weight)), waited_rounds_);
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

/// All that wait in the loop at hand, or else at its block; those among them that stand still while another goes alone.
llvm::Value* GraphEmitter::lanes_here() {
    if (plan_ || !counters_) return active_bits();
    std::vector<std::uint32_t> places{counter_of_[current_block_]};
    if (const std::uint32_t loop = wait_around(current_block_); loop != no_loop)
        for (BlockId block : graph_.forest.loops[loop].blocks) places.push_back(counter_of_[block]);
    std::erase(places, finished); // is in another region
    std::ranges::sort(places);
    llvm::Value* counters = unpark(ir_.CreateLoad(counters_->getAllocatedType(), counters_));
    llvm::Value* here = splat(ir_.getFalse());
    for (std::size_t i = 0; i < places.size();) { // by runs of numbers: there are one or two
        const std::uint32_t first = places[i];
        std::uint32_t last = first;
        while (++i < places.size() && places[i] - last <= 1) last = places[i];
        llvm::Value* distance = ir_.CreateSub(counters, splat(ir_.getInt32(first)));
        here = ir_.CreateOr(here, ir_.CreateICmpULE(distance, splat(ir_.getInt32(last - first))));
    }
    return to_bits(here);
}

void GraphEmitter::emit_program_counters(const RegionView& view, const RegionInterface& interface) {
    plan_ = nullptr;
    prepare(view, interface);
    std::size_t crossing = std::size_t(std::count(crosses_.begin(), crosses_.end(), true));
    if (crossing * view.blocks.size() > memory_slot_threshold) use_memory_slots();
    counter_of_.assign(graph_.blocks.size(), finished);
    order_of_.assign(graph_.blocks.size(), finished);
    const bool queries_gather = unit_.options.random_schedule && !unit_.spins;
    const bool waits =
        width_ > 1 && (!graph_.forest.reducible || std::ranges::any_of(waiting_loops(), std::identity{}));
    may_go_alone_ = waits && !unit_.options.random_schedule;
    std::vector<bool> opens(graph_.blocks.size(), false);
    if (waits && graph_.is_entry) // in a function the caller's lanes may be anywhere
        for (BlockId id : view.blocks) opens[id] = common_members(graph_, id) != nullptr;
    if (!number_by_loops(graph_, view, queries_gather, opens, counter_of_, order_of_))
        number_blocks(graph_, view, view.entry, queries_gather, opens, counter_of_, order_of_);
    weigh_rounds();
    if (may_go_alone_) find_ends_of_waits();

    counters_ = entry_alloca(lanes_type(ir_.getInt32Ty()), "counters");
    turn_lane_ = entry_alloca(ir_.getInt32Ty(), "turn.lane");
    ir_.CreateStore(unit_.options.random_schedule ? initial_chance() : ir_.getInt32(0), turn_lane_);
    waited_rounds_ = entry_alloca(ir_.getInt32Ty(), "rounds");
    ir_.CreateStore(ir_.getInt32(0), waited_rounds_);
    overtakings_ = entry_alloca(ir_.getInt32Ty(), "overtakings");
    ir_.CreateStore(ir_.getInt32(0), overtakings_);
    ir_.CreateStore(
        ir_.CreateSelect(entry_mask_, splat(ir_.getInt32(counter_of_[view.entry])), splat(ir_.getInt32(finished))),
        counters_);
    place_round_numbers();
    if (interface.enter) interface.enter();
    dispatch_block_ = new_block("dispatch");
    ir_.CreateBr(dispatch_block_);

    ir_.SetInsertPoint(dispatch_block_);
    llvm::Value* counters = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
    llvm::Value* picked = pick_block(counters);
    llvm::BasicBlock* done = new_block("all.finished");
    llvm::SwitchInst* dispatch = ir_.CreateSwitch(picked, done, unsigned(view.blocks.size()));
    ir_.SetInsertPoint(done);
    if (may_go_alone_) { // or who went alone has finished or gathers
        llvm::BasicBlock *others = new_block("others.go.on"), *exit = new_block("exit");
        ir_.CreateCondBr(ir_.CreateICmpEQ(picked, ir_.getInt32(finished)), exit, others);
        ir_.SetInsertPoint(others);
        ir_.CreateStore(unpark(counters), counters_);
        ir_.CreateBr(dispatch_block_);
        ir_.SetInsertPoint(exit);
    }
    interface.exit();

    for (BlockId id : view.blocks) {
        dispatch->addCase(ir_.getInt32(counter_of_[id]), blocks_[id]);
        current_block_ = id;
        current_instruction_ = nullptr;
        known_.clear();
        ir_.SetInsertPoint(blocks_[id]);
        llvm::Value* current = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
        if (may_go_alone_ && ends_wait_[id]) {
            current = unpark(current);
            ir_.CreateStore(current, counters_);
        }
        counter_mask_ = ir_.CreateICmpEQ(current, splat(ir_.getInt32(counter_of_[id])), "block.mask");
        part_by_chance(id, current);
        if (asks_who_is_here(graph_.blocks[id])) counter_mask_ = lanes_of_one_round(counter_mask_);
        begin_block_code();
        if (opens[id]) let_members_meet(id, current);
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
        count_round(id);
        count_loop_rounds(id);
        if (block.terminator.kind == Terminator::Kind::exit) {
            llvm::Value* old = ir_.CreateLoad(counters_->getAllocatedType(), counters_);
            ir_.CreateStore(ir_.CreateSelect(counter_mask_, splat(ir_.getInt32(finished)), old), counters_);
        } else if (block.terminator.kind == Terminator::Kind::jump) {
            emit_spin_yield(id);
            emit_counter_edge(id, 0, counter_mask_);
        } else {
            emit_spin_yield(id);
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
