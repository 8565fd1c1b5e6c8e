// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/lane_regions.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/loops/lane_walks.h"
#include "translator/analysis/waits/thread_walks.h"
#include "translator/emit/frame_words.h"
#include "translator/kernel_abi.h"
#include "translator/llvm/drop_unchanged_saves.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>

#include <algorithm>

namespace ptarmigan::translator {

namespace {

/// Of the lanes that a wide step has, from which on it does not matter that others have left the loop.
constexpr double most_lanes = 0.75;

bool lies_in(const LoopInfo& loop, const RegionView& region) {
    return std::all_of(loop.blocks.begin(), loop.blocks.end(), [&](BlockId block) {
        return region.contains[block] && !(block < region.cut_after.size() && region.cut_after[block]);
    });
}

/// Nothing but arithmetic, loads, and stores to shared memory, about which ThreadWalks tells.
bool may_run_lane_by_lane(const FunctionGraph& graph, const RegionView& region) {
    using ptx::Effects;
    for (BlockId id : region.blocks) {
        if (id == graph.exit_block) return false;
        const Block& block = graph.blocks[id];
        const bool is_cut = id < region.cut_after.size() && region.cut_after[id];
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (is_cut && &instruction == &block.instructions.back()) continue; // the barrier, which ends the region
            if (has_effect(inst, Effects::atomic | Effects::convergent | Effects::barrier | Effects::fence |
                                     Effects::async | Effects::call | Effects::volatile_read | Effects::waits) ||
                is_strong(inst))
                return false;
            const bool loads = has_effect(inst, Effects::load), stores = has_effect(inst, Effects::store);
            // Whose trap it is, and what the texture unit is asked for, is told by the step's number.
            if (instruction.check_alignment != 0 || (has_effect(inst, Effects::may_trap) && !loads && !stores) ||
                ((loads || stores) && opcode(inst) != "ld" && opcode(inst) != "st"))
                return false;
            if (stores && inst.space != ptx::StateSpace::shared) return false;
            // What others of the warp write to it is not known.
            if (loads && inst.space == ptx::StateSpace::local) return false;
        }
    }
    return true;
}

/// Lanes read what their step keeps, and leave nothing behind but what the whole CTA has in common.
bool keeps_nothing_new(const FunctionGraph& graph, const BarrierPlan& barriers, std::size_t region) {
    const RegionView& view = barriers.regions[region];
    for (ValueId value : barriers.live_in[region])
        if (graph.values[value].shape.guard != no_value || graph.values[value].shape.steps) return false;
    for (std::size_t next = 1; next < barriers.regions.size(); ++next) {
        const BlockId barrier = barriers.resume_of[next];
        if (barrier >= view.cut_after.size() || !view.contains[barrier] || !view.cut_after[barrier]) continue;
        for (ValueId value : barriers.live_in[next]) {
            const SsaValue& info = graph.values[value];
            if (info.block != no_block && view.contains[info.block] && info.shape.level != Shape::Level::cta_uniform)
                return false;
        }
    }
    return true;
}

} // namespace

std::vector<bool> choose_lane_regions(const FunctionGraph& graph, const BlockShape& block,
                                      const BarrierPlan& barriers) {
    std::vector<bool> chosen(barriers.regions.size(), false);
    if (barriers.regions.size() < 2 || graph.shared.empty() || graph.interleaved_bytes != 0) return chosen;
    const LaneWalks walks(graph);
    std::optional<ThreadWalks> threads;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        std::vector<std::size_t> walked;
        bool others = false;
        for (std::size_t loop = 0; loop < graph.forest.loops.size(); ++loop) {
            const LoopInfo& info = graph.forest.loops[loop];
            if (!walks.is_innermost(info) || !lies_in(info, barriers.regions[i])) continue;
            if (info.divergent_exit && walks.loads_more_than(LaneWalks::worthwhile_share, info))
                walked.push_back(loop);
            else
                others = true;
        }
        if (walked.empty() || others || !may_run_lane_by_lane(graph, barriers.regions[i]) ||
            !keeps_nothing_new(graph, barriers, i))
            continue;
        if (!threads) threads = walk_threads(graph, block);
        if (!threads) return chosen;
        chosen[i] = std::all_of(walked.begin(), walked.end(),
                                [&](std::size_t loop) { return threads->lanes_in_loop[loop] < most_lanes; });
    }
    return chosen;
}

StepLanes::StepLanes(Ir& ir, unsigned width, llvm::Value* thread, llvm::Value* frame, llvm::Value* cta_in)
    : ir_(ir), width_(width), frame_(frame), cta_in_(cta_in), step_(ir.CreateUDiv(thread, ir.getInt32(width), "step")),
      lane_(ir.CreateURem(thread, ir.getInt32(width), "lane")) {}

