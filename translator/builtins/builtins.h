// SPDX-License-Identifier: Apache-2.0
// Semantics written as C++ over vector types (library/), compiled to bitcode at build time and linked on demand.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>

namespace llvm {
class Module;
}

namespace ptarmigan::translator {

/// The embedded bitcode modules, one per source of library/.
llvm::ArrayRef<llvm::StringRef> builtins_bitcode();

/// Defines every function named ptm_* that `module` declares, with all that they use: internal, always inlined, without
/// target attributes (apply_target() sets the module's own afterwards). Throws std::runtime_error for an unknown name.
void link_builtins(llvm::Module& module);

} // namespace ptarmigan::translator
