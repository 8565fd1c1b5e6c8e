// SPDX-License-Identifier: Apache-2.0
// Full fences of x86, by what is quick there.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Makes sequentially consistent fences a locked operation that changes nothing, which code generation puts on the
/// stack: it orders all that kernels access (memory of the usual type, written back; nothing that goes past the caches
/// in kernels with fences) as MFENCE does, which waits for whatever is under way besides. Runs late, so that other
/// passes see fences.
struct LockFences : llvm::PassInfoMixin<LockFences> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
