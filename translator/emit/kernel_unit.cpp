// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/kernel_unit.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DerivedTypes.h>

#include <fmt/format.h>

namespace ptarmigan::translator {

KernelUnit::KernelUnit(llvm::LLVMContext& context_, ptx::ModuleLoader& loader_, ptx::FunctionId kernel_,
                       const BlockShape& shape_, const CompileOptions& options_)
    : context(context_), loader(loader_), kernel(kernel_), shape(shape_), options(options_),
      module(std::make_unique<llvm::Module>(loader_.module().functions[kernel_].name, context_)), debug_(*module) {
    module->addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    module->addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
    file_ = debug_.createFile(loader.module().name.empty() ? "module.ptx" : loader.module().name, ".");
    compile_unit_ = debug_.createCompileUnit(llvm::dwarf::DW_LANG_C, file_, "ptarmigan", true, "", 0, "",
                                             llvm::DICompileUnit::LineTablesOnly);
}

llvm::Function* KernelUnit::create_function(llvm::FunctionType* type, const std::string& name,
                                            llvm::Function::LinkageTypes linkage) {
    llvm::Function* function = llvm::Function::Create(type, linkage, name, *module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    // A null access is a fault to be reported, not a path that the optimiser may take for dead.
    function->addFnAttr(llvm::Attribute::NullPointerIsValid);
    function->addFnAttr("target-cpu", options.target.cpu);
    if (!options.target.features.empty()) function->addFnAttr("target-features", options.target.features);
    if (options.target.avx512) function->addFnAttr("prefer-vector-width", "512");
    function->addFnAttr("no-builtins");
    auto* signature = debug_.createSubroutineType(debug_.getOrCreateTypeArray({}));
    auto* scope = debug_.createFunction(file_, name, name, file_, 1, signature, 1, llvm::DINode::FlagZero,
                                        llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
    function->setSubprogram(scope);
    return function;
}

llvm::DebugLoc KernelUnit::location(llvm::Function* function, SourceLocation where) {
    if (lane_by_lane) return location(function, where, {AccessForm::Kind::noted, 0, {}});
    return llvm::DILocation::get(context, where.line, 0, function->getSubprogram());
}

llvm::DebugLoc KernelUnit::location(llvm::Function* function, SourceLocation where, const AccessForm& form) {
    constexpr std::size_t largest_column = 0xffff;
    if (access_numbers_.size() == largest_column && !access_numbers_.contains(form))
        return llvm::DILocation::get(context, where.line, 0, function->getSubprogram());
    const unsigned number = access_numbers_.try_emplace(form, unsigned(access_numbers_.size()) + 1).first->second;
    return llvm::DILocation::get(context, where.line, number, function->getSubprogram());
}

std::vector<AccessForm> KernelUnit::access_forms() const {
    std::vector<AccessForm> forms(access_numbers_.size());
    for (const auto& [form, number] : access_numbers_) forms[number - 1] = form;
    return forms;
}

llvm::FunctionType* KernelUnit::callee_type() const {
    auto* pointer = llvm::PointerType::get(context, 0);
    auto* i32 = llvm::Type::getInt32Ty(context);
    return llvm::FunctionType::get(
        llvm::Type::getVoidTy(context),
        {pointer, i32, llvm::Type::getIntNTy(context, width), llvm::Type::getInt64Ty(context)}, false);
}

llvm::Function* KernelUnit::callee(ptx::FunctionId id) {
    auto found = callees.find(id);
    if (found != callees.end()) return found->second;
    llvm::Function* function =
        create_function(callee_type(), "func." + loader.module().functions[id].name, llvm::Function::InternalLinkage);
    function->addFnAttr(llvm::Attribute::NoInline);
    callees.emplace(id, function);
    callee_queue.push_back(id);
    return function;
}

} // namespace ptarmigan::translator
