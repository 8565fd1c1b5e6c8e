// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/rare_steps.h"

#include "translator/llvm/step_loops.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace ptarmigan::translator {
namespace {

using namespace llvm;

class Parts {
public:
    explicit Parts(Loop& loop) : loop_(loop), head_(loop.getHeader()), tail_(loop.getLoopLatch()) {}

    bool fits() {
        if (loop_.getNumBlocks() != 3 || !tail_ || tail_ == head_ || loop_.getExitingBlock() != tail_) return false;
        auto* branch = dyn_cast<BranchInst>(head_->getTerminator());
        number_ = loop_.getCanonicalInductionVariable();
        if (!branch || !branch->isConditional() || !number_ || !loop_.getLoopPredecessor()) return false;
        test_ = dyn_cast<Instruction>(branch->getCondition());
        holds_if_ = branch->getSuccessor(1) == tail_;
        rare_ = branch->getSuccessor(holds_if_ ? 0 : 1);
        return test_ && test_->getParent() == head_ && rare_ != tail_ && rare_->getSinglePredecessor() == head_ &&
               rare_->getSingleSuccessor() == tail_ && !isa<PHINode>(rare_->front()) && writes_nothing_twice() &&
               is_only_stored();
    }

    RareSteps part() {
        lift();
        ValueToValueMapTy copies;
        BasicBlock* begin = CloneBasicBlock(head_, copies, ".rare", head_->getParent());
        BasicBlock* end = CloneBasicBlock(tail_, copies, ".rare", head_->getParent());
        copies[head_] = begin;
        copies[tail_] = end;
        remapInstructionsInBlocks({begin, end, rare_}, copies);
        RareSteps steps{head_, test_, holds_if_, nullptr, {}, begin, end, cast<PHINode>(copies[number_]), nullptr};
        for (PHINode& phi : make_early_inc_range(end->phis())) {
            phi.replaceAllUsesWith(phi.getIncomingValueForBlock(rare_));
            phi.eraseFromParent();
        }
        for (PHINode& phi : head_->phis()) {
            auto* copy = cast<PHINode>(copies[&phi]);
            copy->removeIncomingValue(loop_.getLoopPredecessor(), false);
            steps.phis.push_back({&phi, copy});
        }
        steps.next = steps.number->getIncomingValueForBlock(end);
        begin->getTerminator()->eraseFromParent();
        BranchInst::Create(rare_, begin);
        end->getTerminator()->eraseFromParent();
        new UnreachableInst(end->getContext(), end); // until joined
        for (Instruction& instruction : make_early_inc_range(reverse(*begin)))
            if (isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
        // The usual way.
        for (PHINode& phi : make_early_inc_range(tail_->phis())) {
            phi.replaceAllUsesWith(phi.getIncomingValueForBlock(head_));
            phi.eraseFromParent();
        }
        steps.first = &tail_->front();
        head_->getTerminator()->eraseFromParent();
        head_->splice(head_->end(), tail_);
        head_->replaceSuccessorsPhiUsesWith(tail_, head_);
        tail_->eraseFromParent();
        return steps;
    }

private:
    static bool is_hint(const Instruction& instruction) {
        const auto* call = dyn_cast<IntrinsicInst>(&instruction);
        return call && (call->getIntrinsicID() == Intrinsic::prefetch ||
                        call->getIntrinsicID() == Intrinsic::experimental_noalias_scope_decl);
    }

    /// What a rare step does again, from its beginning on: the step's number may be stored twice.
    bool writes_nothing_twice() const {
        const auto may = [&](const Instruction& instruction) {
            const auto* store = dyn_cast<StoreInst>(&instruction);
            return !instruction.mayWriteToMemory() || is_hint(instruction) ||
                   (store && store->isSimple() && store->getValueOperand() == number_ &&
                    isa<Argument>(store->getPointerOperand()->stripInBoundsConstantOffsets()));
        };
        return all_of(*head_, may) && all_of(*rare_, may);
    }

    /// Neither the loop nor what is behind it sees what depends on the test, but in memory.
    bool is_only_stored() {
        for (PHINode& phi : tail_->phis()) depends_.insert(&phi);
        for (Instruction& instruction : *tail_) {
            if (instruction.isTerminator()) continue;
            if (is_moved(instruction)) continue;
            if (!isa<PHINode, LoadInst, StoreInst>(instruction) && !is_hint(instruction) &&
                instruction.mayReadOrWriteMemory())
                return false;
            for (const User* user : instruction.users()) {
                const auto* reader = cast<Instruction>(user);
                if (reader->getParent() != tail_ || reader->isTerminator()) return false;
            }
            depends_.insert(&instruction);
        }
        return true;
    }

    /// Computed in front of the test just as well.
    bool is_moved(const Instruction& instruction) const {
        return !isa<PHINode>(instruction) && !instruction.mayReadOrWriteMemory() &&
               isSafeToSpeculativelyExecute(&instruction) &&
               none_of(instruction.operands(), [&](const Use& use) { return depends_.contains(use.get()); });
    }

    void lift() {
        for (Instruction& instruction : make_early_inc_range(*tail_))
            if (!instruction.isTerminator() && !depends_.contains(&instruction))
                instruction.moveBefore(head_->getTerminator());
    }

    Loop& loop_;
    BasicBlock *head_, *tail_, *rare_ = nullptr;
    PHINode* number_ = nullptr;
    Instruction* test_ = nullptr;
    bool holds_if_ = false;
    SmallPtrSet<const Value*, 16> depends_;
};

} // namespace

std::vector<RareSteps> part_rare_steps(LoopInfo& loops, function_ref<bool(BasicBlock&)> wanted) {
    std::vector<RareSteps> found;
    for (Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_step_loop(*loop)) continue;
        Parts parts(*loop);
        if (wanted(*loop->getHeader()) && parts.fits()) found.push_back(parts.part());
    }
    return found;
}

