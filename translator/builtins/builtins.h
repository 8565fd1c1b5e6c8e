// SPDX-License-Identifier: Apache-2.0
// Semantics written as C++ over vector types (library/), compiled to bitcode at build time and linked on demand.
#pragma once

namespace llvm {
class Module;
}

namespace ptarmigan::translator {

struct TargetCpu;

/// Defines every function named ptm_* that `module` declares, with all that they use: internal, always inlined, without
/// target attributes (apply_target() sets the module's own afterwards). Of a function's variants the best one that
/// `target` can run is taken. Throws std::runtime_error for an unknown name.
void link_builtins(llvm::Module& module, const TargetCpu& target);

} // namespace ptarmigan::translator
