// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/nan_choice.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <cstdint>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

constexpr std::uint64_t quiet_bit = 0x8000000000000, made_nan = 0xfff8000000000000;

} // namespace

Value* unchosen(const Value* value) {
    using namespace PatternMatch;
    const auto* select = dyn_cast<SelectInst>(value);
    if (!select || !select->getType()->getScalarType()->isDoubleTy()) return nullptr;
    const auto* test = dyn_cast<FCmpInst>(select->getCondition());
    if (!test || test->getPredicate() != FCmpInst::FCMP_UNO || test->getOperand(0) != test->getOperand(1))
        return nullptr;
    const APFloat* number = nullptr; // the NaN that stands for those which the operation makes
    if (select->getFalseValue() == test->getOperand(0) && match(select->getTrueValue(), m_APFloat(number)))
        return number->bitcastToAPInt() == made_nan ? const_cast<Value*>(select->getFalseValue()) : nullptr;
    const APInt* bits = nullptr;
    if (!match(select->getTrueValue(), m_BitCast(m_Or(m_BitCast(m_Specific(test->getOperand(0))), m_APInt(bits)))))
        return nullptr;
    return *bits == quiet_bit ? const_cast<Value*>(select->getFalseValue()) : nullptr;
}

Value* operation_of(Value* choice) {
    while (Value* inner = unchosen(choice)) choice = inner;
    return choice;
}

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
    return call && (call->getIntrinsicID() == Intrinsic::fma || call->getIntrinsicID() == Intrinsic::sqrt ||
                    call->getIntrinsicID() == Intrinsic::arithmetic_fence);
}

Value* any_nan(IRBuilder<>& ir, ArrayRef<Value*> numbers) {
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

} // namespace ptarmigan::translator
