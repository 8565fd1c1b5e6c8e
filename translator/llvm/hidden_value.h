// SPDX-License-Identifier: Apache-2.0
// Values that no pass and no part of instruction selection looks through.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace ptarmigan::translator {

/// An integer of at most 64 bits, or a mask (on x86 with AVX-512), so that nobody knows where its bits come from. It
/// stays in its register: no instruction but moves between kinds of registers. Inserts at `ir`'s place.
llvm::Value* hidden_value(llvm::IRBuilder<>& ir, llvm::Value* value);

} // namespace ptarmigan::translator