void join_rare_steps(const RareSteps& steps, Instruction& marker, ArrayRef<Value*> starts, unsigned count) {
    BasicBlock* stores = steps.usual->splitBasicBlock(std::next(marker.getIterator()), "usual");
    BasicBlock* behind = stores->splitBasicBlock(stores->getTerminator(), "steps.behind");
    BasicBlock* enter = BasicBlock::Create(marker.getContext(), "rare", stores->getParent());
    BranchInst::Create(steps.begin, enter);
    for (std::size_t i = 0; i < steps.phis.size(); ++i) steps.phis[i].second->addIncoming(starts[i], enter);
    Instruction* old = steps.usual->getTerminator();
    IRBuilder<> ir(old);
    ir.CreateCondBr(&marker, enter, stores, MDBuilder(marker.getContext()).createUnlikelyBranchWeights());
    old->eraseFromParent();
    ir.SetInsertPoint(enter->getTerminator());
    Value* start = steps.number->getIncomingValueForBlock(enter);
    Value* last = ir.CreateAdd(start, ConstantInt::get(start->getType(), count));
    steps.end->getTerminator()->eraseFromParent();
    ir.SetInsertPoint(steps.end);
    ir.CreateCondBr(ir.CreateICmpULT(steps.next, last), steps.begin, behind);
}

void join_rare_steps(const RareSteps& steps) {
    IRBuilder<> ir(steps.first);
    Value* holds = steps.holds_if ? static_cast<Value*>(steps.test) : ir.CreateNot(steps.test);
    auto* marker = new FreezeInst(holds, "rare.step", steps.first);
    SmallVector<Value*, 4> starts;
    for (const auto& [usual, other] : steps.phis) starts.push_back(usual);
    join_rare_steps(steps, *marker, starts, 1);
}

} // namespace ptarmigan::translator
