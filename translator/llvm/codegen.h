// SPDX-License-Identifier: Apache-2.0
// From an optimised LLVM module to an object in memory, or to assembly text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class MemoryBuffer;
class Module;
class TargetMachine;
} // namespace llvm

namespace ptarmigan::translator {

/// The relocatable ELF object of `module`. Throws std::runtime_error with LLVM's message if it can't be made.
std::unique_ptr<llvm::MemoryBuffer> generate_object(llvm::Module& module, llvm::TargetMachine& machine);

/// The assembly text of `module`. Throws like generate_object().
std::string generate_assembly(llvm::Module& module, llvm::TargetMachine& machine);

/// Sets LLVM's options, and makes an exception of what it would end the process for. Once per process; thread-safe.
void prepare_llvm();

/// Turns what LLVM would print and exit() for (back-end diagnostics, fatal errors) into std::runtime_error while it
/// lives; check() throws the first diagnostic seen so far. One per compilation, in the thread that compiles.
class LlvmErrorScope {
public:
    explicit LlvmErrorScope(llvm::LLVMContext& context);
    ~LlvmErrorScope();
    LlvmErrorScope(const LlvmErrorScope&) = delete;
    LlvmErrorScope& operator=(const LlvmErrorScope&) = delete;
    void check() const;

private:
    struct Collector;
    llvm::LLVMContext& context_;
    std::string first_error_;
};

} // namespace ptarmigan::translator
