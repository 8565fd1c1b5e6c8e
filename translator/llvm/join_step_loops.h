// SPDX-License-Identifier: Apache-2.0
// Scans, sums by trees and transpositions in shared memory: between barriers every thread reads a few words that others
// have just written, at places that the threads' numbers alone tell. As loops over steps that is a load, a sum and a
// store of a word or two for each thread and barrier, of words that lie apart or that were written in other pieces.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Writes loops over steps (step_loops.h) that follow each other out as one straight line, where nothing but the
/// step's number decides what they do and which places they access, and hands words from store to load in registers: a
/// load of words of other vectors becomes a permutation of these. What is written again before it is read is not
/// stored. The order of steps and barriers is the order of the line, so nothing changes but where words are.
struct JoinStepLoops : llvm::PassInfoMixin<JoinStepLoops> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
