// SPDX-License-Identifier: Apache-2.0
// Two regions that follow each other round after round, and the usual way through a step of the first.
#pragma once

#include "translator/llvm/region_choice.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include <optional>
#include <utility>
#include <vector>

namespace ptarmigan::translator {

/// The steps of `loads` come one after the other and may branch; those of `products` are spelled out without a branch.
/// Refers to the RegionChoice that it was found in.
struct PhaseRounds {
    const ChosenRegion *loads = nullptr, *products = nullptr;
    llvm::ConstantInt *loads_number = nullptr, *products_number = nullptr;
    llvm::BasicBlock* from = nullptr; ///< where the first round is come to
    llvm::Loop* loop = nullptr;       ///< over the steps that load
    llvm::PHINode* number = nullptr;  ///< of the step
    unsigned steps = 0;

    std::vector<llvm::BasicBlock*> path; ///< of a step that loads, if nothing rare happens
    llvm::DenseMap<const llvm::BasicBlock*, llvm::BasicBlock*> before;
    llvm::BranchInst* stay = nullptr; ///< whether there is another round
    bool stays_if = false;
    std::vector<std::pair<llvm::Value*, bool>> rare; ///< tests, and what they usually are

    /// What a phi is on the usual way.
    llvm::Value* on_path(llvm::Value* value) const;
    bool is_on_path(const llvm::Instruction& instruction) const { return before.contains(instruction.getParent()); }
    /// In all steps of an interval the same, and known before the first of them.
    bool is_uniform(llvm::Value* value) const;
};

/// `loads`, `products`: places in `choice.regions`.
std::optional<PhaseRounds> find_phase_rounds(const RegionChoice& choice, std::size_t loads, std::size_t products,
                                             llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution);

} // namespace ptarmigan::translator
