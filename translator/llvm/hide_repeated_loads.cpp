// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/hide_repeated_loads.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <utility>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// Bits of a vector from memory.
struct Origin {
    LoadInst* load = nullptr; ///< null: computed, or not told
    std::uint64_t bit = 0;
};

/// Where an element of a shuffle comes from, through other shuffles and bit casts.
Origin origin(const ShuffleVectorInst& shuffle, unsigned element) {
    Value* value = const_cast<ShuffleVectorInst*>(&shuffle);
    const unsigned bits = shuffle.getType()->getScalarSizeInBits();
    std::uint64_t bit = std::uint64_t{element} * bits;
    for (;;) {
        if (auto* load = dyn_cast<LoadInst>(value)) return {load, bit};
        if (auto* cast = dyn_cast<BitCastInst>(value)) {
            value = cast->getOperand(0);
            if (!value->getType()->isVectorTy()) return {};
            continue;
        }
        auto* pick = dyn_cast<ShuffleVectorInst>(value);
        const auto* from = pick ? dyn_cast<FixedVectorType>(pick->getOperand(0)->getType()) : nullptr;
        const unsigned width = from ? from->getScalarSizeInBits() : 0;
        if (width == 0) return {}; // pointers
        const int chosen = pick->getMaskValue(unsigned(bit / width));
        if (chosen < 0) return {};
        const unsigned length = from->getNumElements();
        value = pick->getOperand(unsigned(chosen) < length ? 0 : 1);
        bit = std::uint64_t{unsigned(chosen) % length} * width + bit % width;
    }
}

} // namespace

PreservedAnalyses HideRepeatedLoads::run(Function& function, FunctionAnalysisManager&) {
    SetVector<LoadInst*> repeated;
    DenseSet<std::pair<LoadInst*, std::uint64_t>> met;
    for (Instruction& instruction : instructions(function)) {
        const auto* shuffle = dyn_cast<ShuffleVectorInst>(&instruction);
        const auto* type = shuffle ? dyn_cast<FixedVectorType>(shuffle->getType()) : nullptr;
        if (!type) continue;
        met.clear();
        for (unsigned i = 0; i < type->getNumElements(); ++i) {
            const Origin from = origin(*shuffle, i);
            if (from.load && !met.insert({from.load, from.bit}).second) repeated.insert(from.load);
        }
    }
    for (LoadInst* load : repeated) {
        IRBuilder<> ir(load->getNextNode());
        auto* hidden = cast<Instruction>(ir.CreateFreeze(load));
        load->replaceUsesWithIf(hidden, [&](const Use& use) { return use.getUser() != hidden; });
    }
    return kept_blocks(!repeated.empty());
}

} // namespace ptarmigan::translator
