// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// What a pass keeps that changes instructions and no branch.
inline llvm::PreservedAnalyses kept_blocks(bool changed = true) {
    if (!changed) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
}

} // namespace ptarmigan::translator
