// SPDX-License-Identifier: Apache-2.0
// Comparisons of halves where the CPU has none.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Compares halves as floats, which is exact, unless the function's target compares halves. InstCombine makes
/// comparisons of halves of those of widened ones (the test for a NaN behind each conversion), and x86 code generation
/// without AVX512-FP16 takes vectors of them apart lane by lane: 175 instructions for 16 lanes of cvt.f32.f16 instead
/// of 20. With AVX512-FP16 it would do, but there a guarded setp.geu.f16 gave the opposite at 16 lanes or more
/// (LLVM 19.1, Sapphire Rapids; random program 86): x86 always compares as floats. Runs behind InstCombine.
struct CompareHalvesAsFloats : llvm::PassInfoMixin<CompareHalvesAsFloats> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
