// SPDX-License-Identifier: Apache-2.0
// Stack slots to SSA values, in time that grows with where a slot's value is live instead of with the function.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// What LLVM's mem2reg does: every stack slot of the entry block that is only loaded and stored becomes SSA values.
/// LLVM walks, for each slot that is written more than once, all blocks behind the first write, and keeps a value of
/// every slot for every block that it will come to: quadratic in functions with thousands of slots and blocks, which
/// are common here. Keeps the control flow.
struct PromoteSlots : llvm::PassInfoMixin<PromoteSlots> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
