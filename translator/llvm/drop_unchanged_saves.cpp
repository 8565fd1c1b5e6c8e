// SPDX-License-Identifier: Apache-2.0
// LLVM's own passes keep most of these stores: between load and store stand scatters, and calls to which the frame
// might be visible once the function is inlined.
#include "translator/llvm/drop_unchanged_saves.h"

#include "translator/llvm/sink_nan_canonicalization.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace ptarmigan::translator {
namespace {

/// The marked argument that `address` is a constant number of bytes behind, or null.
const llvm::Argument* frame_of(const llvm::Value* address, const llvm::DataLayout& layout, llvm::APInt& offset) {
    offset = llvm::APInt(layout.getIndexTypeSizeInBits(address->getType()), 0);
    auto* argument = llvm::dyn_cast<llvm::Argument>(address->stripAndAccumulateConstantOffsets(layout, offset, false));
    return argument && argument->getParent()->getAttributes().hasParamAttr(argument->getArgNo(), frame_attribute)
               ? argument
               : nullptr;
}

/// Lanes' bits are a word of 64 in the frame, whose other bits are zero: the load of the word that `value` was taken
/// from, or null.
const llvm::Value* mask_word(const llvm::Value* value) {
    if (const auto* wide = llvm::dyn_cast<llvm::ZExtInst>(value)) {
        value = wide->getOperand(0);
        while (const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
        const auto* narrow = llvm::dyn_cast<llvm::TruncInst>(value);
        if (!narrow || narrow->getType() != wide->getOperand(0)->getType()) return nullptr;
        value = narrow->getOperand(0);
    }
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(value);
    return load && load->getMetadata(mask_word_metadata) ? load : nullptr;
}

bool is_unchanged_save(const llvm::StoreInst& store, const llvm::DataLayout& layout) {
    const llvm::Value* value = store.getValueOperand();
    if (const llvm::Value* number = canonicalized(value); number && store.getMetadata(any_nan_metadata)) value = number;
    // A flag is a byte there and a bit in between.
    if (const auto* wide = llvm::dyn_cast<llvm::ZExtInst>(value))
        if (const auto* bit = llvm::dyn_cast<llvm::TruncInst>(wide->getOperand(0));
            bit && bit->getType()->isIntegerTy(1) && bit->getOperand(0)->getType() == wide->getType())
            value = bit->getOperand(0);
    if (store.getMetadata(mask_word_metadata)) value = mask_word(value);
    const auto* load = llvm::dyn_cast_or_null<llvm::LoadInst>(value);
    if (!load || load->getParent() != &store.getFunction()->getEntryBlock()) return false;
    llvm::APInt from, to;
    const llvm::Argument* frame = frame_of(store.getPointerOperand(), layout, to);
    return frame && frame == frame_of(load->getPointerOperand(), layout, from) && from == to;
}

} // namespace

llvm::PreservedAnalyses DropUnchangedSaves::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    const llvm::DataLayout& layout = function.getParent()->getDataLayout();
    bool changed = false;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
        if (!store || !is_unchanged_save(*store, layout)) continue;
        store->eraseFromParent();
        changed = true;
    }
    if (!changed) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
}

} // namespace ptarmigan::translator
