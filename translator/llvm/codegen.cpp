// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/codegen.h"

#include "translator/llvm/access_places.h"
#include "translator/llvm/long_code.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <iterator>
#include <mutex>
#include <stdexcept>

namespace ptarmigan::translator {
namespace {

// LLVM calls this where it would abort. Its frames hold no C++ handlers, so the exception passes through them; what
// they owned is leaked, which is better than ending the host program.
[[noreturn]] void throw_fatal(void*, const char* reason, bool) {
    throw std::runtime_error(std::string("LLVM: ") + reason);
}

/// A dispatcher of program counters with very many blocks. Block placement looks at all successors of a block for each
/// of them: 16 of 24 s with 3,000, where all blocks come from and go to the dispatcher and have no better places.
bool has_huge_switch(const llvm::Module& module) {
    constexpr unsigned many = 500;
    for (const llvm::Function& function : module)
        for (const llvm::BasicBlock& block : function)
            if (const auto* branch = llvm::dyn_cast<llvm::SwitchInst>(block.getTerminator());
                branch && branch->getNumCases() > many)
                return true;
    return false;
}

/// What TargetMachine::addPassesToEmitFile() does, with a pass of ours between the last of the target's and the
/// printer.
void generate(llvm::Module& module, llvm::TargetMachine& target_machine, llvm::CodeGenFileType type,
              llvm::raw_pwrite_stream& stream) {
    auto& machine = static_cast<llvm::LLVMTargetMachine&>(target_machine);
    llvm::legacy::PassManager passes;
    auto* functions = new llvm::MachineModuleInfoWrapperPass(&machine); // the pass manager owns all passes
    llvm::TargetPassConfig* config = machine.createPassConfig(passes);
    config->setDisableVerify(true);
    config->disablePass(&llvm::LiveDebugValuesID); // code has lines, but no variables
    // Out-of-order cores gain nothing that was seen from it, and it takes a twentieth of the time.
    if (is_long_code(module)) config->disablePass(&llvm::PostRASchedulerID);
    if (has_huge_switch(module)) config->disablePass(&llvm::MachineBlockPlacementID);
    passes.add(config);
    passes.add(functions);
    if (config->addISelPasses()) throw std::runtime_error("LLVM: the target can't select instructions");
    config->addMachinePasses();
    config->setInitialized();
    passes.add(create_place_restorer());
    if (machine.addAsmPrinter(passes, stream, nullptr, type, functions->getMMI().getContext()))
        throw std::runtime_error("LLVM: the target can't print code");
    passes.add(llvm::createFreeMachineFunctionPass());
    passes.run(module);
}

} // namespace

struct LlvmErrorScope::Collector : llvm::DiagnosticHandler {
    explicit Collector(std::string& first_error) : first_error_(first_error) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
        if (info.getSeverity() == llvm::DS_Error && first_error_.empty()) {
            llvm::raw_string_ostream stream(first_error_);
            llvm::DiagnosticPrinterRawOStream printer(stream);
            info.print(printer);
        }
        return true;
    }
    std::string& first_error_;
};

void prepare_llvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::install_fatal_error_handler(throw_fatal, nullptr);
        // Tail duplication copies the dispatch block of a kernel with program counters per lane into every block that
        // jumps to it: quadratic in blocks and phis (minutes on cub::DeviceScan), and nothing gained.
        // Sinking moves what a loop steps by into its latch, which then is a second jump per iteration (sparse matrix
        // times vector: 8.9 to 8.2 ms of CPU at W = 1). The scheduler is quadratic in the memory accesses of a basic
        // block, and ours are long: more than 200 pending ones are treated as one (1.3 s to 0.5 s of CPU for cub's
        // single-tile radix sort). CodeGenPrepare looks again
        // at all of a function with up to 256 blocks, and of larger ones only at those that it has changed (LLVM does
        // so from 10,000 on): 0.20 to 0.05 s for a onesweep sort; of SYRK the loops came out worse.
        const char* const arguments[] = {"ptarmigan",
                                         "-disable-early-taildup",
                                         "-disable-tail-duplicate",
                                         "-instcombine-code-sinking=false",
                                         "-dag-maps-huge-region=200",
                                         "-dag-maps-reduction-size=100",
                                         "-cgpp-huge-func=256"};
        llvm::cl::ParseCommandLineOptions(static_cast<int>(std::size(arguments)), arguments);
    });
}

LlvmErrorScope::LlvmErrorScope(llvm::LLVMContext& context) : context_(context) {
    prepare_llvm();
    context_.setDiagnosticHandler(std::make_unique<Collector>(first_error_));
}

LlvmErrorScope::~LlvmErrorScope() {
    context_.setDiagnosticHandler(std::make_unique<llvm::DiagnosticHandler>());
}

void LlvmErrorScope::check() const {
    if (!first_error_.empty()) throw std::runtime_error("LLVM: " + first_error_);
}

std::unique_ptr<llvm::MemoryBuffer> generate_object(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream stream(object);
    generate(module, machine, llvm::CodeGenFileType::ObjectFile, stream);
    return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), module.getModuleIdentifier(),
                                                           /*RequiresNullTerminator=*/false);
}

std::string generate_assembly(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::SmallString<0> text;
    llvm::raw_svector_ostream stream(text);
    machine.Options.MCOptions.AsmVerbose = true;
    generate(module, machine, llvm::CodeGenFileType::AssemblyFile, stream);
    machine.Options.MCOptions.AsmVerbose = false;
    return std::string(text);
}

} // namespace ptarmigan::translator
