// SPDX-License-Identifier: Apache-2.0
// Choices between the bits of two vectors, which instruction selection for AVX-512 gets wrong under a mask.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Hides the constant of `(x & C) | (y & ~C)`, copysign among them, where a mask then chooses between it and what was
/// there before, on x86 with AVX-512. LLVM 19.1 selects one ternary instruction for all of it, with C in memory, and
/// takes the truth table of another order of operands if x or y is what was there before: guarded copysign, bfi and
/// lop3 of some registers gave wrong bits. Takes no instructions: C is loaded to a register. Runs behind InstCombine,
/// which writes choices so.
struct HideBitSelectors : llvm::PassInfoMixin<HideBitSelectors> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
