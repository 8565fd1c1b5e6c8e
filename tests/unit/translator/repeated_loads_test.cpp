// SPDX-License-Identifier: Apache-2.0
// Words that several lanes read from one place and that are stored one by one: unoptimised code generation of LLVM 19.1
// does not end on some of them (translator/llvm/hide_repeated_loads.h).
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;

namespace {

/// Lanes that differ in the bits outside of `mask` only read the same word.
std::string kernel(const std::string& type, unsigned mask, unsigned stride) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 32 .b64 table[64];\n.entry k(.param .u64 p)\n{\n"
           ".reg .b32 %t, %x, %r; .reg ." + type + " %v; .reg .b64 %a, %b; .reg .pred %p;\n"
           "ld.param.u64 %b, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %b, %t, " + std::to_string(stride) + ", %b; bar.sync 0;\n"
           "and.b32 %x, %t, " + std::to_string(mask) + "; mov.u64 %a, table; mad.wide.u32 %a, %x, 1, %a; cvta.const.u64 %a, %a;\n"
           "ld." + type + " %v, [%a]; setp.gt.u32 %p, %t, 5; selp.b32 %r, 2147418112, 0, %p;\n"
           "st.global.b32 [%b], %r; st.global." + type + " [%b+24], %v;\nret;\n}\n";
}

} // namespace

TEST_CASE("words that lanes share and store one by one are compiled without optimisation") {
    for (const char* type : {"f32", "b32", "f64"})
        for (const unsigned mask : {248u, 252u})
            for (const unsigned stride : {64u, 512u})
                for (const char* target : {"x86-64-v3", "aarch64"}) {
                    INFO(type << ", every " << 256 - mask << " lanes, " << stride << " bytes apart, " << target);
                    const auto loader = ptx::ModuleLoader::load(kernel(type, mask, stride), "repeated.ptx");
                    translator::CompileOptions options;
                    options.target = translator::named_target(target);
                    options.lane_width = 32;
                    options.optimization = translator::Optimization::least;
                    translator::BlockShape shape;
                    shape.ntid[0] = 32;
                    CHECK(translator::dump(*loader, "k", shape, options, "asm").find("ret") != std::string::npos);
                }
}
