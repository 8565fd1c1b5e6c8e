// SPDX-License-Identifier: Apache-2.0
// What all functions of one kernel's LLVM module share: the module, debug locations, shared-memory layout, functions
// that are called for real. One per compilation; not thread-safe.
#pragma once

#include "translator/analysis/build/build_graph.h"
#include "translator/compile.h"

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <set>
#include <string>

namespace ptarmigan::translator {

/// Shared memory of each CTA that the system keeps for itself, on compute capability 8.0 and later.
inline constexpr std::uint32_t reserved_shared_bytes = 1024;

class KernelUnit {
public:
    KernelUnit(llvm::LLVMContext& context, ptx::ModuleLoader& loader, ptx::FunctionId kernel, const BlockShape& shape,
               const CompileOptions& options);

    llvm::LLVMContext& context;
    ptx::ModuleLoader& loader;
    const ptx::FunctionId kernel;
    const BlockShape shape;
    const CompileOptions options;
    unsigned width = 32;          ///< lanes per step, decided before emission
    bool fiber_form = false;      ///< services may suspend the step
    bool reserved_shared = false; ///< uses %reserved_smem_offset_*
    bool spins = false;           ///< some loop waits for memory: its back edges yield now and then
    /// Region form: barriers' blocks (no_block: the beginning) behind which steps run from the last one to the first.
    std::set<std::uint32_t> falling_steps;
    bool gives_turns = false;  ///< region form: the CTA lets others run where it waits or may, on a fiber of its own
    bool runs_in_rows = false; ///< region form: CTAs next to each other run together, cta_order.h
    bool lane_by_lane = false; ///< what is emitted now runs lane by lane, and the lane is noted: lane_regions.h
    bool notes_writes = false; ///< of global memory, because copies that may be late read it
    DivergenceForm divergence = DivergenceForm::masks;
    SharedLayout shared; ///< of the kernel and all it calls
    std::unique_ptr<llvm::Module> module;
    std::map<ptx::FunctionId, llvm::Function*> callees; ///< real calls: declared here, emitted by emit_kernel
    std::vector<ptx::FunctionId> callee_queue;          ///< declared but not emitted yet

    std::uint32_t thread_count() const { return shape.ntid[0] * shape.ntid[1] * shape.ntid[2]; }
    /// Threads that are next to each other in x.
    std::uint32_t row_threads() const { return shape.ntid[0]; }
    std::uint32_t cluster_size() const { return shape.cluster[0] * shape.cluster[1] * shape.cluster[2]; }
    std::uint32_t step_count() const { return (thread_count() + width - 1) / width; }
    bool partial_last_step() const { return thread_count() % width != 0; }

    /// A function with the attributes all generated code carries (CPU, features, no unwinding) and a debug scope.
    llvm::Function* create_function(llvm::FunctionType* type, const std::string& name,
                                    llvm::Function::LinkageTypes linkage);
    llvm::DebugLoc location(llvm::Function* function, SourceLocation where);
    /// The same for instructions that access memory as `form` says. DWARF's column carries the form's number: of all
    /// that an instruction can say about itself only its location reaches the machine code.
    llvm::DebugLoc location(llvm::Function* function, SourceLocation where, const AccessForm& form);
    /// The forms that locations name, by number - 1.
    std::vector<AccessForm> access_forms() const;
    /// The LLVM function of a PTX function that is called for real:
    /// void (CtaContext*, i32 step, iW active lanes, i64 offset of its argument block in the thread's local memory).
    llvm::Function* callee(ptx::FunctionId function);
    llvm::FunctionType* callee_type() const;
    void finish_debug_info() { debug_.finalize(); }

private:
    llvm::DIBuilder debug_;
    std::map<AccessForm, unsigned> access_numbers_;
    llvm::DIFile* file_;
    llvm::DICompileUnit* compile_unit_;
};

} // namespace ptarmigan::translator
