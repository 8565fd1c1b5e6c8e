// SPDX-License-Identifier: Apache-2.0
// Links the functions of a bitcode library that a module calls.
#pragma once

#include <llvm/ADT/StringRef.h>

namespace llvm {
class Module;
}

namespace ptarmigan::translator {

/// Copies from `bitcode` what `module` declares without defining, and what that needs; the copies become internal, and
/// are inlined everywhere unless marked noinline. Does nothing (and parses nothing) if `module` has no such declaration
/// beginning with `prefix`. Throws std::runtime_error if the bitcode can't be read.
void link_bitcode(llvm::Module& module, llvm::StringRef bitcode, llvm::StringRef prefix);

} // namespace ptarmigan::translator
