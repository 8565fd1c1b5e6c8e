// SPDX-License-Identifier: Apache-2.0
// Masks where there are no mask registers (AVX2).
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Makes phis and logic of vectors of i1 work on 32-bit lanes of all ones or zeros, which is what comparisons give and
/// what blends and masked accesses take. Left alone, instruction selection packs them to bytes and unpacks them again
/// at each use. Runs after InstCombine, which would turn them back.
struct MasksAsIntegers : llvm::PassInfoMixin<MasksAsIntegers> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
