// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/fast_selection_forms.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/NoFolder.h>
#include <llvm/Transforms/Utils/Local.h>

#include <cstdint>
#include <vector>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool is_constant(const Value* value, bool bit) {
    const auto* constant = dyn_cast<ConstantInt>(value);
    return constant && constant->isOne() == bit;
}

/// A choice between two bits. Of `and` and `or` the other operand decides alone where the test does, whatever is
/// undefined about the chosen one: selection folds both to what is known. Where neither is a constant the choice stays
/// one, of words.
Value* bit_choice(IRBuilder<NoFolder>& ir, SelectInst& select) {
    Value *test = select.getCondition(), *yes = select.getTrueValue(), *no = select.getFalseValue();
    if (!select.getType()->isIntegerTy(1) || !test->getType()->isIntegerTy(1)) return nullptr;
    if (is_constant(no, false)) return ir.CreateAnd(test, yes);
    if (is_constant(yes, true)) return ir.CreateOr(test, no);
    if (is_constant(yes, false)) return ir.CreateAnd(ir.CreateNot(test), no);
    if (is_constant(no, true)) return ir.CreateOr(ir.CreateNot(test), yes);
    IntegerType* word = ir.getInt32Ty();
    return ir.CreateTrunc(ir.CreateSelect(test, ir.CreateZExt(yes, word), ir.CreateZExt(no, word)), select.getType());
}

/// A bit that is fixed; of legal types FastISel knows `freeze` itself.
Value* fixed_bit(IRBuilder<NoFolder>& ir, FreezeInst& freeze) {
    if (!freeze.getType()->isIntegerTy(1)) return nullptr;
    Value* byte = ir.CreateZExt(freeze.getOperand(0), ir.getInt8Ty());
    return ir.CreateTrunc(ir.CreateFreeze(byte), freeze.getType());
}

Value* absolute(IRBuilder<NoFolder>& ir, IntrinsicInst& call) {
    Type* type = call.getType();
    if (!type->isFloatTy() && !type->isDoubleTy()) return nullptr;
    IntegerType* bits = ir.getIntNTy(type->getScalarSizeInBits());
    const APInt magnitude = APInt::getSignedMaxValue(bits->getBitWidth());
    Value* whole = ir.CreateBitCast(call.getArgOperand(0), bits);
    return ir.CreateBitCast(ir.CreateAnd(whole, ConstantInt::get(bits, magnitude)), type);
}

Value* extreme(IRBuilder<NoFolder>& ir, MinMaxIntrinsic& call) {
    if (!call.getType()->isIntegerTy(32) && !call.getType()->isIntegerTy(64)) return nullptr;
    Value *left = call.getLHS(), *right = call.getRHS();
    return ir.CreateSelect(ir.CreateICmp(call.getPredicate(), left, right), left, right);
}

/// Element `index` of a vector that is put together from scalars; null: of another.
Value* known_element(Value* vector, std::uint64_t index) {
    for (;;) {
        if (auto* constant = dyn_cast<Constant>(vector)) return constant->getAggregateElement(unsigned(index));
        if (auto* insert = dyn_cast<InsertElementInst>(vector)) {
            const auto* place = dyn_cast<ConstantInt>(insert->getOperand(2));
            if (!place) return nullptr;
            if (place->getZExtValue() == index) return insert->getOperand(1);
            vector = insert->getOperand(0);
        } else if (auto* shuffle = dyn_cast<ShuffleVectorInst>(vector)) {
            const int from = shuffle->getMaskValue(unsigned(index));
            const auto* first = dyn_cast<FixedVectorType>(shuffle->getOperand(0)->getType());
            if (from < 0 || !first) return nullptr;
            const bool is_second = unsigned(from) >= first->getNumElements();
            vector = shuffle->getOperand(is_second);
            index = is_second ? unsigned(from) - first->getNumElements() : unsigned(from);
        } else {
            return nullptr;
        }
    }
}

/// The vector's type if FastISel takes accesses to each of its elements.
FixedVectorType* parted_type(Type* type) {
    auto* vector = dyn_cast<FixedVectorType>(type);
    if (!vector) return nullptr;
    Type* element = vector->getElementType();
    const bool is_word = element->isIntegerTy(8) || element->isIntegerTy(16) || element->isIntegerTy(32) ||
                         element->isIntegerTy(64) || element->isFloatTy() || element->isDoubleTy();
    return is_word ? vector : nullptr;
}

std::uint64_t element_bytes(const FixedVectorType& type) {
    return type.getScalarSizeInBits() / 8;
}

Value* element_place(IRBuilder<NoFolder>& ir, Value* pointer, std::uint64_t offset) {
    return offset == 0 ? pointer : ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), pointer, offset);
}

