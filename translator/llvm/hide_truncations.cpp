// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/hide_truncations.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// Are all of `value`'s elements some of an extension's?
bool is_part_of_extension(const Value* value) {
    while (const auto* shuffle = dyn_cast<ShuffleVectorInst>(value)) {
        if (is_part_of_extension(shuffle->getOperand(1))) return true;
        value = shuffle->getOperand(0);
    }
    return isa<ZExtInst, SExtInst>(value);
}

bool takes_extension_apart(const BitCastInst& cast) {
    const auto* from = dyn_cast<FixedVectorType>(cast.getSrcTy());
    const auto* to = dyn_cast<FixedVectorType>(cast.getDestTy());
    return from && to && from->getElementType()->isIntegerTy() && to->getElementType()->isIntegerTy() &&
           from->getScalarSizeInBits() > to->getScalarSizeInBits() && from->getPrimitiveSizeInBits() % 32 == 0 &&
           is_part_of_extension(cast.getOperand(0));
}

} // namespace

PreservedAnalyses HideTruncations::run(Function& function, FunctionAnalysisManager&) {
    SmallVector<BitCastInst*> casts;
    for (Instruction& instruction : instructions(function))
        if (auto* cast = dyn_cast<BitCastInst>(&instruction); cast && takes_extension_apart(*cast))
            casts.push_back(cast);
    if (casts.empty()) return PreservedAnalyses::all();
    for (BitCastInst* cast : casts) {
        IRBuilder<> ir(cast);
        // The one value that nobody looks through, and that becomes no instruction, is of floats; it does not touch
        // bits.
        auto* floats = FixedVectorType::get(ir.getFloatTy(), unsigned(cast->getSrcTy()->getPrimitiveSizeInBits() / 32));
        Value* hidden =
            ir.CreateIntrinsic(Intrinsic::arithmetic_fence, {floats}, {ir.CreateBitCast(cast->getOperand(0), floats)});
        cast->setOperand(0, ir.CreateBitCast(hidden, cast->getSrcTy()));
    }
    return kept_blocks();
}

} // namespace ptarmigan::translator
