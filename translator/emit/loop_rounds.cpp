// SPDX-License-Identifier: Apache-2.0
// Lanes that ask which others are with them (activemask) must not be told of lanes that are at the same place in
// another round of a loop: a GPU's lanes of different rounds are never in step. Masks of a whole warp keep rounds apart
// by themselves. Narrower steps and program counters may let a lane come round again before others have come once, so
// each lane counts the rounds of the loops around such a question, in one number for all of them.
#include "translator/analysis/waits/meeting_places.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <algorithm>

namespace ptarmigan::translator {

namespace {
/// What one round of the loop around counts: multiples of it are 2^31 apart from each other for 2^31 rounds (the golden
/// ratio), so two loops in each other have a number for every pair of rounds.
constexpr std::uint64_t outer_round = 0x9e3779b97f4a7c15;
} // namespace

void GraphEmitter::place_round_numbers() {
    round_numbers_.clear();
    if ((width_ == abi::warp_size && plan_) || !has_queries(graph_)) return;
    const std::vector<LoopInfo>& loops = graph_.forest.loops;
    std::vector<bool> asked(loops.size() + 1, false);
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        if (!asks_who_is_here(graph_.blocks[id])) continue;
        for (std::uint32_t loop = graph_.forest.loop_of[id]; loop != no_loop; loop = loops[loop].parent)
            asked[loop] = true;
    }
    asked[loops.size()] = !graph_.forest.reducible;
    round_numbers_.assign(asked.size(), nullptr);
    for (std::size_t loop = 0; loop < asked.size(); ++loop) {
        if (!asked[loop]) continue;
        round_numbers_[loop] = entry_alloca(lanes_type(ir_.getInt64Ty()), "loop.rounds");
        ir_.CreateStore(llvm::Constant::getNullValue(round_numbers_[loop]->getAllocatedType()), round_numbers_[loop]);
    }
}

/// Of the loops around `current_block_`; of an irreducible graph that of all ways back.
llvm::Value* GraphEmitter::round_numbers() {
    if (round_numbers_.empty()) return nullptr;
    const std::uint32_t loop = graph_.forest.reducible ? graph_.forest.loop_of[current_block_] : no_loop;
    llvm::AllocaInst* place =
        graph_.forest.reducible ? (loop == no_loop ? nullptr : round_numbers_[loop]) : round_numbers_.back();
    return place ? ir_.CreateLoad(place->getAllocatedType(), place) : nullptr;
}

/// Where `block` ends.
void GraphEmitter::count_loop_rounds(BlockId block) {
    const auto set = [&](llvm::AllocaInst* place, llvm::Value* next) {
        llvm::Value* old = ir_.CreateLoad(place->getAllocatedType(), place);
        ir_.CreateStore(width_ == 1 ? next : ir_.CreateSelect(block_mask(block), next, old), place);
    };
    const auto number_of = [&](llvm::AllocaInst* place) { return ir_.CreateLoad(place->getAllocatedType(), place); };
    const auto one_more = [&](llvm::AllocaInst* place) {
        set(place, ir_.CreateAdd(number_of(place), splat(ir_.getInt64(1))));
    };
    if (round_numbers_.empty()) return;
    if (!graph_.forest.reducible) {
        if (ends_round_[block]) one_more(round_numbers_.back());
        return;
    }
    for (std::size_t i = 0; i < graph_.forest.loops.size(); ++i) {
        const LoopInfo& loop = graph_.forest.loops[i];
        if (!round_numbers_[i]) continue;
        if (loop.latch == block) one_more(round_numbers_[i]);
        if (loop.preheader != block || loop.parent == no_loop) continue;
        set(round_numbers_[i], ir_.CreateMul(number_of(round_numbers_[loop.parent]), splat(ir_.getInt64(outer_round))));
    }
}

/// With program counters: those of `mask` that are in the round of the first of them.
llvm::Value* GraphEmitter::lanes_of_one_round(llvm::Value* mask) {
    llvm::Value* numbers = round_numbers();
    if (!numbers) return mask;
    llvm::Value* first = ir_.CreateExtractElement(numbers, first_lane(to_bits(mask)));
    return ir_.CreateAnd(mask, ir_.CreateICmpEQ(numbers, splat(first)));
}

} // namespace ptarmigan::translator
