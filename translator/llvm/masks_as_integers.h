// SPDX-License-Identifier: Apache-2.0
// Masks where there are no mask registers (AVX2, NEON).
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Makes phis and logic of vectors of i1 work on 32-bit lanes of all ones or zeros, which is what comparisons give and
/// what blends and masked accesses take. Left alone, instruction selection packs them to bytes and unpacks them again
/// at each use; on AArch64 masks of 32 lanes that cross blocks become 32 scalars. Runs after InstCombine, which would
/// turn them back.
class MasksAsIntegers : public llvm::PassInfoMixin<MasksAsIntegers> {
public:
    /// `spread_bits`: masks that are the bits of a number are compared out of it, since AArch64's instruction selection
    /// takes each bit by itself.
    explicit MasksAsIntegers(bool spread_bits) : spread_bits_(spread_bits) {}
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

private:
    bool spread_bits_;
};

} // namespace ptarmigan::translator
