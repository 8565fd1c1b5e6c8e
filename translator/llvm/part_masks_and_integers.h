// SPDX-License-Identifier: Apache-2.0
// Masks and the integers that hold their bits, where instruction selection for AVX-512 fails or goes in circles.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Keeps apart, on x86 with AVX-512, what LLVM 19.1 can't select or never finishes with:
/// * Bits of a mask that are a half-precision number, or the other way round. It merges what lies between them
///   (`<16 x i1>` to `i16` to `half`, a part of a wider mask, several masks) to one bit cast, for which it has no
///   instruction. A vote's result, taken for two halves, is one.
/// * `or` and `xor` of two masks that come from integers and are used elsewhere, too. It does the operation on
///   integers, since both operands are bit casts, and on masks, since the result becomes one: for ever. Masks that were
///   kept in memory are such. Logic counts as what selection may make of it: `(~a & b) ^ a` is `a | b`.
/// Runs last, behind BfloatsAsIntegers.
struct PartMasksAndIntegers : llvm::PassInfoMixin<PartMasksAndIntegers> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
