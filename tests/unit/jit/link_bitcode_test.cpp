// SPDX-License-Identifier: Apache-2.0
// Builtins: what a module calls comes out of the bitcode library, and no more.
#include "translator/jit/backend.h"
#include "translator/llvm/link_bitcode.h"

#include <catch2/catch.hpp>
#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

using namespace ptarmigan::translator;

namespace {

std::unique_ptr<llvm::Module> parse(const char* ir, llvm::LLVMContext& context) {
    llvm::SMDiagnostic error;
    auto module = llvm::parseAssemblyString(ir, error, context);
    INFO(error.getMessage().str());
    REQUIRE(module);
    return module;
}

std::string library_bitcode() {
    llvm::LLVMContext context;
    const auto module = parse(R"(
@table = constant [2 x float] [float 3.0, float 5.0]
define float @ptm_pick(i64 %i) #0 {
  %p = getelementptr float, ptr @table, i64 %i
  %v = load float, ptr %p
  %w = call float @helper(float %v)
  ret float %w
}
define float @helper(float %x) {
  %y = fadd float %x, 1.0
  ret float %y
}
define float @ptm_large(float %x) noinline {
  ret float %x
}
define float @ptm_unused(float %x) {
  ret float %x
}
attributes #0 = { "target-cpu"="x86-64" "min-legal-vector-width"="0" }
)", context);
    std::string bytes;
    llvm::raw_string_ostream stream(bytes);
    llvm::WriteBitcodeToFile(*module, stream);
    stream.flush();
    return bytes;
}

} // namespace

TEST_CASE("builtins: linked when called, private, inlined") {
    const std::string library = library_bitcode();
    llvm::LLVMContext context;
    const auto module = parse(R"(
declare float @ptm_pick(i64)
declare float @ptm_large(float)
define void @ptarmigan_kernel(ptr %p, i64 %i) {
  %v = call float @ptm_pick(i64 %i)
  %w = call float @ptm_large(float %v)
  store float %w, ptr %p
  ret void
}
)", context);
    link_bitcode(*module, library, "ptm_");
    REQUIRE(module->getFunction("ptm_pick"));
    CHECK(module->getFunction("ptm_pick")->hasInternalLinkage());
    CHECK(module->getFunction("helper")->hasInternalLinkage());
    CHECK(module->getNamedGlobal("table")->hasInternalLinkage());
    CHECK(module->getFunction("ptm_unused") == nullptr);
    const std::string text = dump_module(*module, named_target("host"), "llvm-opt");
    CHECK_THAT(text, !Catch::Contains("call float @ptm_pick"));
    CHECK_THAT(text, !Catch::Contains("call float @helper"));
    CHECK_THAT(text, Catch::Contains("@ptm_large"));
}

TEST_CASE("builtins: a module that calls none is left alone, whatever the library holds") {
    llvm::LLVMContext context;
    const auto module = parse("define void @ptarmigan_kernel() {\n ret void\n}", context);
    link_bitcode(*module, "no bitcode at all", "ptm_");
    CHECK(module->size() == 1);
}

TEST_CASE("builtins: a damaged library is an error") {
    llvm::LLVMContext context;
    const auto module = parse("declare void @ptm_x()\ndefine void @ptarmigan_kernel() {\n"
                              " call void @ptm_x()\n ret void\n}", context);
    CHECK_THROWS_AS(link_bitcode(*module, "no bitcode at all", "ptm_"), std::runtime_error);
    const std::string library = library_bitcode();
    CHECK_THROWS_AS(link_bitcode(*module, library.substr(0, library.size() / 2), "ptm_"),
                    std::runtime_error);
}
