// SPDX-License-Identifier: Apache-2.0
// Two intervals between barriers that follow each other round after round: the steps load tiles into shared memory,
// then multiply what is there. All that a step keeps from one to the other lies in its frame, sums as well as the
// addresses of the next tile, and each step asks anew whether its lanes are neighbours.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Makes a second form of such rounds, for what steps usually do: sums are in registers, addresses of all steps are the
/// first one's plus a distance, and the steps that load are spelled out one after the other. That nothing rare will
/// happen and that addresses are so is tested once, in front of the first round. The last round leaves everything as
/// the general form wants it, which goes on from there. Behind JamSteps.
struct RegisterPhases : llvm::PassInfoMixin<RegisterPhases> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
