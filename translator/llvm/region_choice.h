// SPDX-License-Identifier: Apache-2.0
// The loop of a kernel's driver over its regions (emit/region_driver), as optimised code has it: a switch over the
// number of the next region, to which every region comes back.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <optional>
#include <utility>
#include <vector>

namespace ptarmigan::translator {

/// Reached from the choice of the next region, and back to it over one edge.
struct ChosenRegion {
    llvm::BasicBlock* entry = nullptr;
    llvm::SetVector<llvm::BasicBlock*> blocks;
    llvm::BasicBlock* last = nullptr;
};

struct RegionChoice {
    llvm::BasicBlock* block = nullptr; ///< of the next region, by `next`
    llvm::PHINode* next = nullptr;
    llvm::LoadInst* frames = nullptr; ///< where the steps' frames are
    std::vector<std::pair<llvm::ConstantInt*, ChosenRegion>> regions;
};

/// None where fewer than two regions are of this form.
std::optional<RegionChoice> find_region_choice(llvm::Function& function);

/// A load of where the steps' frames are.
bool is_frames_field(const llvm::LoadInst& load);

} // namespace ptarmigan::translator
