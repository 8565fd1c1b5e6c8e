// SPDX-License-Identifier: Apache-2.0
// The LLVM target machine for a TargetCpu, and the function attributes that go with it.
#pragma once

#include "translator/compile.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ptarmigan::translator {

/// Keeps a target machine for the next compilation of its kind: what LLVM knows of a CPU takes it as long to set up as
/// a kernel of some 20 statements takes to compile. Not after an exception, which may have left LLVM in the middle.
struct TargetMachineKeeper {
    std::string kind;
    int exceptions = 0; ///< on their way when the machine was taken
    void operator()(llvm::TargetMachine* machine) const;
};
using TargetMachinePointer = std::unique_ptr<llvm::TargetMachine, TargetMachineKeeper>;

/// A target machine: position-independent, small code model, no FP contraction. Registers the LLVM target on first use.
/// Thread-safe and free of locks; the machine itself belongs to one thread at a time. Throws std::runtime_error for a
/// CPU that this LLVM does not know.
TargetMachinePointer make_target_machine(const TargetCpu& target, Optimization optimization = Optimization::full);

/// Sets triple and data layout of `module`, and CPU, features and vector width of every function defined in it, so
/// that all of them may be inlined into each other.
void apply_target(llvm::Module& module, const llvm::TargetMachine& machine, const TargetCpu& target);

} // namespace ptarmigan::translator
