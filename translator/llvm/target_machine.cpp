// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/target_machine.h"

#include "translator/llvm/sve.h"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace ptarmigan::translator {
namespace {

void register_targets() {
    static std::once_flag once;
    std::call_once(once, [] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeAArch64TargetInfo();
        LLVMInitializeAArch64Target();
        LLVMInitializeAArch64TargetMC();
        LLVMInitializeAArch64AsmPrinter();
    });
}

/// Nobody uses it.
struct IdleMachine {
    std::string kind;
    std::unique_ptr<llvm::TargetMachine> machine;
};

/// As many as a process is likely to compile with at a time. No mutex: a fork may come at any time.
std::array<std::atomic<IdleMachine*>, 4> idle_machines;

std::unique_ptr<llvm::TargetMachine> take_idle(const std::string& kind) {
    for (auto& place : idle_machines) {
        std::unique_ptr<IdleMachine> idle(place.exchange(nullptr));
        if (!idle) continue;
        if (idle->kind == kind) return std::move(idle->machine);
        IdleMachine* nobody = nullptr;
        if (place.compare_exchange_strong(nobody, idle.get())) idle.release();
    }
    return nullptr;
}

} // namespace

void TargetMachineKeeper::operator()(llvm::TargetMachine* machine) const {
    std::unique_ptr<llvm::TargetMachine> owned(machine);
    if (std::uncaught_exceptions() > exceptions) return;
    auto* idle = new IdleMachine{kind, std::move(owned)};
    for (auto& place : idle_machines) {
        IdleMachine* nobody = nullptr;
        if (place.compare_exchange_strong(nobody, idle)) return;
    }
    delete idle;
}

TargetMachinePointer make_target_machine(const TargetCpu& target, Optimization optimization) {
    register_targets();
    const bool x86 = target.architecture == TargetCpu::Architecture::x86_64;
    TargetMachineKeeper keeper{fmt::format("{} {} {} {}", x86, target.cpu, target.features, int(optimization)),
                               std::uncaught_exceptions()};
    if (auto idle = take_idle(keeper.kind)) return {idle.release(), std::move(keeper)};
    llvm::orc::JITTargetMachineBuilder builder(
        llvm::Triple(x86 ? "x86_64-unknown-linux-gnu" : "aarch64-unknown-linux-gnu"));
    builder.setCPU(target.cpu);
    builder.setFeatures(target.features);
    builder.setRelocationModel(llvm::Reloc::PIC_);
    builder.setCodeModel(llvm::CodeModel::Small);
    builder.setCodeGenOptLevel(optimization == Optimization::full ? llvm::CodeGenOptLevel::Default
                                                                  : llvm::CodeGenOptLevel::None);
    llvm::TargetOptions& options = builder.getOptions();
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // PTX says which mul and add are one fma
    options.FunctionSections = false;
    options.EmulatedTLS = false;
    options.EmitStackSizeSection = true;                                // jit/stack_sizes.h
    options.MCOptions.MCRelaxAll = optimization == Optimization::least; // long jumps, but no search for short ones
    auto machine = builder.createTargetMachine();
    if (!machine) throw std::runtime_error("LLVM: " + llvm::toString(machine.takeError()));
    return {machine->release(), std::move(keeper)};
}

void apply_target(llvm::Module& module, const llvm::TargetMachine& machine, const TargetCpu& target) {
    module.setTargetTriple(machine.getTargetTriple().str());
    module.setDataLayout(machine.createDataLayout());
    const unsigned scale = sve_bits(target) / 128; // of SVE's vectors; where it is known LLVM puts fixed vectors there
    for (llvm::Function& function : module) {
        if (function.isDeclaration()) continue;
        function.addFnAttr("target-cpu", target.cpu);
        function.addFnAttr("target-features", target.features);
        // The "min-legal-vector-width" that clang writes into the builtins would stop inlining, and a small
        // value aborts LLVM on 512-bit intrinsics; without it every legal width is used.
        function.removeFnAttr("min-legal-vector-width");
        function.removeFnAttr("tune-cpu");
        if (target.avx512) function.addFnAttr("prefer-vector-width", "512");
        if (scale != 0) function.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(module.getContext(), scale, scale));
        // Frames may be larger than the guard page of a fiber's stack: touch every page on the way down.
        function.addFnAttr("probe-stack", "inline-asm");
    }
}

} // namespace ptarmigan::translator
