// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/fast_selection_forms.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/NoFolder.h>
#include <llvm/Transforms/Utils/Local.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool is_constant(const Value* value, bool bit) {
    const auto* constant = dyn_cast<ConstantInt>(value);
    return constant && constant->isOne() == bit;
}

/// A choice between two bits. Of `and` and `or` the other operand decides alone where the test does, whatever is
/// undefined about the chosen one: selection folds both to what is known. Where neither is a constant the choice stays
/// one, of words.
Value* bit_choice(IRBuilder<NoFolder>& ir, SelectInst& select) {
    Value *test = select.getCondition(), *yes = select.getTrueValue(), *no = select.getFalseValue();
    if (!select.getType()->isIntegerTy(1) || !test->getType()->isIntegerTy(1)) return nullptr;
    if (is_constant(no, false)) return ir.CreateAnd(test, yes);
    if (is_constant(yes, true)) return ir.CreateOr(test, no);
    if (is_constant(yes, false)) return ir.CreateAnd(ir.CreateNot(test), no);
    if (is_constant(no, true)) return ir.CreateOr(ir.CreateNot(test), yes);
    IntegerType* word = ir.getInt32Ty();
    return ir.CreateTrunc(ir.CreateSelect(test, ir.CreateZExt(yes, word), ir.CreateZExt(no, word)), select.getType());
}

/// A bit that is fixed; of legal types FastISel knows `freeze` itself.
Value* fixed_bit(IRBuilder<NoFolder>& ir, FreezeInst& freeze) {
    if (!freeze.getType()->isIntegerTy(1)) return nullptr;
    Value* byte = ir.CreateZExt(freeze.getOperand(0), ir.getInt8Ty());
    return ir.CreateTrunc(ir.CreateFreeze(byte), freeze.getType());
}

Value* absolute(IRBuilder<NoFolder>& ir, IntrinsicInst& call) {
    Type* type = call.getType();
    if (!type->isFloatTy() && !type->isDoubleTy()) return nullptr;
    IntegerType* bits = ir.getIntNTy(type->getScalarSizeInBits());
    const APInt magnitude = APInt::getSignedMaxValue(bits->getBitWidth());
    Value* whole = ir.CreateBitCast(call.getArgOperand(0), bits);
    return ir.CreateBitCast(ir.CreateAnd(whole, ConstantInt::get(bits, magnitude)), type);
}

Value* extreme(IRBuilder<NoFolder>& ir, MinMaxIntrinsic& call) {
    if (!call.getType()->isIntegerTy(32) && !call.getType()->isIntegerTy(64)) return nullptr;
    Value *left = call.getLHS(), *right = call.getRHS();
    return ir.CreateSelect(ir.CreateICmp(call.getPredicate(), left, right), left, right);
}

/// What stands for `instruction`; null: it stays.
Value* form_of(Instruction& instruction) {
    IRBuilder<NoFolder> ir(&instruction);
    if (auto* freeze = dyn_cast<FreezeInst>(&instruction)) return fixed_bit(ir, *freeze);
    if (auto* select = dyn_cast<SelectInst>(&instruction)) return bit_choice(ir, *select);
    if (auto* extremes = dyn_cast<MinMaxIntrinsic>(&instruction)) return extreme(ir, *extremes);
    if (auto* call = dyn_cast<IntrinsicInst>(&instruction); call && call->getIntrinsicID() == Intrinsic::fabs)
        return absolute(ir, *call);
    return nullptr;
}

} // namespace

PreservedAnalyses FastSelectionForms::run(Function& function, FunctionAnalysisManager&) {
    for (BasicBlock& block : reverse(function))
        for (Instruction& instruction : make_early_inc_range(reverse(block))) {
            if (isInstructionTriviallyDead(&instruction)) {
                instruction.eraseFromParent();
                continue;
            }
            if (Value* other = form_of(instruction)) {
                instruction.replaceAllUsesWith(other);
                instruction.eraseFromParent();
            }
        }
    PreservedAnalyses kept;
    kept.preserveSet<CFGAnalyses>();
    return kept;
}

} // namespace ptarmigan::translator
