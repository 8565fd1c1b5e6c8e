// SPDX-License-Identifier: Apache-2.0
// The emitter's choice among NaN operands of double arithmetic, as the passes that move it off the
// common path see it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instruction.h>

namespace ptarmigan::translator {

/// The number of `x is NaN ? quiet(x) : number`, or of `number is NaN ? 0xfff8000000000000 : number` (LLVM and AArch64
/// make other NaNs); null for anything else.
llvm::Value* unchosen(const llvm::Value* value);

/// The operation within nested choices.
llvm::Value* operation_of(llvm::Value* choice);

/// True for operations that give a NaN if an operand is one, and whose NaN-ness does not depend on
/// an operand's payload.
bool hands_on_nan(const llvm::Instruction& instruction);

/// i1: an element of `numbers` (floats or vectors of them) is a NaN. Vectors are compared with each
/// other, eight elements at a time; elements may be poison (lanes that don't execute).
llvm::Value* any_nan(llvm::IRBuilder<>& ir, llvm::ArrayRef<llvm::Value*> numbers);

} // namespace ptarmigan::translator