/// A vector whose elements are used one by one is loaded so: elements that PTX loads together are no more one access
/// than these (manual, 8.2.2). True if it was; the load has no users then.
bool part_load(LoadInst& load) {
    const auto* type = parted_type(load.getType());
    if (!type || !load.isSimple()) return false;
    std::vector<ExtractElementInst*> users;
    for (User* user : load.users()) {
        auto* extract = dyn_cast<ExtractElementInst>(user);
        const auto* index = extract ? dyn_cast<ConstantInt>(extract->getIndexOperand()) : nullptr;
        if (!index || index->getValue().uge(type->getNumElements())) return false;
        users.push_back(extract);
    }
    IRBuilder<NoFolder> ir(&load);
    std::vector<Value*> elements(type->getNumElements());
    for (ExtractElementInst* user : users) {
        const std::uint64_t index = cast<ConstantInt>(user->getIndexOperand())->getZExtValue();
        const std::uint64_t offset = index * element_bytes(*type);
        if (!elements[index])
            elements[index] =
                ir.CreateAlignedLoad(type->getElementType(), element_place(ir, load.getPointerOperand(), offset),
                                     commonAlignment(load.getAlign(), offset));
        user->replaceAllUsesWith(elements[index]);
        user->eraseFromParent();
    }
    return true;
}

/// Likewise a vector that is put together for a store. True if it was; the store can go.
bool part_store(StoreInst& store) {
    const auto* type = parted_type(store.getValueOperand()->getType());
    if (!type || !store.isSimple()) return false;
    std::vector<Value*> elements;
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
        elements.push_back(known_element(store.getValueOperand(), i));
        if (!elements.back() || isa<UndefValue>(elements.back())) return false;
    }
    IRBuilder<NoFolder> ir(&store);
    for (unsigned i = 0; i < elements.size(); ++i) {
        const std::uint64_t offset = i * element_bytes(*type);
        ir.CreateAlignedStore(elements[i], element_place(ir, store.getPointerOperand(), offset),
                              commonAlignment(store.getAlign(), offset));
    }
    return true;
}

/// What is computed from all lanes of a step of one lane.
Value* only_element(IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
    case Intrinsic::vector_reduce_add:
    case Intrinsic::vector_reduce_and:
    case Intrinsic::vector_reduce_or:
    case Intrinsic::vector_reduce_xor:
    case Intrinsic::vector_reduce_smax:
    case Intrinsic::vector_reduce_smin:
    case Intrinsic::vector_reduce_umax:
    case Intrinsic::vector_reduce_umin: break;
    default: return nullptr;
    }
    const auto* type = dyn_cast<FixedVectorType>(call.getArgOperand(0)->getType());
    return type && type->getNumElements() == 1 ? known_element(call.getArgOperand(0), 0) : nullptr;
}

/// What stands for `instruction`; null: it stays.
Value* form_of(Instruction& instruction) {
    IRBuilder<NoFolder> ir(&instruction);
    if (auto* freeze = dyn_cast<FreezeInst>(&instruction)) return fixed_bit(ir, *freeze);
    if (auto* select = dyn_cast<SelectInst>(&instruction)) return bit_choice(ir, *select);
    if (auto* extremes = dyn_cast<MinMaxIntrinsic>(&instruction)) return extreme(ir, *extremes);
    if (auto* call = dyn_cast<IntrinsicInst>(&instruction))
        return call->getIntrinsicID() == Intrinsic::fabs ? absolute(ir, *call) : only_element(*call);
    if (auto* extract = dyn_cast<ExtractElementInst>(&instruction))
        if (const auto* index = dyn_cast<ConstantInt>(extract->getIndexOperand());
            index && index->getValue().ult(cast<FixedVectorType>(extract->getVectorOperandType())->getNumElements()))
            return known_element(extract->getVectorOperand(), index->getZExtValue());
    return nullptr;
}

} // namespace

PreservedAnalyses FastSelectionForms::run(Function& function, FunctionAnalysisManager&) {
    for (BasicBlock& block : reverse(function))
        for (Instruction& instruction : make_early_inc_range(reverse(block))) {
            if (isInstructionTriviallyDead(&instruction)) {
                instruction.eraseFromParent();
                continue;
            }
            Value* other = form_of(instruction);
            if (other) instruction.replaceAllUsesWith(other);
            auto* load = dyn_cast<LoadInst>(&instruction);
            auto* store = dyn_cast<StoreInst>(&instruction);
            if (other || (load && part_load(*load)) || (store && part_store(*store))) instruction.eraseFromParent();
        }
    return kept_blocks();
}

} // namespace ptarmigan::translator
