// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/masks_as_integers.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <map>

namespace ptarmigan::translator {
namespace {

using namespace llvm;

/// Masks of fewer lanes fit one register however they are kept.
constexpr unsigned least_lanes = 8;

bool is_mask(const Type* type) {
    auto* vector = dyn_cast<FixedVectorType>(type);
    return vector && vector->getElementType()->isIntegerTy(1) && vector->getNumElements() >= least_lanes;
}

/// What is done on integers instead.
bool is_logic(const Value* value) {
    if (!is_mask(value->getType())) return false;
    if (isa<PHINode>(value)) return true;
    auto* operation = dyn_cast<BinaryOperator>(value);
    return operation && operation->isBitwiseLogicOp();
}

class WideMasks {
public:
    explicit WideMasks(Function& function) : function_(function) {}

    bool run() {
        for (Instruction& instruction : instructions(function_))
            if (is_logic(&instruction)) make(instruction);
        if (wide_.empty()) return false;
        for (auto& [narrow, wide] : wide_) fill(*narrow, *wide);
        for (auto& [narrow, wide] : wide_) replace_uses(*narrow, *wide);
        for (auto& [narrow, wide] : wide_) narrow->dropAllReferences();
        for (auto& [narrow, wide] : wide_) narrow->eraseFromParent();
        return true;
    }

private:
    static Type* wide_type(const Type* mask) {
        return FixedVectorType::get(Type::getInt32Ty(mask->getContext()),
                                    cast<FixedVectorType>(mask)->getNumElements());
    }

    /// The instruction's wide twin, without operands yet: phis may be used before they are defined.
    void make(Instruction& narrow) {
        Type* type = wide_type(narrow.getType());
        Instruction* wide;
        if (auto* phi = dyn_cast<PHINode>(&narrow)) {
            wide = PHINode::Create(type, phi->getNumIncomingValues(), "mask", narrow.getIterator());
        } else {
            Value* none = PoisonValue::get(type);
            wide = BinaryOperator::Create(cast<BinaryOperator>(narrow).getOpcode(), none, none, "mask",
                                          narrow.getIterator());
        }
        wide->setDebugLoc(narrow.getDebugLoc());
        wide_[&narrow] = wide;
    }

    void fill(Instruction& narrow, Instruction& wide) {
        if (auto* phi = dyn_cast<PHINode>(&narrow)) {
            for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
                cast<PHINode>(wide).addIncoming(widened(phi->getIncomingValue(i)), phi->getIncomingBlock(i));
            return;
        }
        for (unsigned i = 0; i < 2; ++i) wide.setOperand(i, widened(narrow.getOperand(i)));
    }

    Value* widened(Value* mask) {
        if (auto* instruction = dyn_cast<Instruction>(mask))
            if (auto found = wide_.find(instruction); found != wide_.end()) return found->second;
        Value*& extended = extended_[mask];
        if (extended) return extended;
        Type* type = wide_type(mask->getType());
        if (auto* constant = dyn_cast<Constant>(mask)) {
            IRBuilder<> ir(function_.getContext());
            return extended = ir.CreateSExt(constant, type); // folded
        }
        auto* instruction = dyn_cast<Instruction>(mask);
        // Where the mask is made; one that comes with control flow is extended behind all phis.
        BasicBlock::iterator at = function_.getEntryBlock().getFirstInsertionPt();
        if (instruction) {
            std::optional<BasicBlock::iterator> behind = instruction->getInsertionPointAfterDef();
            at = behind ? *behind : instruction->getParent()->getFirstInsertionPt();
        }
        IRBuilder<> ir(at->getParent(), at);
        if (instruction) ir.SetCurrentDebugLocation(instruction->getDebugLoc());
        if (Value* scalar = const_cast<Value*>(getSplatValue(mask)))
            return extended = ir.CreateVectorSplat(cast<FixedVectorType>(type)->getElementCount(),
                                                   ir.CreateSExt(scalar, ir.getInt32Ty()));
        return extended = ir.CreateSExt(mask, type);
    }

