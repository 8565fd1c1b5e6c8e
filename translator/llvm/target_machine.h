// SPDX-License-Identifier: Apache-2.0
// The LLVM target machine for a TargetCpu, and the function attributes that go with it.
#pragma once

#include "translator/compile.h"

#include <memory>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ptarmigan::translator {

/// A new target machine: position-independent, small code model, no FP contraction. Registers the LLVM target on
/// first use. Thread-safe; the machine itself belongs to one thread. Throws std::runtime_error for a CPU that this
/// LLVM does not know.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const TargetCpu& target,
                                                         Optimization optimization = Optimization::full);

/// Sets triple and data layout of `module`, and CPU, features and vector width of every function defined in it, so
/// that all of them may be inlined into each other.
void apply_target(llvm::Module& module, const llvm::TargetMachine& machine, const TargetCpu& target);

} // namespace ptarmigan::translator
