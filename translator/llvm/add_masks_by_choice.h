// SPDX-License-Identifier: Apache-2.0
// Sums with masks, on which instruction selection for AVX-512 may go in circles.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Writes `x + zext(mask)` and its like (`-`, sext) as `x + select(mask, 1, 0)`, on x86 with AVX-512. LLVM 19.1 makes
/// `x - sext` of `x + zext` there, `x + sext` of `x - zext`, and zext of sext where it knows that the mask is zero, but
/// not yet as a constant (a part of a longer one, of lanes that a block does not have): for ever. The choice becomes
/// the sum's own mask, one instruction less. Runs behind InstCombine, which writes extensions.
struct AddMasksByChoice : llvm::PassInfoMixin<AddMasksByChoice> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
