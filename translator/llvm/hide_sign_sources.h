// SPDX-License-Identifier: Apache-2.0
// Small integers out of the bits of floats, which instruction selection for AVX-512 can't widen.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Keeps the bits of floats apart from a truncation that is widened to 64 bits with its sign, on x86 with AVX-512.
/// Where the first three or four elements are chosen from it, LLVM 19.1 makes an extension of half a register that it
/// then can't select: `@%p cvt.s16.s8 %s64, %f32` with a condition on the thread's number. Costs an `or` with zero.
/// Runs last.
struct HideSignSources : llvm::PassInfoMixin<HideSignSources> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
