// SPDX-License-Identifier: Apache-2.0
// Loops over steps that do something else where a test says so, which hardly ever happens: sums of doubles whose NaNs
// must be chosen (DeferNanChoice). Between the test and what comes behind it there is a block of repetition, so that a
// step is three blocks, which JamSteps can't let go side by side.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace ptarmigan::translator {

/// A loop over steps of one block, as if its test never held, and the loop that does some of its steps as written.
struct RareSteps {
    llvm::BasicBlock* usual;
    llvm::Instruction* test;  ///< in `usual`
    bool holds_if;            ///< the test's value that makes a step rare
    llvm::Instruction* first; ///< of what a rare step must not do in `usual`: its stores, at the block's end
    llvm::SmallVector<std::pair<llvm::PHINode*, llvm::PHINode*>, 4> phis; ///< of `usual`, and of the other loop
    llvm::BasicBlock *begin, *end; ///< of the other loop, without a way in or out
    llvm::PHINode* number;         ///< of the step, in the other loop
    llvm::Value* next;
};

/// Takes such loops apart, where what the test decides about is only stored and `wanted` says yes to the usual block.
/// The function is whole again when each of them has been joined; until then its analyses can be asked anew.
std::vector<RareSteps> part_rare_steps(llvm::LoopInfo& loops, llvm::function_ref<bool(llvm::BasicBlock&)> wanted);

/// `marker` in `steps.usual` says whether any of `count` steps is rare: those are then done as written, from the values
/// `starts` of the phis on, instead of all between the marker and the block's end.
void join_rare_steps(const RareSteps& steps, llvm::Instruction& marker, llvm::ArrayRef<llvm::Value*> starts,
                     unsigned count);
/// Likewise where the loop has stayed as it is: one step each time.
void join_rare_steps(const RareSteps& steps);

} // namespace ptarmigan::translator
