// SPDX-License-Identifier: Apache-2.0
// Regions into the loops over steps, and builtins into what calls them.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Inlines all calls of functions that are marked `alwaysinline`, and removes those that nobody names any more. Does
/// what LLVM's AlwaysInliner does without block frequencies, which nothing here reads and which take time that grows
/// with the square of the blocks of a loop.
class InlineMarked : public llvm::PassInfoMixin<InlineMarked> {
public:
    /// `for_short_code`: what takes less code as one function that is called stays one, and what a callee knows of its
    /// arguments' aliases is not noted in the copies.
    explicit InlineMarked(bool for_short_code) : for_short_code_(for_short_code) {}
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

private:
    bool for_short_code_;
};

} // namespace ptarmigan::translator
