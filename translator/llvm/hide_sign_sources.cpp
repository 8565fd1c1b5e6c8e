// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/hide_sign_sources.h"

#include "translator/llvm/hidden_value.h"
#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// The truncation that `extension` widens, if it is one of the bits of floats.
TruncInst* truncated_floats(const SExtInst& extension) {
    if (!extension.getType()->isVectorTy() || extension.getType()->getScalarSizeInBits() != 64) return nullptr;
    auto* truncation = dyn_cast<TruncInst>(extension.getOperand(0));
    const auto* bits = truncation ? dyn_cast<BitCastInst>(truncation->getOperand(0)) : nullptr;
    return bits && bits->getSrcTy()->getScalarType()->isFloatingPointTy() ? truncation : nullptr;
}

} // namespace

PreservedAnalyses HideSignSources::run(Function& function, FunctionAnalysisManager&) {
    SmallVector<TruncInst*> truncations;
    for (Instruction& instruction : instructions(function))
        if (const auto* extension = dyn_cast<SExtInst>(&instruction))
            if (TruncInst* truncation = truncated_floats(*extension)) truncations.push_back(truncation);
    if (truncations.empty()) return PreservedAnalyses::all();
    for (TruncInst* truncation : truncations) {
        IRBuilder<> ir(truncation);
        Value* bits = truncation->getOperand(0);
        auto* type = dyn_cast<FixedVectorType>(bits->getType());
        if (!type || !isa<BitCastInst>(bits)) continue; // met before, by another extension
        Value* zero = hidden_value(ir, ConstantInt::get(type->getElementType(), 0));
        truncation->setOperand(0, ir.CreateOr(bits, ir.CreateVectorSplat(type->getNumElements(), zero)));
    }
    return kept_blocks();
}

} // namespace ptarmigan::translator
