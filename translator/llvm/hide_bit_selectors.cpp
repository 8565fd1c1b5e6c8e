// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/hide_bit_selectors.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <optional>

namespace ptarmigan::translator {

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

/// Bits of `one` where the selector has ones, of `other` elsewhere.
struct BitChoice {
    Value *one, *other;
    Constant* selector;
};

bool is_vector_of_words(const Type* type) {
    return isa<FixedVectorType>(type) && type->getPrimitiveSizeInBits() % 32 == 0;
}

bool is_chosen_by_mask(const Value& value) {
    return any_of(value.users(), [&](const User* user) {
        if (isa<BitCastInst>(user)) return is_chosen_by_mask(*user);
        const auto* select = dyn_cast<SelectInst>(user);
        return select && select->getCondition() != &value && select->getCondition()->getType()->isVectorTy();
    });
}

std::optional<BitChoice> bit_choice(Instruction& instruction) {
    if (!is_vector_of_words(instruction.getType())) return std::nullopt;
    BitChoice choice{};
    Constant* others = nullptr;
    if (match(&instruction, m_Or(m_And(m_Value(choice.one), m_Constant(choice.selector)),
                                 m_And(m_Value(choice.other), m_Constant(others)))) &&
        ConstantExpr::getNot(choice.selector) == others)
        return choice;
    Value* both = nullptr;
    if (match(&instruction, m_c_Xor(m_And(m_Value(both), m_Constant(choice.selector)), m_Value(choice.other))) &&
        match(both, m_c_Xor(m_Value(choice.one), m_Specific(choice.other))))
        return choice;
    return std::nullopt;
}

/// A copysign's, with integers for its operands.
BitChoice sign_choice(IRBuilder<>& ir, const IntrinsicInst& copysign) {
    auto* type = cast<VectorType>(copysign.getType());
    auto* integers = VectorType::getInteger(type);
    const APInt magnitude = APInt::getSignedMaxValue(type->getScalarSizeInBits());
    return {ir.CreateBitCast(copysign.getArgOperand(0), integers),
            ir.CreateBitCast(copysign.getArgOperand(1), integers), ConstantInt::get(integers, magnitude)};
}

Value* with_hidden_selector(IRBuilder<>& ir, const BitChoice& choice) {
    Type* type = choice.one->getType();
    auto* floats = FixedVectorType::get(ir.getFloatTy(), unsigned(type->getPrimitiveSizeInBits() / 32));
    Value* selector =
        ir.CreateIntrinsic(Intrinsic::arithmetic_fence, {floats}, {ir.CreateBitCast(choice.selector, floats)});
    selector = ir.CreateBitCast(selector, type);
    return ir.CreateOr(ir.CreateAnd(choice.one, selector), ir.CreateAnd(choice.other, ir.CreateNot(selector)));
}

} // namespace

PreservedAnalyses HideBitSelectors::run(Function& function, FunctionAnalysisManager&) {
    bool changed = false;
    for (Instruction& instruction : make_early_inc_range(instructions(function))) {
        if (!is_chosen_by_mask(instruction)) continue;
        IRBuilder<> ir(&instruction);
        Value* same = nullptr;
        if (const auto choice = bit_choice(instruction)) {
            same = with_hidden_selector(ir, *choice);
        } else if (auto* call = dyn_cast<IntrinsicInst>(&instruction);
                   call && call->getIntrinsicID() == Intrinsic::copysign && is_vector_of_words(call->getType())) {
            same = ir.CreateBitCast(with_hidden_selector(ir, sign_choice(ir, *call)), call->getType());
        }
        if (!same) continue;
        instruction.replaceAllUsesWith(same);
        instruction.eraseFromParent();
        changed = true;
    }
    return kept_blocks(changed);
}

} // namespace ptarmigan::translator
