// SPDX-License-Identifier: Apache-2.0
// Strided picks of bytes that instruction selection for AVX2 can't do.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Keeps an extension apart from a bit cast that takes its elements to pieces, on x86 without AVX-512. LLVM 19.1 there
/// sees that picking every fourth byte of one half of `zext <16 x i8> to <16 x i32>` undoes the extension, makes a copy
/// of a register without a class of it and dies of a null pointer in the next pass over machine code. Unoptimised PTX
/// has it everywhere: a byte that is stored as a word and loaded again. Takes no instructions. Runs last.
struct HideTruncations : llvm::PassInfoMixin<HideTruncations> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
