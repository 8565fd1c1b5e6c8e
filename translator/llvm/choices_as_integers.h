// SPDX-License-Identifier: Apache-2.0
// Choices between compared floats that instruction selection for AArch64 takes for a minimum or a maximum.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Makes a select between floats, by which of one of them and another number is less, a select between integers, on
/// AArch64. LLVM 19 takes `x > 0 ? x : 0` for maxnum and makes `fmaxnm` of it, which gives a NaN where x is a
/// signalling NaN (Arm Architecture Reference Manual, FPMaxNum) and of two zeros the positive one, whichever is chosen.
/// x86 has no such instruction. Runs behind the passes that know floats.
struct ChoicesAsIntegers : llvm::PassInfoMixin<ChoicesAsIntegers> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
