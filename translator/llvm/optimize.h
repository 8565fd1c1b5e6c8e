// SPDX-License-Identifier: Apache-2.0
// The pass list between the emitter and code generation. Short on purpose: see README.md for what was measured.
#pragma once

#include "translator/compile.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ptarmigan::translator {

/// Optimises `module` in place for `machine`. Keeps floating-point results bit for bit.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, Optimization optimization = Optimization::full);

} // namespace ptarmigan::translator