llvm::Value* StepLanes::own(const KeptValue& value) const {
    const auto at = [&](llvm::Value* base, std::uint32_t offset) {
        return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), base, offset);
    };
    if (value.number) return behind_first(in_step(ir_, value.scalar, step_, *value.number), value.shape);
    if (value.masks) {
        llvm::Value* word = ir_.CreateInBoundsGEP(value.masks->getValueType(), value.masks, {ir_.getInt32(0), step_});
        return own_bit(value.shape, ir_.CreateLoad(ir_.getInt32Ty(), word));
    }
    if (!value.place) return nullptr;
    const std::uint32_t offset = value.place->offset;
    if (value.place->in_cta_frame)
        return from_word(ir_, ir_.CreateLoad(ir_.getInt64Ty(), at(cta_in_, offset * 8)), value.scalar);
    const bool is_predicate = value.scalar->isIntegerTy(1);
    if (!value.shape.is_varying() && is_predicate)
        return ir_.CreateTrunc(ir_.CreateLoad(ir_.getInt8Ty(), at(frame_, offset)), value.scalar);
    if (!value.shape.is_varying()) return behind_first(ir_.CreateLoad(value.scalar, at(frame_, offset)), value.shape);
    if (is_predicate) {
        llvm::LoadInst* word = ir_.CreateLoad(ir_.getInt64Ty(), at(frame_, offset));
        word->setMetadata(mask_word_metadata, llvm::MDNode::get(ir_.getContext(), {}));
        return own_bit(value.shape, word);
    }
    // As a whole, so that a single step's frame becomes registers.
    llvm::Type* lanes = llvm::FixedVectorType::get(value.scalar, width_);
    return ir_.CreateExtractElement(ir_.CreateAlignedLoad(lanes, at(frame_, offset), lanes_alignment(lanes)), lane_);
}

llvm::Value* StepLanes::own_bit(const Shape& shape, llvm::Value* word) const {
    if (shape.is_varying()) word = ir_.CreateLShr(word, ir_.CreateZExt(lane_, word->getType()));
    return ir_.CreateTrunc(word, ir_.getInt1Ty());
}

/// What the lane of a uniform or affine value has whose lane 0 has `first`.
llvm::Value* StepLanes::behind_first(llvm::Value* first, const Shape& shape) const {
    if (!shape.is_affine()) return first;
    llvm::Type* type = first->getType();
    const LaneOffsets& offsets = *shape.offsets;
    const std::int64_t distance = offsets.size() > 1 ? offsets[1] : 0;
    bool is_even = true;
    for (std::size_t i = 0; i < offsets.size(); ++i) is_even = is_even && offsets[i] == std::int64_t(i) * distance;
    if (is_even)
        return ir_.CreateAdd(first, ir_.CreateMul(ir_.CreateZExtOrTrunc(lane_, type),
                                                  llvm::ConstantInt::get(type, std::uint64_t(distance))));
    llvm::SmallVector<llvm::Constant*, 32> all;
    for (std::int64_t offset : offsets) all.push_back(llvm::ConstantInt::get(type, std::uint64_t(offset)));
    return ir_.CreateAdd(first, ir_.CreateExtractElement(llvm::ConstantVector::get(all), lane_));
}

llvm::Value* run_lanes(Ir& ir, unsigned width, llvm::Function* region, llvm::ArrayRef<llvm::Value*> of_step) {
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock* loop = llvm::BasicBlock::Create(ir.getContext(), "lanes", before->getParent());
    llvm::BasicBlock* after = llvm::BasicBlock::Create(ir.getContext(), "lanes.done", before->getParent());
    ir.CreateBr(loop);
    ir.SetInsertPoint(loop);
    llvm::PHINode* lane = ir.CreatePHI(ir.getInt32Ty(), 2, "lane");
    lane->addIncoming(ir.getInt32(0), before);
    llvm::Value* noted =
        ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), of_step[0], offsetof(abi::CtaContext, noted_lane));
    ir.CreateStore(lane, noted, /*isVolatile=*/true); // it must have been written when an access is made
    llvm::SmallVector<llvm::Value*, 5> arguments(of_step.begin(), of_step.end());
    arguments[1] = ir.CreateAdd(ir.CreateMul(of_step[1], ir.getInt32(width)), lane, "thread");
    llvm::Value* next = ir.CreateCall(region, arguments);
    llvm::Value* following = ir.CreateAdd(lane, ir.getInt32(1), "", true, true);
    lane->addIncoming(following, ir.GetInsertBlock());
    ir.CreateCondBr(ir.CreateICmpULT(following, ir.getInt32(width)), loop, after);
    ir.SetInsertPoint(after);
    return next;
}

} // namespace ptarmigan::translator
