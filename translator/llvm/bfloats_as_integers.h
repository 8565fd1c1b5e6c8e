// SPDX-License-Identifier: Apache-2.0
// Keeps bfloats out of LLVM's hands where only their bits are moved.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Makes all that only moves bfloats (phis, selects, loads, stores, shuffles, negations, ...) move 16-bit integers, and
/// compares them as floats; vectors too. For these x86 code generation widens bfloats to float and rounds the result
/// again: through vcvtneps2bf16, which flushes subnormals, or through a library call that isn't there. Runs last:
/// InstCombine would turn them back.
struct BfloatsAsIntegers : llvm::PassInfoMixin<BfloatsAsIntegers> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
