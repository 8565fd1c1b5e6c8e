// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/chains_ahead.h"

#include "translator/llvm/step_loops.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>
#include <vector>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// Links of a chain that is worth it: some 60 cycles.
constexpr unsigned shortest_chain = 16;
/// Vector registers that a round's other instructions compute, so that a CPU does not see the next round's chain.
constexpr unsigned shortest_rest = 128;
/// Of vectors, what is kept from one round to the next.
constexpr unsigned most_registers = 4;

bool is_link(const Instruction& instruction) {
    if (!instruction.getType()->isFPOrFPVectorTy()) return false;
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    return (call && call->getIntrinsicID() == Intrinsic::fma) || instruction.getOpcode() == Instruction::FAdd;
}

class Rounds {
public:
    Rounds(Loop& loop, DominatorTree& tree, LoopInfo& loops, const TargetTransformInfo& target)
        : loop_(loop), body_(*loop.getHeader()), tree_(tree), loops_(loops),
          bits_(std::max<unsigned>(
              128, unsigned(target.getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector).getFixedValue()))) {}

    bool run() {
        if (loop_.getNumBlocks() != 1 || is_step_loop(loop_) || !find_free() || !find_chains()) return false;
        before_ = loop_.getLoopPreheader();
        if (!before_) before_ = InsertPreheaderForLoop(&loop_, &tree_, &loops_, nullptr, /*PreserveLCSSA=*/false);
        if (!before_) return false;
        write();
        return true;
    }

