// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/defer_nan_choice.h"

#include "translator/llvm/nan_choice.h"
#include "translator/llvm/nan_free_loops.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <stdexcept>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool can_repeat(const Instruction& instruction) {
    return !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects() && !instruction.isTerminator() &&
           !isa<PHINode, AllocaInst>(instruction);
}

/// Operations of one block that are tested together.
class Group {
public:
    /// Collects from `first` on; stops before the instruction that must see the right bits, flush().
    explicit Group(BasicBlock::iterator first) {
        for (BasicBlock::iterator at = first;; ++at) {
            Instruction& instruction = *at;
            bool depends = any_of(instruction.operands(), [&](const Use& use) { return members_.contains(use.get()); });
            if (instruction.isTerminator() || (depends && !can_repeat(instruction))) {
                flush_ = &instruction;
                return;
            }
            if (depends || unchosen(&instruction)) members_.insert(&instruction);
        }
    }

    Instruction* flush() const { return flush_; }

    /// Makes the two paths. False if there is nothing to do.
    bool split() {
        SmallVector<Instruction*> leaving;
        for (Value* member : members_)
            if (any_of(member->users(), [&](User* user) { return !members_.contains(user); }))
                leaving.push_back(cast<Instruction>(member));
        if (leaving.empty()) return false;
        SmallVector<Value*> numbers;
        for (Instruction* choice : last_choices()) numbers.push_back(operation_of(choice));
        IRBuilder<> ir(flush_);
        Value* nan = any_nan(ir, numbers);
        MDNode* unlikely = MDBuilder(flush_->getContext()).createUnlikelyBranchWeights();
        Instruction* end = SplitBlockAndInsertIfThen(nan, flush_->getIterator(), false, unlikely);
        ValueToValueMapTy copies;
        repeat(*end, copies);
        join(leaving, *end, copies);
        BasicBlock& rare = *end->getParent();
        for (Value* member : reverse(members_))
            if (member->use_empty()) cast<Instruction>(member)->eraseFromParent();
        gather_operands(rare);
        return true;
    }

private:
    /// Choices that no other one of the group is made of: if any is a NaN, then one of these is.
    SmallVector<Instruction*> last_choices() const {
        SmallPtrSet<const Value*, 16> shown;
        SmallVector<Instruction*> last;
        for (Value* member : reverse(members_)) {
            auto* instruction = cast<Instruction>(member);
            const bool choice = unchosen(member) != nullptr;
            const bool shows = any_of(member->users(), [&](const User* user) { return shown.contains(user); });
            if (choice && !shows) last.push_back(instruction);
            if (choice || (shows && hands_on_nan(*instruction))) shown.insert(member);
        }
        return last;
    }

    /// Copies all members before `end`.
    void repeat(Instruction& end, ValueToValueMapTy& copies) {
        for (Value* member : members_) {
            Instruction* copy = cast<Instruction>(member)->clone();
            copy->insertBefore(&end);
            RemapInstruction(copy, copies, RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
            copies[member] = copy;
        }
    }

    /// True for what is made again where it is needed, instead of being kept in a register past the test.
    static bool is_cheap(const Instruction& instruction) {
        return isa<ShuffleVectorInst, InsertElementInst, CastInst, GetElementPtrInst>(instruction) ||
               (instruction.getOpcode() == Instruction::Add && isa<Constant>(instruction.getOperand(1)));
    }

    /// Moves what only `rare` needs there, the tests of the operands above all. Operands are loaded once more where
    /// nothing has been written since: kept for `rare`, they would take all registers of a long block.
    static void gather_operands(BasicBlock& rare) {
        const auto is_rare = [&](const User* user) { return cast<Instruction>(user)->getParent() == &rare; };
        bool written = false;
        for (Instruction& instruction : make_early_inc_range(reverse(*rare.getSinglePredecessor()))) {
            const auto* call = dyn_cast<IntrinsicInst>(&instruction);
            written |= instruction.mayWriteToMemory() && !(call && call->getIntrinsicID() == Intrinsic::prefetch);
            if (none_of(instruction.users(), is_rare)) continue;
            if (can_repeat(instruction) && all_of(instruction.users(), is_rare)) {
                instruction.moveBefore(rare, rare.getFirstInsertionPt());
                continue;
            }
            const auto* load = dyn_cast<LoadInst>(&instruction);
            if (load ? written || !load->isSimple() : !can_repeat(instruction) || !is_cheap(instruction)) continue;
            Instruction* copy = instruction.clone();
            copy->insertBefore(rare, rare.getFirstInsertionPt());
            instruction.replaceUsesWithIf(copy, [&](Use& use) { return is_rare(use.getUser()); });
        }
    }

    /// The path without NaNs reads the operations themselves; behind both paths there are phis.
    void join(ArrayRef<Instruction*> leaving, Instruction& end, ValueToValueMapTy& copies) {
        BasicBlock* tail = flush_->getParent();
        BasicBlock* head = end.getParent()->getSinglePredecessor();
        SmallPtrSet<const User*, 16> phis;
        // The test in `head` looks at the operations; phis there are of a loop, and read what comes round.
        const auto is_before = [&](const Instruction& user) {
            return user.getParent() == end.getParent() || (user.getParent() == head && !isa<PHINode>(user));
        };
        for (Instruction* value : leaving) {
            PHINode* phi = PHINode::Create(value->getType(), 2, value->getName(), tail->begin());
            value->replaceUsesWithIf(phi, [&](Use& use) {
                auto* user = cast<Instruction>(use.getUser());
                return !members_.contains(user) && !phis.contains(user) && !is_before(*user);
            });
            phis.insert(phi);
            phi->addIncoming(unchosen(value) ? operation_of(value) : value, head);
            phi->addIncoming(copies[value], end.getParent());
        }
        for (Value* member : members_) {
            if (!unchosen(member)) continue;
            Value* operation = operation_of(member);
            member->replaceUsesWithIf(
                operation, [&](Use& use) { return members_.contains(use.getUser()) && !unchosen(use.getUser()); });
        }
    }

    SmallSetVector<Value*, 16> members_;
    Instruction* flush_ = nullptr;
};

} // namespace

PreservedAnalyses DeferNanChoice::run(Function& function, FunctionAnalysisManager&) {
    const auto choices = [](const BasicBlock& block) {
        return any_of(block, [](const Instruction& instruction) { return unchosen(&instruction); });
    };
    if (none_of(function, choices)) return PreservedAnalyses::all();
    const SmallPtrSet<BasicBlock*, 8> rare = split_nan_free_loops(function);
    SmallVector<Instruction*> starts;
    for (BasicBlock& block : function) {
        if (rare.contains(&block)) continue;
        const auto first = find_if(block, [](const Instruction& instruction) { return unchosen(&instruction); });
        if (first != block.end()) starts.push_back(&*first);
    }
    bool changed = !rare.empty();
    for (Instruction* at : starts)
        while (at) {
            if (!unchosen(at)) {
                at = at->getNextNode();
                continue;
            }
            Group group(at->getIterator());
            changed |= group.split();
            at = group.flush();
        }
    if (!changed) return PreservedAnalyses::all();
    // Code generation crashes, or worse, on a use that its definition does not dominate.
    if (verifyFunction(function)) throw std::runtime_error("the choice of NaNs made an invalid function");
    return PreservedAnalyses::none();
}

} // namespace ptarmigan::translator
