// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/compare_halves_as_floats.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool target_compares_halves(const Function& function) {
    return function.getFnAttribute("target-features").getValueAsString().contains("+fullfp16");
}

Value* widened(IRBuilder<>& ir, Value* value) {
    Type* type = ir.getFloatTy();
    if (auto* vector = dyn_cast<VectorType>(value->getType())) type = VectorType::get(type, vector->getElementCount());
    return ir.CreateFPExt(value, type);
}

} // namespace

PreservedAnalyses CompareHalvesAsFloats::run(Function& function, FunctionAnalysisManager&) {
    if (target_compares_halves(function)) return PreservedAnalyses::all();
    SmallVector<FCmpInst*> comparisons;
    for (Instruction& instruction : instructions(function))
        if (auto* comparison = dyn_cast<FCmpInst>(&instruction);
            comparison && comparison->getOperand(0)->getType()->getScalarType()->isHalfTy())
            comparisons.push_back(comparison);
    if (comparisons.empty()) return PreservedAnalyses::all();
    for (FCmpInst* comparison : comparisons) {
        IRBuilder<> ir(comparison);
        Value* left = widened(ir, comparison->getOperand(0));
        comparison->replaceAllUsesWith(
            ir.CreateFCmp(comparison->getPredicate(), left, widened(ir, comparison->getOperand(1))));
        comparison->eraseFromParent();
    }
    return kept_blocks();
}

} // namespace ptarmigan::translator