private:
    unsigned registers(const Value& value) const {
        const auto bits = unsigned(value.getType()->getPrimitiveSizeInBits().getFixedValue());
        return value.getType()->isVectorTy() && !value.getType()->getScalarType()->isIntegerTy(1)
                   ? (bits + bits_ - 1) / bits_
                   : 0;
    }

    bool is_here(const Value* value) const {
        const auto* instruction = dyn_cast<Instruction>(value);
        return instruction && instruction->getParent() == &body_;
    }

    /// What hangs on numbers that count rounds alone; false if the loop does more than compute.
    bool find_free() {
        branch_ = dyn_cast<BranchInst>(body_.getTerminator());
        if (!branch_ || !branch_->isConditional()) return false;
        for (PHINode& phi : body_.phis()) {
            auto* next = dyn_cast<BinaryOperator>(phi.getIncomingValueForBlock(&body_));
            if (next && next->getOpcode() == Instruction::Add && next->getOperand(0) == &phi &&
                !is_here(next->getOperand(1)))
                counters_.push_back(&phi), free_.insert(&phi);
        }
        for (Instruction& instruction : body_) {
            if (isa<PHINode>(instruction) || instruction.isTerminator()) continue;
            const auto* call = dyn_cast<IntrinsicInst>(&instruction);
            const bool is_hint = call && call->getIntrinsicID() == Intrinsic::prefetch;
            if (instruction.mayWriteToMemory() && !is_hint) return false;
            if (isa<CallBase>(instruction) && !call) return false;
            const auto* load = dyn_cast<LoadInst>(&instruction);
            if (load ? !load->isSimple() : instruction.mayReadOrWriteMemory()) continue;
            if (all_of(instruction.operands(),
                       [&](const Use& use) { return !is_here(use) || free_.contains(use.get()); }))
                free_.insert(&instruction);
        }
        return !counters_.empty() && (!is_here(branch_->getCondition()) || free_.contains(branch_->getCondition()));
    }

    bool find_chains() {
        DenseMap<const Value*, unsigned> length;
        unsigned kept = 0;
        for (Instruction& instruction : body_) {
            if (!free_.contains(&instruction) || isa<PHINode>(instruction) || !is_link(instruction)) continue;
            unsigned before = 0;
            for (const Use& use : instruction.operands()) before = std::max(before, length.lookup(use.get()));
            length[&instruction] = before + 1;
        }
        for (Instruction& instruction : body_) {
            if (length.lookup(&instruction) < shortest_chain) continue;
            const bool is_last = all_of(instruction.users(),
                                        [&](const User* user) { return !is_here(user) || length.lookup(user) == 0; });
            if (!is_last) continue;
            chains_.push_back(&instruction);
            kept += registers(instruction);
        }
        if (chains_.empty() || kept > most_registers) return false;
        std::vector<Value*> open(chains_.begin(), chains_.end());
        while (!open.empty()) {
            Value* value = open.back();
            open.pop_back();
            if (!is_here(value) || isa<PHINode>(value) || !parts_.insert(cast<Instruction>(value)).second) continue;
            for (Use& use : cast<Instruction>(value)->operands()) open.push_back(use.get());
        }
        unsigned rest = 0;
        for (Instruction& instruction : body_)
            if (!parts_.contains(&instruction) && !isa<PHINode>(instruction)) {
                order_.push_back(&instruction);
                if (!isa<ShuffleVectorInst, BitCastInst, InsertElementInst>(instruction))
                    rest += registers(instruction);
            }
        return rest >= shortest_rest;
    }

    using Values = DenseMap<Value*, Value*>;

    Value* copied(Value* value, Values& values, IRBuilder<>& ir) {
        if (!is_here(value)) return value;
        if (const auto known = values.find(value); known != values.end()) return known->second;
        Instruction* made = cast<Instruction>(value)->clone();
        for (Use& use : made->operands()) use.set(copied(use.get(), values, ir));
        ir.Insert(made, value->getName());
        values[value] = made;
        return made;
    }

    void write() {
        IRBuilder<> ir(before_->getTerminator());
        Values first, next;
        for (PHINode* counter : counters_) first[counter] = counter->getIncomingValueForBlock(before_);
        std::vector<PHINode*> kept;
        for (Instruction* chain : chains_) {
            Value* start = copied(chain, first, ir);
            PHINode* phi = PHINode::Create(chain->getType(), 2, "", body_.getFirstNonPHIIt());
            phi->addIncoming(start, before_);
            kept.push_back(phi);
        }
        // The next round's numbers, or this one's if there is none.
        ir.SetInsertPoint(&*body_.getFirstInsertionPt());
        Values here;
        for (PHINode* counter : counters_) here[counter] = counter;
        Value* leaves = copied(branch_->getCondition(), here, ir);
        const bool leaves_if = branch_->getSuccessor(0) != &body_;
        for (PHINode* counter : counters_) {
            Value* following = copied(counter->getIncomingValueForBlock(&body_), here, ir);
            next[counter] =
                leaves_if ? ir.CreateSelect(leaves, counter, following) : ir.CreateSelect(leaves, following, counter);
        }
        // Part by part among the rest.
        std::vector<Instruction*> parts;
        SmallVector<WeakTrackingVH, 64> old;
        for (Instruction& instruction : body_)
            if (parts_.contains(&instruction)) parts.push_back(&instruction), old.emplace_back(&instruction);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            ir.SetInsertPoint(order_[i * (order_.size() - 1) / parts.size()]);
            copied(parts[i], next, ir);
        }
        for (std::size_t i = 0; i < chains_.size(); ++i) {
            chains_[i]->replaceAllUsesWith(kept[i]);
            kept[i]->addIncoming(next[chains_[i]], &body_);
        }
        RecursivelyDeleteTriviallyDeadInstructionsPermissive(old);
    }

    Loop& loop_;
    BasicBlock &body_, *before_ = nullptr;
    DominatorTree& tree_;
    LoopInfo& loops_;
    unsigned bits_;
    BranchInst* branch_ = nullptr;
    std::vector<PHINode*> counters_;
    SmallPtrSet<const Value*, 32> free_;
    std::vector<Instruction*> chains_; ///< their last links
    SmallPtrSet<Instruction*, 32> parts_;
    std::vector<Instruction*> order_; ///< the rest
};

} // namespace

PreservedAnalyses ChainsAhead::run(Function& function, FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<LoopAnalysis>(function);
    bool changed = false;
    for (Loop* loop : loops.getLoopsInPreorder())
        if (loop->isInnermost())
            changed |= Rounds(*loop, analyses.getResult<DominatorTreeAnalysis>(function), loops,
                              analyses.getResult<TargetIRAnalysis>(function))
                           .run();
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
