// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/part_masks_and_integers.h"

#include "translator/llvm/hidden_value.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// As far as instruction selection looks from one operation to the next when it merges bit casts, and more.
constexpr unsigned depth = 8;

bool is_mask(const Type* type) {
    const auto* vector = dyn_cast<FixedVectorType>(type);
    return vector && vector->getElementType()->isIntegerTy(1);
}

bool is_halves(const Type* type) {
    return type->getScalarType()->isHalfTy();
}

// ---- bits of masks that are halves ----

/// Does `value` hold bits of a value of such a type, moved or combined but not computed with?
bool has_bits_of(const Value* value, bool (*wanted)(const Type*), unsigned left) {
    if (wanted(value->getType())) return true;
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !left) return false;
    if (isa<ZExtInst, SExtInst>(instruction) && is_mask(instruction->getOperand(0)->getType())) return false; // no bits
    const bool moves = isa<BitCastInst, TruncInst, ZExtInst, SExtInst, FreezeInst, ExtractElementInst,
                           InsertElementInst, ShuffleVectorInst, SelectInst>(instruction);
    const auto* operation = dyn_cast<BinaryOperator>(instruction);
    if (!moves && !(operation && (operation->isBitwiseLogicOp() || operation->isShift()))) return false;
    const unsigned first = isa<SelectInst>(instruction) ? 1 : 0; // a condition is no source of bits
    for (unsigned i = first; i < instruction->getNumOperands(); ++i)
        if (has_bits_of(instruction->getOperand(i), wanted, left - 1)) return true;
    return false;
}

bool joins_mask_and_halves(const BitCastInst& cast) {
    if (is_halves(cast.getDestTy())) return has_bits_of(cast.getOperand(0), is_mask, depth);
    return is_mask(cast.getDestTy()) && has_bits_of(cast.getOperand(0), is_halves, depth);
}

/// Vectors are hidden as floats, of which there is a fence.
Value* hidden_bits(IRBuilder<>& ir, Value* value) {
    const auto bits = unsigned(value->getType()->getPrimitiveSizeInBits());
    if (bits <= 64) return hidden_value(ir, ir.CreateBitCast(value, ir.getIntNTy(bits)));
    auto* floats = FixedVectorType::get(ir.getFloatTy(), bits / 32);
    return ir.CreateIntrinsic(Intrinsic::arithmetic_fence, {floats}, {ir.CreateBitCast(value, floats)});
}

// ---- logic of masks that come from integers ----

bool is_or(const Value* value) {
    const auto* operation = dyn_cast<BinaryOperator>(value);
    return operation && (operation->getOpcode() == Instruction::Or || operation->getOpcode() == Instruction::Xor);
}

bool is_logic(const Value* value) {
    const auto* operation = dyn_cast<BinaryOperator>(value);
    return operation && operation->isBitwiseLogicOp();
}

/// Is it a mask of an integer's bits, or could it be?
bool comes_from_integer(const Value* mask, unsigned left) {
    if (isa<Constant>(mask)) return true;
    if (const auto* cast = dyn_cast<BitCastInst>(mask)) return cast->getSrcTy()->isIntegerTy();
    if (!is_logic(mask) || !left) return false;
    const auto* operation = cast<BinaryOperator>(mask);
    return comes_from_integer(operation->getOperand(0), left - 1) &&
           comes_from_integer(operation->getOperand(1), left - 1);
}

/// Is the mask, or the integer that it comes from, used by more than one?
bool is_shared(const Value* mask) {
    if (mask->hasNUsesOrMore(2)) return true;
    const auto* cast = dyn_cast<BitCastInst>(mask);
    return cast && cast->getOperand(0)->hasNUsesOrMore(2);
}

bool becomes_mask(const Value* integer) {
    return any_of(integer->users(),
                  [](const User* user) { return isa<BitCastInst>(user) && is_mask(user->getType()); });
}

class Parting {
public:
    bool run(Function& function) {
        for (Instruction& instruction : instructions(function)) {
            if (auto* cast = dyn_cast<BitCastInst>(&instruction)) visit(*cast);
            if (is_mask(instruction.getType()) && is_or(&instruction)) visit_mask(instruction);
        }
        for (Instruction* cast : joined_) {
            IRBuilder<> ir(cast);
            cast->replaceUsesOfWith(cast->getOperand(0), ir.CreateBitCast(hidden_bits(ir, cast->getOperand(0)),
                                                                          cast->getOperand(0)->getType()));
        }
        for (Instruction* operation : circles_) {
            IRBuilder<> ir(operation);
            // Rather an integer: it is in a general register anyway.
            const unsigned which = isa<BitCastInst>(operation->getOperand(0)) ? 0 : 1;
            Value* operand = operation->getOperand(which);
            if (auto* cast = dyn_cast<BitCastInst>(operand))
                operand = ir.CreateBitCast(hidden_value(ir, cast->getOperand(0)), cast->getType());
            else
                operand = hidden_value(ir, operand);
            operation->setOperand(which, operand);
        }
        return !joined_.empty() || !circles_.empty();
    }

private:
    void visit(BitCastInst& cast) {
        if (joins_mask_and_halves(cast)) joined_.insert(&cast);
        if (is_mask(cast.getDestTy()) && cast.getSrcTy()->isIntegerTy()) visit_integer(cast.getOperand(0), depth);
    }

    /// Logic of integers that is one of masks in effect.
    void visit_integer(Value* value, unsigned left) {
        if (!is_logic(value) || !left) return;
        auto* operation = cast<BinaryOperator>(value);
        Value *a = operation->getOperand(0), *b = operation->getOperand(1);
        if (is_or(value) && becomes_mask(a) && becomes_mask(b)) circles_.insert(operation);
        visit_integer(a, left - 1);
        visit_integer(b, left - 1);
    }

    void visit_mask(Instruction& operation) {
        Value *a = operation.getOperand(0), *b = operation.getOperand(1);
        if (isa<Constant>(a) || isa<Constant>(b) || !is_shared(a) || !is_shared(b)) return;
        if (comes_from_integer(a, depth) && comes_from_integer(b, depth)) circles_.insert(&operation);
    }

    SmallSetVector<Instruction*, 8> joined_, circles_;
};

} // namespace

PreservedAnalyses PartMasksAndIntegers::run(Function& function, FunctionAnalysisManager&) {
    if (!Parting().run(function)) return PreservedAnalyses::all();
    PreservedAnalyses kept;
    kept.preserveSet<CFGAnalyses>();
    return kept;
}

} // namespace ptarmigan::translator
