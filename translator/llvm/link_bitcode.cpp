// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/link_bitcode.h"

#include <llvm/ADT/StringSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Module.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>

#include <stdexcept>

namespace ptarmigan::translator {
namespace {

void make_private(llvm::Module& module, const llvm::StringSet<>& names) {
    for (const auto& name : names) {
        llvm::GlobalValue* value = module.getNamedValue(name.getKey());
        if (!value || value->isDeclaration()) continue;
        value->setLinkage(llvm::GlobalValue::InternalLinkage);
        auto* function = llvm::dyn_cast<llvm::Function>(value);
        if (function && !function->hasFnAttribute(llvm::Attribute::NoInline)) {
            function->removeFnAttr(llvm::Attribute::OptimizeNone);
            function->addFnAttr(llvm::Attribute::AlwaysInline);
        }
    }
}

} // namespace

void link_bitcode(llvm::Module& module, llvm::StringRef bitcode, llvm::StringRef prefix) {
    bool needed = false;
    for (const llvm::Function& function : module)
        needed |= function.isDeclaration() && function.getName().starts_with(prefix);
    if (!needed) return;
    // Lazily: only the functions that are linked leave the bitcode.
    auto library = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bitcode, "builtins"),
                                              module.getContext());
    if (!library)
        throw std::runtime_error("builtins: " + llvm::toString(library.takeError()));
    // The library is portable code: its bodies hold for whatever target the module is for.
    (*library)->setTargetTriple(module.getTargetTriple());
    (*library)->setDataLayout(module.getDataLayout());
    llvm::StringSet<> linked;
    const bool failed = llvm::Linker::linkModules(
        module, std::move(*library), llvm::Linker::LinkOnlyNeeded,
        [&](llvm::Module&, const llvm::StringSet<>& names) { linked = names; });
    if (failed) throw std::runtime_error("builtins: can't be linked");
    make_private(module, linked);
}

} // namespace ptarmigan::translator
