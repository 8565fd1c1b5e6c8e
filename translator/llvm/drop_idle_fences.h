// SPDX-License-Identifier: Apache-2.0
// To LLVM a double that was widened and is narrowed again is the number it was, a signalling NaN too; hardware makes it
// quiet. So the emitter hides what it narrows behind llvm.arithmetic.fence, through which no pass and no selection
// looks. Divisors that may be zero stand behind one, too, and stay there.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Removes the fences of doubles that come from arithmetic, whatever the way: these hold no signalling NaN, and LLVM
/// may do in float what is exact there (the square root of a widened float, narrowed).
struct DropIdleFences : llvm::PassInfoMixin<DropIdleFences> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