    /// Others get the mask by a test of the lanes' signs, made in their own block: a mask that
    /// crosses blocks would be packed.
    void replace_uses(Instruction& narrow, Instruction& wide) {
        std::map<BasicBlock*, Value*> tests;
        SmallVector<Use*, 16> uses;
        for (Use& use : narrow.uses()) {
            auto* user = cast<Instruction>(use.getUser());
            if (auto* bits = dyn_cast<BitCastInst>(user)) test_whole(*bits, wide);
            if (!wide_.count(user)) uses.push_back(&use);
        }
        for (Use* use : uses) {
            auto* user = cast<Instruction>(use->getUser()); // no phi: those are wide too
            Value*& test = tests[user->getParent()];
            if (!test) {
                const bool here = user->getParent() == wide.getParent();
                BasicBlock::iterator at = here && !isa<PHINode>(wide) ? std::next(wide.getIterator())
                                                                      : user->getParent()->getFirstInsertionPt();
                IRBuilder<> ir(user->getParent(), at);
                ir.SetCurrentDebugLocation(user->getDebugLoc());
                test = ir.CreateICmpSLT(&wide, Constant::getNullValue(wide.getType()));
            }
            use->set(test);
        }
    }

    /// "Any lane" and "all lanes" are one test instruction of the integers; as bits of a number
    /// they are packed first.
    static void test_whole(BitCastInst& bits, Instruction& wide) {
        for (User* user : make_early_inc_range(bits.users())) {
            auto* compare = dyn_cast<ICmpInst>(user);
            auto* with = compare ? dyn_cast<ConstantInt>(compare->getOperand(1)) : nullptr;
            if (!with || !compare->isEquality() || !(with->isZero() || with->isMinusOne())) continue;
            IRBuilder<> ir(compare);
            Value* reduced = with->isZero() ? ir.CreateOrReduce(&wide) : ir.CreateAndReduce(&wide);
            Value* same = ir.CreateICmp(compare->getPredicate(), reduced,
                                        ConstantInt::getSigned(reduced->getType(), with->isZero() ? 0 : -1));
            compare->replaceAllUsesWith(same);
            compare->eraseFromParent();
        }
    }

    Function& function_;
    MapVector<Instruction*, Instruction*> wide_;
    std::map<Value*, Value*> extended_;
};

/// Makes masks of the bits of a number by comparing them all at once. Returns if there were any.
bool spread_bits(Function& function) {
    SmallVector<BitCastInst*> masks;
    for (Instruction& instruction : instructions(function))
        if (auto* mask = dyn_cast<BitCastInst>(&instruction);
            mask && is_mask(mask->getType()) && mask->getOperand(0)->getType()->isIntegerTy())
            masks.push_back(mask);
    for (BitCastInst* mask : masks) {
        const unsigned lanes = cast<FixedVectorType>(mask->getType())->getNumElements();
        if (lanes > 32) continue;
        IRBuilder<> ir(mask);
        SmallVector<std::uint32_t, 32> bits(lanes);
        for (unsigned i = 0; i < lanes; ++i) bits[i] = 1u << i;
        Value* number = ir.CreateVectorSplat(lanes, ir.CreateZExt(mask->getOperand(0), ir.getInt32Ty()));
        mask->replaceAllUsesWith(
            ir.CreateIsNotNull(ir.CreateAnd(number, ConstantDataVector::get(ir.getContext(), bits))));
        mask->eraseFromParent();
    }
    return !masks.empty();
}

/// Accesses of a register's lanes take their part of a mask: a comparison of that part, since to take lanes out of a
/// longer mask is to pack it to bytes and to unpack these. Returns if there were any.
bool compare_parts(Function& function) {
    SmallVector<ShuffleVectorInst*> parts;
    for (Instruction& instruction : instructions(function))
        if (auto* part = dyn_cast<ShuffleVectorInst>(&instruction); part && part->getType()->isIntOrIntVectorTy(1))
            parts.push_back(part);
    bool changed = false;
    for (ShuffleVectorInst* part : parts) {
        int first = 0;
        auto* test = dyn_cast<CmpInst>(part->getOperand(0));
        if (!test || test->getParent() != part->getParent() || !part->isExtractSubvectorMask(first)) continue;
        if (test->getOperand(0)->getType()->getScalarSizeInBits() != 32) continue;
        IRBuilder<> ir(part);
        Value* left = ir.CreateShuffleVector(test->getOperand(0), part->getShuffleMask());
        Value* right = ir.CreateShuffleVector(test->getOperand(1), part->getShuffleMask());
        part->replaceAllUsesWith(ir.CreateCmp(test->getPredicate(), left, right));
        part->eraseFromParent();
        changed = true;
    }
    return changed;
}

} // namespace

PreservedAnalyses MasksAsIntegers::run(Function& function, FunctionAnalysisManager&) {
    const bool spread = spread_bits_ && spread_bits(function);
    const bool wide = WideMasks(function).run();
    return kept_blocks(compare_parts(function) || wide || spread);
}

} // namespace ptarmigan::translator
