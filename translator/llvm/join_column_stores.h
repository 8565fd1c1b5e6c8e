// SPDX-License-Identifier: Apache-2.0
// A tile is often stored transposed: the lanes of a step write to one column of it, the next step to the next. What
// sixteen steps store so are sixteen rows of sixteen words; kept until the last of them has come, they are written as
// vectors.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Of loops over steps (step_loops.h) in which nothing else touches those places.
struct JoinColumnStores : llvm::PassInfoMixin<JoinColumnStores> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
