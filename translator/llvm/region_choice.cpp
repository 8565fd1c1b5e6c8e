// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/region_choice.h"

#include "translator/kernel_abi.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Module.h>

#include <cstddef>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

bool collect(const BasicBlock* choice, ChosenRegion& region) {
    region.blocks.insert(region.entry);
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        BasicBlock* block = region.blocks[i];
        if (succ_empty(block)) return false;
        for (BasicBlock* successor : successors(block)) {
            if (successor != choice) {
                region.blocks.insert(successor);
                continue;
            }
            if (region.last && region.last != block) return false;
            region.last = block;
        }
    }
    for (BasicBlock* block : region.blocks)
        for (BasicBlock* before : predecessors(block))
            if (!region.blocks.contains(before) && (before != choice || block != region.entry)) return false;
    return region.last != nullptr;
}

} // namespace

bool is_frames_field(const LoadInst& load) {
    const DataLayout& layout = load.getModule()->getDataLayout();
    APInt offset(layout.getIndexTypeSizeInBits(load.getPointerOperandType()), 0);
    return isa<Argument>(load.getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, false)) &&
           offset == offsetof(abi::CtaContext, frames);
}

std::optional<RegionChoice> find_region_choice(Function& function) {
    RegionChoice found;
    for (BasicBlock& block : function) {
        auto* choice = dyn_cast<SwitchInst>(block.getTerminator());
        auto* next = choice ? dyn_cast<PHINode>(choice->getCondition()) : nullptr;
        if (!next || next->getParent() != &block || &*block.getFirstNonPHIOrDbg() != choice) continue;
        found.block = &block;
        found.next = next;
        break;
    }
    if (!found.block) return std::nullopt;
    for (auto each : cast<SwitchInst>(found.block->getTerminator())->cases()) {
        ChosenRegion region{each.getCaseSuccessor(), {}, nullptr};
        if (collect(found.block, region)) found.regions.push_back({each.getCaseValue(), region});
    }
    for (Instruction& instruction : function.getEntryBlock()) {
        auto* load = dyn_cast<LoadInst>(&instruction);
        if (load && is_frames_field(*load)) found.frames = load;
    }
    if (!found.frames || found.regions.size() < 2) return std::nullopt;
    return found;
}

} // namespace ptarmigan::translator
