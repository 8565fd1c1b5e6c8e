// SPDX-License-Identifier: Apache-2.0
// What all steps of a CTA load from the same place of shared memory between two barriers is loaded once, before the
// first of them: the row of a tile that every warp multiplies by. LLVM's own pass would do so in the kernel's loops,
// too, where a load may wait for what others write.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Moves vectors that a loop over steps (step_loops.h) loads, and nothing in it may write, in front of it, as far as
/// registers last.
struct HoistFromSteps : llvm::PassInfoMixin<HoistFromSteps> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

/// Likewise vectors of words that are loaded one by one, from places that are the same in all steps: a table that lanes
/// read each at a place of their own. And scalars that take long to compute. Behind InstCombine, which sees that
/// (`thread & 31` does not know its step).
struct HoistGathered : llvm::PassInfoMixin<HoistGathered> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
