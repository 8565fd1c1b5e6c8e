// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/bfloats_as_integers.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace ptarmigan::translator {
namespace {

using namespace llvm;

constexpr std::uint64_t sign = 0x8000;

bool is_bfloat(const Type* type) {
    return type->getScalarType()->isBFloatTy();
}

/// `element`, as many as `like` has.
Type* typed(Type* element, const Type* like) {
    auto* vector = dyn_cast<VectorType>(like);
    return vector ? VectorType::get(element, vector->getElementCount()) : element;
}

bool is_fabs(const Instruction& instruction) {
    auto* call = dyn_cast<IntrinsicInst>(&instruction);
    return call && call->getIntrinsicID() == Intrinsic::fabs;
}

bool only_moves_bits(const Instruction& instruction) {
    if (auto* store = dyn_cast<StoreInst>(&instruction)) return is_bfloat(store->getValueOperand()->getType());
    if (!is_bfloat(instruction.getType())) return false;
    return isa<PHINode, SelectInst, FreezeInst, LoadInst, InsertElementInst, ExtractElementInst, ShuffleVectorInst>(
               instruction) ||
           instruction.getOpcode() == Instruction::FNeg || is_fabs(instruction);
}

/// The bits of a bfloat, without a detour where they were there before.
Value* bits_of(IRBuilder<>& ir, Value* value) {
    auto* cast = dyn_cast<BitCastInst>(value);
    Type* type = typed(ir.getInt16Ty(), value->getType());
    return cast && cast->getSrcTy() == type ? cast->getOperand(0) : ir.CreateBitCast(value, type);
}

Value* widened(IRBuilder<>& ir, Value* value) {
    Value* bits = ir.CreateZExt(bits_of(ir, value), typed(ir.getInt32Ty(), value->getType()));
    return ir.CreateBitCast(ir.CreateShl(bits, 16), typed(ir.getFloatTy(), value->getType()));
}

/// The same on integers; phis without their incoming values.
Value* on_integers(IRBuilder<>& ir, Instruction& instruction) {
    Type* type = typed(ir.getInt16Ty(), instruction.getType());
    const auto bits = [&](unsigned operand) { return bits_of(ir, instruction.getOperand(operand)); };
    if (isa<LoadInst, StoreInst>(instruction)) {
        Instruction* access = instruction.clone();
        if (isa<LoadInst>(access))
            access->mutateType(type);
        else
            access->setOperand(0, bits(0));
        return ir.Insert(access);
    }
    if (isa<InsertElementInst>(instruction)) return ir.CreateInsertElement(bits(0), bits(1), instruction.getOperand(2));
    if (isa<ExtractElementInst>(instruction)) return ir.CreateExtractElement(bits(0), instruction.getOperand(1));
    if (auto* shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
        return ir.CreateShuffleVector(bits(0), bits(1), shuffle->getShuffleMask());
    if (auto* phi = dyn_cast<PHINode>(&instruction)) return ir.CreatePHI(type, phi->getNumIncomingValues());
    if (auto* select = dyn_cast<SelectInst>(&instruction))
        return ir.CreateSelect(select->getCondition(), bits(1), bits(2));
    if (isa<FreezeInst>(instruction)) return ir.CreateFreeze(bits(0));
    if (is_fabs(instruction)) return ir.CreateAnd(bits(0), ConstantInt::get(type, sign - 1));
    return ir.CreateXor(bits(0), ConstantInt::get(type, sign));
}

void compare_as_floats(FCmpInst& comparison) {
    IRBuilder<> ir(&comparison);
    comparison.replaceAllUsesWith(ir.CreateFCmp(comparison.getPredicate(), widened(ir, comparison.getOperand(0)),
                                                widened(ir, comparison.getOperand(1))));
}

/// Casts of something to bfloats that are only cast on.
void drop_detours(Function& function) {
    SmallVector<Instruction*> casts;
    for (Instruction& instruction : instructions(function))
        if (auto* cast = dyn_cast<BitCastInst>(&instruction);
            cast && (is_bfloat(cast->getSrcTy()) || is_bfloat(cast->getDestTy())))
            casts.push_back(cast);
    for (Instruction* back : casts) {
        auto* first = dyn_cast<BitCastInst>(back->getOperand(0));
        if (!first || !is_bfloat(first->getType())) continue;
        IRBuilder<> ir(back);
        back->replaceAllUsesWith(ir.CreateBitCast(first->getOperand(0), back->getType())); // nothing if it has the type
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (Instruction*& cast : casts) {
            if (!cast || !cast->use_empty()) continue;
            cast->eraseFromParent();
            cast = nullptr;
            changed = true;
        }
    }
}

} // namespace

PreservedAnalyses BfloatsAsIntegers::run(Function& function, FunctionAnalysisManager&) {
    SmallVector<Instruction*> moves, comparisons;
    for (Instruction& instruction : instructions(function)) {
        if (only_moves_bits(instruction)) moves.push_back(&instruction);
        if (isa<FCmpInst>(instruction) && is_bfloat(instruction.getOperand(0)->getType()))
            comparisons.push_back(&instruction);
    }
    if (moves.empty() && comparisons.empty()) return PreservedAnalyses::all();
    SmallVector<std::pair<PHINode*, PHINode*>> phis;
    for (Instruction* move : moves) {
        IRBuilder<> ir(move);
        Value* integer = on_integers(ir, *move);
        auto* phi = dyn_cast<PHINode>(move);
        if (phi) {
            ir.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
            phis.emplace_back(phi, cast<PHINode>(integer));
        }
        if (isa<StoreInst>(move)) continue;
        // Phis keep their incoming values until all of these have been replaced.
        move->replaceAllUsesWith(ir.CreateBitCast(integer, move->getType()));
    }
    for (auto [phi, integers] : phis)
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
            IRBuilder<> ir(phi->getIncomingBlock(i)->getTerminator());
            // A block may come in by several edges, with one value.
            Value* known = integers->getBasicBlockIndex(phi->getIncomingBlock(i)) >= 0
                               ? integers->getIncomingValueForBlock(phi->getIncomingBlock(i))
                               : bits_of(ir, phi->getIncomingValue(i));
            integers->addIncoming(known, phi->getIncomingBlock(i));
        }
    for (Instruction* comparison : comparisons) {
        compare_as_floats(cast<FCmpInst>(*comparison));
        comparison->eraseFromParent();
    }
    for (Instruction* move : moves)
        if (!isa<StoreInst>(move)) move->replaceAllUsesWith(PoisonValue::get(move->getType())); // of each other only
    for (Instruction* move : moves) move->eraseFromParent();
    drop_detours(function);
    return kept_blocks();
}

} // namespace ptarmigan::translator
