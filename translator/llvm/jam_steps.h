// SPDX-License-Identifier: Apache-2.0
// Products of matrices in plain code: between two barriers each step adds products of what it loads to its own few
// sums. Step after step that loads the same rows again and again, and waits for each sum's chain of additions.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Lets as many steps as registers have room for go through their chains of additions side by side: all first links,
/// then all second ones, each with what it multiplies loaded right before. Where one step's sums alone are more than
/// the registers hold, they go through in groups. Each sum is added up in its own order, as before. Behind the other
/// passes; the fences of the compiler alone (PartLoads) that it puts between the links keep their order in code
/// generation.
struct JamSteps : llvm::PassInfoMixin<JamSteps> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
