// SPDX-License-Identifier: Apache-2.0
// Keeps the place of a memory access (PTX line, and what KernelUnit::location() notes beside it) through code
// generation. LLVM folds loads into the instructions that use them, which have places of their own; what stays with the
// access is its alias scope, so the place is written there and put back once the machine code is final.
#pragma once

namespace llvm {
class Instruction;
class MachineFunctionPass;
} // namespace llvm

namespace ptarmigan::translator {

/// Writes the debug location of `access` down with it. The scopes are not used to tell accesses apart.
void keep_place(llvm::Instruction& access);

/// Gives every instruction that makes exactly one access with a place that place.
llvm::MachineFunctionPass* create_place_restorer();

} // namespace ptarmigan::translator
