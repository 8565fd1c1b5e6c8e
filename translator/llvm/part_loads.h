// SPDX-License-Identifier: Apache-2.0
// Many loads that nothing in memory changes between.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Puts a fence of the compiler alone, for which nothing is emitted, behind every 32 vectors of x86 that a block loads
/// one after the other. LLVM's X86 combiner (`combineLoad`) looks, for each load of 128 or 256 bits and each time that
/// it visits one, at all that hang on the same memory chain: of a warp's tile of matrices 1,664 do. Runs late, so that
/// no pass of ours sees the fences.
struct PartLoads : llvm::PassInfoMixin<PartLoads> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
