// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/defer_nan_choice.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

constexpr std::uint64_t quiet_bit = 0x8000000000000;

/// The number of `x is NaN ? quiet(x) : number`; null for anything else.
Value* unchosen(const Value* value) {
    using namespace PatternMatch;
    const auto* select = dyn_cast<SelectInst>(value);
    if (!select || !select->getType()->getScalarType()->isDoubleTy()) return nullptr;
    const auto* test = dyn_cast<FCmpInst>(select->getCondition());
    if (!test || test->getPredicate() != FCmpInst::FCMP_UNO || test->getOperand(0) != test->getOperand(1)) return nullptr;
    const APInt* bits = nullptr;
    if (!match(select->getTrueValue(), m_BitCast(m_Or(m_BitCast(m_Specific(test->getOperand(0))), m_APInt(bits)))))
        return nullptr;
    return *bits == quiet_bit ? const_cast<Value*>(select->getFalseValue()) : nullptr;
}

/// The operation within nested choices.
Value* operation_of(Value* choice) {
    while (Value* inner = unchosen(choice)) choice = inner;
    return choice;
}

/// True for operations that give a NaN if an operand is one.
bool hands_on_nan(const Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::FMul:
    case Instruction::FDiv:
    case Instruction::FNeg: return true;
    default: break;
    }
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    return call && (call->getIntrinsicID() == Intrinsic::fma || call->getIntrinsicID() == Intrinsic::sqrt);
}

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

    /// i1: an element of `numbers` is a NaN. Vectors are compared with each other, eight elements at a time.
    static Value* any_nan(IRBuilder<>& ir, ArrayRef<Value*> numbers) {
        SmallVector<Value*> pieces;
        Value* result = nullptr;
        const auto add = [&](Value* test) {
            test = ir.CreateFreeze(test); // lanes that don't execute may hold poison
            if (auto* type = dyn_cast<FixedVectorType>(test->getType())) {
                Type* bits = ir.getIntNTy(type->getNumElements());
                test = ir.CreateICmpNE(ir.CreateBitCast(test, bits), ConstantInt::get(bits, 0));
            }
            result = result ? ir.CreateOr(result, test) : test;
        };
        for (Value* number : numbers) {
            auto* type = dyn_cast<FixedVectorType>(number->getType());
            unsigned elements = type ? type->getNumElements() : 0;
            if (elements < 8 || elements % 8 != 0) {
                add(ir.CreateFCmpUNO(number, number));
                continue;
            }
            for (unsigned first = 0; first < elements; first += 8) {
                SmallVector<int, 8> mask;
                for (unsigned i = 0; i < 8; ++i) mask.push_back(int(first + i));
                pieces.push_back(elements == 8 ? number : ir.CreateShuffleVector(number, mask));
            }
        }
        Value* all = nullptr;
        for (std::size_t i = 0; i < pieces.size(); i += 2) {
            Value* test = ir.CreateFCmpUNO(pieces[i], pieces[std::min(i + 1, pieces.size() - 1)]);
            all = all ? ir.CreateOr(all, test) : test;
        }
        if (all) add(all);
        return result ? result : ir.getFalse();
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

    /// The path without NaNs reads the operations themselves; behind both paths there are phis.
    void join(ArrayRef<Instruction*> leaving, Instruction& end, ValueToValueMapTy& copies) {
        BasicBlock* tail = flush_->getParent();
        BasicBlock* head = end.getParent()->getSinglePredecessor();
        SmallPtrSet<const User*, 16> phis;
        for (Instruction* value : leaving) {
            PHINode* phi = PHINode::Create(value->getType(), 2, value->getName(), tail->begin());
            value->replaceUsesWithIf(phi, [&](Use& use) {
                auto* user = cast<Instruction>(use.getUser());
                return !members_.contains(user) && !phis.contains(user) && user->getParent() != end.getParent();
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
    SmallVector<Instruction*> starts;
    for (BasicBlock& block : function) {
        const auto first = find_if(block, [](const Instruction& instruction) { return unchosen(&instruction); });
        if (first != block.end()) starts.push_back(&*first);
    }
    bool changed = false;
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
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
