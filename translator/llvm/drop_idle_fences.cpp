// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/drop_idle_fences.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// `bits | quiet bit`, as emitted where one of several NaNs is chosen.
bool is_quieted(const Value* value) {
    const APInt* bits = nullptr;
    return PatternMatch::match(value, PatternMatch::m_BitCast(
                                          PatternMatch::m_Or(PatternMatch::m_Value(), PatternMatch::m_APInt(bits)))) &&
           bits->getBitWidth() == 64 && (*bits)[51];
}

/// Operations whose NaNs are quiet, and which LLVM may narrow as a whole.
bool makes_quiet(const Value* value) {
    if (isa<Constant>(value) || isa<SIToFPInst, UIToFPInst>(value) || is_quieted(value)) return true;
    if (const auto* call = dyn_cast<IntrinsicInst>(value)) {
        switch (call->getIntrinsicID()) {
        case Intrinsic::fma:
        case Intrinsic::sqrt:
        case Intrinsic::floor:
        case Intrinsic::ceil:
        case Intrinsic::trunc:
        case Intrinsic::roundeven: return true;
        default: return false;
        }
    }
    const auto* operation = dyn_cast<BinaryOperator>(value);
    return operation && operation->getType()->isFPOrFPVectorTy();
}

/// Puts the operands that `value` hands on unchanged, but for the sign, into `next`; false if that can't be said.
bool passes_on(const Value* value, SmallVectorImpl<const Value*>& next) {
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return false;
    switch (instruction->getOpcode()) {
    case Instruction::PHI: next.append(instruction->op_begin(), instruction->op_end()); return true;
    case Instruction::Select: next.append({instruction->getOperand(1), instruction->getOperand(2)}); return true;
    case Instruction::ShuffleVector:
    case Instruction::InsertElement: next.append({instruction->getOperand(0), instruction->getOperand(1)}); return true;
    case Instruction::ExtractElement:
    case Instruction::FNeg:
    case Instruction::Freeze: next.push_back(instruction->getOperand(0)); return true;
    default: break;
    }
    const auto* call = dyn_cast<IntrinsicInst>(instruction);
    if (!call || (call->getIntrinsicID() != Intrinsic::fabs && call->getIntrinsicID() != Intrinsic::copysign))
        return false;
    next.push_back(call->getArgOperand(0));
    return true;
}

/// A divisor's keeps LLVM from dividing zero by zero itself, which gives another NaN.
bool is_divisor(const CallInst& fence) {
    return any_of(fence.users(), [&](const User* user) {
        return cast<Instruction>(user)->getOpcode() == Instruction::FDiv && user->getOperand(1) == &fence;
    });
}

bool is_idle(const CallInst& fence) {
    if (is_divisor(fence)) return false;
    SmallVector<const Value*> next{fence.getArgOperand(0)};
    SmallPtrSet<const Value*, 16> seen;
    while (!next.empty()) {
        const Value* value = next.pop_back_val();
        if (!seen.insert(value).second || makes_quiet(value)) continue;
        if (!passes_on(value, next)) return false;
    }
    return true;
}

} // namespace

PreservedAnalyses DropIdleFences::run(Function& function, FunctionAnalysisManager&) {
    SmallVector<IntrinsicInst*> fences;
    for (Instruction& instruction : instructions(function)) {
        auto* call = dyn_cast<IntrinsicInst>(&instruction);
        if (call && call->getIntrinsicID() == Intrinsic::arithmetic_fence &&
            call->getType()->getScalarType()->isDoubleTy() && is_idle(*call))
            fences.push_back(call);
    }
    if (fences.empty()) return PreservedAnalyses::all();
    for (IntrinsicInst* fence : fences) {
        fence->replaceAllUsesWith(fence->getArgOperand(0));
        fence->eraseFromParent();
    }
    return kept_blocks();
}

} // namespace ptarmigan::translator
