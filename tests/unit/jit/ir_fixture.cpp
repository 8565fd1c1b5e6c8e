// SPDX-License-Identifier: Apache-2.0
#include "ir_fixture.h"

#include "translator/jit/backend.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <stdexcept>

namespace ptarmigan::translator {
namespace {

std::unique_ptr<llvm::Module> parse(const std::string& ir, llvm::LLVMContext& context) {
    llvm::SMDiagnostic error;
    auto module = llvm::parseAssemblyString(ir, error, context);
    if (!module) throw std::logic_error("test IR: " + error.getMessage().str());
    return module;
}

} // namespace

KernelImage image_of_ir(const std::string& ir, const std::string& target) {
    llvm::LLVMContext context;
    const auto module = parse(ir, context);
    return build_image(*module, named_target(target), nullptr);
}

std::string assembly_of_ir(const std::string& ir, const std::string& target) {
    llvm::LLVMContext context;
    const auto module = parse(ir, context);
    return dump_module(*module, named_target(target), "asm");
}

} // namespace ptarmigan::translator
