// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/add_masks_by_choice.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool extends_mask(const Value* value) {
    const auto* cast = dyn_cast<CastInst>(value);
    return cast && isa<ZExtInst, SExtInst>(cast) && cast->getSrcTy()->isVectorTy() &&
           cast->getSrcTy()->getScalarType()->isIntegerTy(1);
}

} // namespace

PreservedAnalyses AddMasksByChoice::run(Function& function, FunctionAnalysisManager&) {
    bool changed = false;
    for (Instruction& instruction : instructions(function)) {
        const unsigned opcode = instruction.getOpcode();
        if (opcode != Instruction::Add && opcode != Instruction::Sub) continue;
        for (Use& operand : instruction.operands()) {
            if (!extends_mask(operand)) continue;
            auto* extension = cast<CastInst>(operand);
            Type* type = extension->getType();
            Constant* one = isa<ZExtInst>(extension) ? ConstantInt::get(type, 1) : Constant::getAllOnesValue(type);
            IRBuilder<> ir(&instruction);
            operand = ir.CreateSelect(extension->getOperand(0), one, Constant::getNullValue(type));
            if (extension->use_empty()) extension->eraseFromParent();
            changed = true;
        }
    }
    return kept_blocks(changed);
}

} // namespace ptarmigan::translator
