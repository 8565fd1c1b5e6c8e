// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/cta_places.h"

#include "translator/kernel_abi.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <cstddef>

namespace ptarmigan::translator {

/// Bytes from a base, and of an element: more wraps around, or may.
static constexpr std::int64_t farthest = std::int64_t(1) << 40, largest = 4096;

std::optional<std::uint64_t> context_field(const llvm::Value* pointer, const llvm::DataLayout& layout) {
    llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    const auto* argument =
        llvm::dyn_cast<llvm::Argument>(pointer->stripAndAccumulateConstantOffsets(layout, offset, true));
    if (!argument || argument->getArgNo() != 0) return std::nullopt;
    return offset.getZExtValue();
}

std::optional<Access> access_of(llvm::Instruction& instruction) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
        if (!load->isSimple()) return std::nullopt;
        return Access{load->getPointerOperand(), load->getType()};
    }
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        if (!store->isSimple()) return std::nullopt;
        return Access{store->getPointerOperand(), store->getValueOperand()->getType(), store->getValueOperand()};
    }
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call) return std::nullopt;
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_gather:
        return Access{call->getArgOperand(0), call->getType(), nullptr, call->getArgOperand(2), call->getArgOperand(3)};
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter:
        return Access{call->getArgOperand(1), call->getArgOperand(0)->getType(), call->getArgOperand(0),
                      call->getArgOperand(3)};
    default: return std::nullopt;
    }
}

std::optional<WordMemory::Place> CtaPlaces::of(llvm::Value* pointer, unsigned lane) {
    using Place = WordMemory::Place;
    const auto near = [](const Place& place) -> std::optional<Place> {
        if (place.offset < -farthest || place.offset > farthest) return std::nullopt;
        return place;
    };
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(pointer))
        return number->getBitWidth() > 64 ? std::nullopt : near({nullptr, number->getSExtValue()});
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(pointer)) {
        llvm::Constant* element = constant->getType()->isVectorTy() ? constant->getAggregateElement(lane) : nullptr;
        return element && llvm::isa<llvm::ConstantInt>(element) ? of(element, 0) : std::nullopt;
    }
    if (llvm::isa<llvm::AllocaInst>(pointer)) return Place{pointer, 0};
    const auto sum = [&](std::optional<Place> a, std::optional<Place> b) -> std::optional<Place> {
        if (!a || !b || (a->base && b->base)) return std::nullopt;
        return near({a->base ? a->base : b->base, a->offset + b->offset});
    };
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(pointer);
    if (!instruction) return std::nullopt;
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Load: {
        const auto field = context_field(instruction->getOperand(0), layout_);
        if (instruction->getType()->isVectorTy() || layout_.getTypeSizeInBits(instruction->getType()) != 64)
            return std::nullopt;
        if (field != offsetof(abi::CtaContext, shared) && field != offsetof(abi::CtaContext, frames))
            return std::nullopt;
        return Place{fields_.try_emplace(*field, instruction).first->second, 0};
    }
    case llvm::Instruction::IntToPtr:
    case llvm::Instruction::PtrToInt:
        if (layout_.getTypeSizeInBits(instruction->getType()->getScalarType()) != 64) return std::nullopt;
        return of(instruction->getOperand(0), lane);
    case llvm::Instruction::Or:
        if (!llvm::cast<llvm::PossiblyDisjointInst>(instruction)->isDisjoint()) return std::nullopt;
        [[fallthrough]];
    case llvm::Instruction::Add:
        if (instruction->getType()->getScalarSizeInBits() != 64) return std::nullopt;
        return sum(of(instruction->getOperand(0), lane), of(instruction->getOperand(1), lane));
    case llvm::Instruction::GetElementPtr: {
        auto* element = llvm::cast<llvm::GetElementPtrInst>(instruction);
        if (element->getNumIndices() != 1) return std::nullopt;
        const auto index = of(element->getOperand(1), lane);
        const auto size = std::int64_t(layout_.getTypeAllocSize(element->getSourceElementType()).getFixedValue());
        if (!index || index->base || size > largest) return std::nullopt;
        return sum(of(element->getPointerOperand(), lane), near({nullptr, index->offset * size}));
    }
    case llvm::Instruction::InsertElement: {
        const auto* at = llvm::dyn_cast<llvm::ConstantInt>(instruction->getOperand(2));
        if (!at) return std::nullopt;
        return at->getZExtValue() == lane ? of(instruction->getOperand(1), 0) : of(instruction->getOperand(0), lane);
    }
    case llvm::Instruction::ShuffleVector: {
        auto* shuffle = llvm::cast<llvm::ShuffleVectorInst>(instruction);
        const int from = shuffle->getMaskValue(lane);
        const auto size = int(llvm::cast<llvm::FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements());
        if (from < 0) return std::nullopt;
        return from < size ? of(shuffle->getOperand(0), unsigned(from))
                           : of(shuffle->getOperand(1), unsigned(from - size));
    }
    default: return std::nullopt;
    }
}

std::optional<bool> CtaPlaces::compare(const llvm::ICmpInst& comparison) {
    if (comparison.getType()->isVectorTy()) return std::nullopt;
    const auto a = of(comparison.getOperand(0), 0), b = of(comparison.getOperand(1), 0);
    if (!a || !b || !a->base || a->base != b->base) return std::nullopt;
    const llvm::APInt left(64, std::uint64_t(a->offset), true), right(64, std::uint64_t(b->offset), true);
    const llvm::CmpInst::Predicate predicate = comparison.isUnsigned()
                                                   ? llvm::ICmpInst::getSignedPredicate(comparison.getPredicate())
                                                   : comparison.getPredicate();
    return llvm::ICmpInst::compare(left, right, predicate);
}

} // namespace ptarmigan::translator
