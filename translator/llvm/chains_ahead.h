// SPDX-License-Identifier: Apache-2.0
// Long rounds that begin with a chain of multiply-adds and go on with what hangs on the rounds before: a score for each
// key, then a soft-max as it goes. A CPU that can't look as far as the next round waits for one chain after the other.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Computes such chains a round ahead, among what else the round before does: no addition changes its place in its
/// chain. Only in loops of one block that write no memory; what the last round would load ahead it loads again from
/// where it is. Behind the passes that look at loops.
struct ChainsAhead : llvm::PassInfoMixin<ChainsAhead> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
