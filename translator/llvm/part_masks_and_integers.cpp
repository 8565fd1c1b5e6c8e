// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/part_masks_and_integers.h"

#include "translator/llvm/hidden_value.h"
#include "translator/llvm/kept_blocks.h"

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

bool is_ones(const Value* value) {
    const auto* constant = dyn_cast<Constant>(value);
    return constant && constant->isAllOnesValue();
}

/// A choice by masks that instruction selection takes for logic, since one of its arms is a constant.
bool is_choice(const Value* value) {
    const auto* choice = dyn_cast<SelectInst>(value);
    return choice && is_mask(choice->getType()) && choice->getCondition()->getType()->isVectorTy() &&
           (isa<Constant>(choice->getTrueValue()) || isa<Constant>(choice->getFalseValue()));
}

bool is_logic(const Value* value) {
    const auto* operation = dyn_cast<BinaryOperator>(value);
    return is_choice(value) || (operation && operation->isBitwiseLogicOp());
}

/// `or`, `xor`, or a choice that becomes `or`.
bool is_or(const Value* value) {
    if (is_choice(value))
        return any_of(cast<User>(value)->operands(), [](const Use& use) { return is_ones(use.get()); });
    const auto* operation = dyn_cast<BinaryOperator>(value);
    return operation && (operation->getOpcode() == Instruction::Or || operation->getOpcode() == Instruction::Xor);
}

/// The operands of logic that are no constants.
SmallVector<unsigned, 2> unknown_operands(const Value* logic) {
    SmallVector<unsigned, 2> operands;
    for (const Use& use : cast<User>(logic)->operands())
        if (!isa<Constant>(use.get())) operands.push_back(use.getOperandNo());
    return operands;
}

bool becomes_mask(const Value* integer) {
    return any_of(integer->users(),
                  [](const User* user) { return isa<BitCastInst>(user) && is_mask(user->getType()); });
}

using Nodes = SmallPtrSet<const Value*, 8>;

/// The integers from which the mask's bits come, and results of logic, that somebody else uses as well. Instruction
/// selection rewrites logic, so any two of them may meet in one operation: in `(~a & b) ^ a`, which is `a | b`, and in
/// `(c & a) | (c & b)`, which is `c & (a | b)`. True if there is an integer.
bool shared_nodes(const Value* mask, unsigned left, Nodes& shared) {
    if (const auto* cast = dyn_cast<BitCastInst>(mask)) {
        const Value* integer = cast->getOperand(0);
        if (!integer->getType()->isIntegerTy()) return false;
        if (mask->hasNUsesOrMore(2) || integer->hasNUsesOrMore(2)) shared.insert(integer);
        return true;
    }
    if (!is_logic(mask) || !left) return false;
    bool found = false;
    for (const unsigned i : unknown_operands(mask))
        found |= shared_nodes(cast<User>(mask)->getOperand(i), left - 1, shared);
    if (found && mask->hasNUsesOrMore(2)) shared.insert(mask);
    return found;
}

/// The same of logic of integers: those in it that are masks elsewhere.
void nodes_that_become_masks(const Value* integer, unsigned left, Nodes& nodes) {
    if (becomes_mask(integer)) nodes.insert(integer);
    if (!is_logic(integer) || !left) return;
    for (const unsigned i : unknown_operands(integer))
        nodes_that_become_masks(cast<User>(integer)->getOperand(i), left - 1, nodes);
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
            const auto operands = unknown_operands(operation);
            // Rather an integer: it is in a general register anyway.
            const unsigned which = isa<BitCastInst>(operation->getOperand(operands[0])) ? operands[0] : operands[1];
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
        auto* operation = cast<Instruction>(value);
        const auto operands = unknown_operands(operation);
        if (is_or(value) && operands.size() == 2) {
            Nodes nodes;
            for (const unsigned i : operands) nodes_that_become_masks(operation->getOperand(i), depth, nodes);
            if (nodes.size() >= 2) circles_.insert(operation);
        }
        for (const unsigned i : operands) visit_integer(operation->getOperand(i), left - 1);
    }

    void visit_mask(Instruction& operation) {
        const auto operands = unknown_operands(&operation);
        if (operands.size() != 2) return;
        Nodes shared;
        const bool first = shared_nodes(operation.getOperand(operands[0]), depth, shared);
        const bool second = shared_nodes(operation.getOperand(operands[1]), depth, shared);
        if (first && second && shared.size() >= 2) circles_.insert(&operation);
    }

    SmallSetVector<Instruction*, 8> joined_, circles_;
};

} // namespace

PreservedAnalyses PartMasksAndIntegers::run(Function& function, FunctionAnalysisManager&) {
    return kept_blocks(Parting().run(function));
}

} // namespace ptarmigan::translator
