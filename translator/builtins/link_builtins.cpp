// SPDX-License-Identifier: Apache-2.0
// Lazy linking of the builtins, see builtins.h.
#include "translator/builtins/builtins.h"

#include "translator/compile.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <stdexcept>

namespace {

struct EmbeddedBitcode {
    const char* features; ///< what the target must have, comma-separated: x86-64-v3, or x86-64-v4 or zen and more
    const char* data;
    std::uint64_t size;
};

} // namespace

extern "C" const EmbeddedBitcode ptm_bitcode_table[];
extern "C" const std::uint64_t ptm_bitcode_count;

namespace ptarmigan::translator {

namespace {

constexpr llvm::StringLiteral prefix = "ptm_";
constexpr llvm::StringLiteral gather_prefix = "ptm_gather_";

bool is_missing(const llvm::Function& function) {
    return function.isDeclaration() && function.getName().starts_with(prefix);
}

bool defines_something_for(llvm::Module& library, const llvm::Module& module) {
    for (const llvm::Function& function : module) {
        if (!is_missing(function)) continue;
        const llvm::Function* candidate = library.getFunction(function.getName());
        if (candidate && !candidate->isDeclaration()) return true;
    }
    return false;
}

std::unique_ptr<llvm::Module> open(llvm::StringRef bitcode, llvm::Module& module) {
    auto library = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bitcode, "builtins"), module.getContext());
    if (!library) throw std::runtime_error("builtins: " + llvm::toString(library.takeError()));
    return std::move(*library);
}

void link(std::unique_ptr<llvm::Module> library, llvm::Module& module) {
    if (llvm::Error error = library->materializeMetadata())
        throw std::runtime_error("builtins: " + llvm::toString(std::move(error)));
    // Module flags describe clang's target, not the module's.
    while (!library->named_metadata_empty()) library->eraseNamedMetadata(&*library->named_metadata_begin());
    library->setTargetTriple(module.getTargetTriple());
    library->setDataLayout(module.getDataLayout());
    if (llvm::Linker::linkModules(module, std::move(library), llvm::Linker::LinkOnlyNeeded))
        throw std::runtime_error("builtins: linking failed");
}

// <N x i32> ptm_gather_N(ptr table, <N x i32> index)
void define_gather(llvm::Function& function) {
    auto* block = llvm::BasicBlock::Create(function.getContext(), "entry", &function);
    llvm::IRBuilder<> ir(block);
    auto* type = llvm::cast<llvm::FixedVectorType>(function.getReturnType());
    llvm::Value* addresses = ir.CreateGEP(ir.getInt32Ty(), function.getArg(0), function.getArg(1));
    ir.CreateRet(ir.CreateMaskedGather(type, addresses, llvm::Align(4),
                                       llvm::Constant::getAllOnesValue(llvm::VectorType::get(ir.getInt1Ty(), type)),
                                       llvm::PoisonValue::get(type)));
}

void make_inline(llvm::Function& function) {
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    // Attributes speak of clang's target, and of arguments that are never poison, which lanes at rest may be.
    function.setAttributes({});
    function.setDoesNotThrow();
    function.addFnAttr(llvm::Attribute::AlwaysInline);
}

bool can_run(const TargetCpu& target, llvm::StringRef features) {
    if (features.empty()) return true;
    if (target.architecture != TargetCpu::Architecture::x86_64) return false;
    llvm::SmallVector<llvm::StringRef, 64> present;
    llvm::StringRef(target.features).split(present, ',');
    if (features == "x86-64-v3") return !llvm::is_contained(present, "-avx2"); // older hosts
    if (!target.avx512) return false;
    for (llvm::StringRef feature : llvm::split(features, ',')) {
        if (feature == "x86-64-v4") continue;
        if (feature == "zen" ? !llvm::StringRef(target.cpu).starts_with("znver")
                             : !llvm::is_contained(present, ("+" + feature).str()))
            return false;
    }
    return true;
}

} // namespace

void link_builtins(llvm::Module& module, const TargetCpu& target) {
    bool needed = false;
    llvm::StringSet<> own; // defined before: their attributes and linkage stay
    for (const llvm::Function& function : module) {
        needed |= is_missing(function);
        if (!function.isDeclaration()) own.insert(function.getName());
    }
    if (!needed) return;
    for (const EmbeddedBitcode& embedded : llvm::ArrayRef(ptm_bitcode_table, ptm_bitcode_count)) {
        if (!can_run(target, embedded.features)) continue;
        std::unique_ptr<llvm::Module> library = open({embedded.data, embedded.size}, module);
        if (defines_something_for(*library, module)) link(std::move(library), module);
    }
    for (llvm::Function& function : module) {
        if (function.isDeclaration() && function.getName().starts_with(gather_prefix)) define_gather(function);
        if (is_missing(function)) throw std::runtime_error("internal: no builtin named " + function.getName().str());
        if (!function.isDeclaration() && !own.contains(function.getName())) make_inline(function);
    }
}

} // namespace ptarmigan::translator
