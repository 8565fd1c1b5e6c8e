// SPDX-License-Identifier: Apache-2.0
// Vectors from memory whose elements are copied, which LLVM's DAG combiner turns into a cycle.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Keeps a load apart from shuffles that put one of its elements into several places, in code that is not optimised:
/// `ld.f32 %f, [table + (t & ~3)]` in steps of vectors. Where such copies are used one by one, LLVM 19.1 makes a scalar
/// load of each; equal loads become one, and ordering it twice behind the first load makes the chain of memory
/// operations its own predecessor (`SelectionDAG::makeEquivalentMemoryOrdering`, reported as llvm-project 211496): the
/// next replacement never ends. A `freeze` takes no instruction, but the load is no operand of the shuffle any more.
/// Optimised code looks through the shuffles first and meets each element once. Runs last.
struct HideRepeatedLoads : llvm::PassInfoMixin<HideRepeatedLoads> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
