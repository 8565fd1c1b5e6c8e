// SPDX-License-Identifier: Apache-2.0
// Code that is made quickly in forms that LLVM's fast instruction selection takes.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// x86's FastISel selects a block from its end and gives all in front of an instruction that it does not know to the
/// selection that builds a DAG, which takes several times as long. Scalars of what our code has most of are written in
/// other instructions with the same bits: absolute values, choices between bits, minima and maxima of integers,
/// `freeze` of bits, accesses to vectors that are made of scalars, and vectors of one lane. What nobody uses goes. Runs
/// last.
struct FastSelectionForms : llvm::PassInfoMixin<FastSelectionForms> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
