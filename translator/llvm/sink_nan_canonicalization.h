// SPDX-License-Identifier: Apache-2.0
// Moves the canonicalisation of NaN results off the paths where nobody can see a NaN's bits.
#pragma once

#include <llvm/IR/PassManager.h>
#include <llvm/IR/Value.h>

#include <cstdint>

namespace ptarmigan::translator {

/// On a store: whoever loads the value canonicalises it, so that any NaN will do. On a freeze: whoever uses it does.
inline constexpr const char* any_nan_metadata = "ptarmigan.any_nan";
/// vfixupimmps' table that makes zeros of NaNs, quiet and signalling, and leaves the rest.
inline constexpr std::uint64_t nan_as_zero_table = 0x88;

/// The x of `x is NaN ? 0x7fffffff : x`; null for anything else.
llvm::Value* canonicalized(const llvm::Value* value);

/// The hardware's single-precision NaN is always 0x7fffffff, so the emitter writes each result x as
///     c = x is NaN ? 0x7fffffff : x
/// which lengthens every dependence chain. Arithmetic and comparisons treat all NaNs alike, so they may read x itself;
/// only what shows bits (stores, integer operations, calls) needs c. The pass
///   1. finds the values whose NaN bits are demanded by such a use,
///   2. lets all other uses read the raw value, through phis, selects, shuffles and bitcasts,
///   3. where the bits are demanded behind a loop, canonicalises there, once, instead of in the loop.
class SinkNanCanonicalization : public llvm::PassInfoMixin<SinkNanCanonicalization> {
public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
