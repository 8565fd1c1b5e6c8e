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
    /// `notes_aliases`: what the callee knows of its arguments' aliases is noted in the copy.
    explicit InlineMarked(bool notes_aliases) : notes_aliases_(notes_aliases) {}
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

private:
    bool notes_aliases_;
};

} // namespace ptarmigan::translator
