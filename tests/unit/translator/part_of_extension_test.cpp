// SPDX-License-Identifier: Apache-2.0
// A narrow value that is stored wide and loaded narrow again, as unoptimised code does: LLVM's code generation for AVX2
// ends in a null pointer on some of the vectors that this becomes (translator/llvm/hide_truncations.h).
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;

namespace {

struct Widths {
    const char *narrow, *wide;
    unsigned bytes; ///< of the wide one
};

std::string kernel(const Widths& widths) {
    const std::string narrow = widths.narrow, wide = widths.wide, size = std::to_string(widths.bytes);
    const std::string load = "ld.local." + narrow, store = "st.local.b" + std::to_string(widths.bytes * 8);
    return ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p)\n{\n"
           ".local .align 8 .b8 own[16]; .reg .b16 %h; .reg .b32 %r; .reg .b64 %a, %b; .reg .b" + std::to_string(widths.bytes * 8) + " %x;\n"
           "ld.param.u64 %a, [p]; mov.u32 %r, %tid.x; mul.wide.u32 %b, %r, 2; add.u64 %a, %a, %b;\n"
           "ld.global.u8 %h, [%a]; add.s16 %h, %h, 3;\n"
           "cvt." + wide + "." + narrow + " %x, %h; " + store + " [own], %x; " + load + " %x, [own];\n" +
           store + " [own+" + size + "], %x; " + load + " %x, [own+" + size + "]; st.global.b8 [%a], %x;\nret;\n}\n";
}

} // namespace

TEST_CASE("narrow loads of what was stored wide are compiled for AVX2") {
    for (const Widths& widths : {Widths{"u8", "u32", 4}, Widths{"s8", "s32", 4}, Widths{"u16", "u64", 8}, Widths{"s16", "s64", 8},
                                 Widths{"u8", "u64", 8}, Widths{"u16", "u32", 4}})
        for (const unsigned lanes : {8u, 16u, 32u}) {
            INFO(widths.narrow << " in " << widths.wide << ", " << lanes << " lanes");
            const auto loader = ptx::ModuleLoader::load(kernel(widths), "narrow.ptx");
            translator::CompileOptions options;
            options.target = translator::named_target("x86-64-v3");
            options.lane_width = lanes;
            translator::BlockShape shape;
            shape.ntid[0] = 64;
            CHECK(translator::dump(*loader, "k", shape, options, "asm").find("ymm") != std::string::npos);
        }
}
