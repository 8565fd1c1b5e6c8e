// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/choices_as_integers.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool may_become_minimum(const SelectInst& choice) {
    const auto* comparison = dyn_cast<FCmpInst>(choice.getCondition());
    if (!comparison || !choice.getType()->getScalarType()->isFloatingPointTy()) return false;
    const CmpInst::Predicate predicate = comparison->getPredicate();
    if (comparison->isEquality() || predicate == CmpInst::FCMP_ORD || predicate == CmpInst::FCMP_UNO) return false;
    for (const Value* compared : comparison->operands())
        if (compared == choice.getTrueValue() || compared == choice.getFalseValue()) return true;
    return false;
}

} // namespace

PreservedAnalyses ChoicesAsIntegers::run(Function& function, FunctionAnalysisManager&) {
    SmallVector<SelectInst*> choices;
    for (Instruction& instruction : instructions(function))
        if (auto* choice = dyn_cast<SelectInst>(&instruction); choice && may_become_minimum(*choice))
            choices.push_back(choice);
    if (choices.empty()) return PreservedAnalyses::all();
    for (SelectInst* choice : choices) {
        IRBuilder<> ir(choice);
        Type* floats = choice->getType();
        Type* integers = floats->getWithNewType(ir.getIntNTy(floats->getScalarSizeInBits()));
        Value* chosen = ir.CreateSelect(choice->getCondition(), ir.CreateBitCast(choice->getTrueValue(), integers),
                                        ir.CreateBitCast(choice->getFalseValue(), integers));
        choice->replaceAllUsesWith(ir.CreateBitCast(chosen, floats));
        choice->eraseFromParent();
    }
    return kept_blocks();
}

} // namespace ptarmigan::translator
