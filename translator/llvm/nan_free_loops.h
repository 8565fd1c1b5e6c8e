// SPDX-License-Identifier: Apache-2.0
// Loops over doubles without choices among NaNs, repeated with them if a NaN comes out.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Function.h>

namespace ptarmigan::translator {

/// Splits each outermost loop that has choices among NaNs (nan_choice.h), writes no memory, and
/// shows the bits of what it chooses only behind it
/// (`acc = fma(a, b, acc)`):
///
///     before ─▶ loop without choices ─▶ is a NaN among what leaves? ─no──────────────▶ behind
///                                                 └─yes─▶ the loop as written ─▶ behind
///
/// Within, payloads decide nothing: comparisons, and so the way through the loop, depend on a value
/// being a NaN, not on which. What leaves and is no NaN does not depend on them either. Returns the
/// blocks of the loops as written, which run only when there is a NaN.
llvm::SmallPtrSet<llvm::BasicBlock*, 8> split_nan_free_loops(llvm::Function& function);

} // namespace ptarmigan::translator
