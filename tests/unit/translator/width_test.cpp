// SPDX-License-Identifier: Apache-2.0
// Lanes per step, by what a kernel keeps in registers and what its loops wait for.
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;

namespace {

const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p, .param .u32 n)\n{\n"
                         ".reg .b32 %t, %b, %d, %n; .reg .f32 %v<40>, %x, %y; .reg .b64 %a; .reg .pred %p;\n"
                         "ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x;\n"
                         "mad.lo.u32 %t, %b, %d, %t; mad.wide.u32 %a, %t, 4, %a;\n";

/// For each of `count` values `text`, where # is its number.
std::string each(unsigned count, const std::string& text) {
    std::string all;
    for (unsigned i = 0; i < count; ++i)
        for (char c : text) all += c == '#' ? std::to_string(i) : std::string(1, c);
    return all;
}

/// A loop over which each thread keeps `values` floats.
std::string loop(unsigned values, const std::string& round) {
    return head + each(values, "ld.global.f32 %v#, [%a+#000];\n") + "ld.global.f32 %x, [%a+4]; mov.f32 %y, 0f00000000;\nagain:\n" + round +
           "sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra again;\n" + each(values, "st.global.f32 [%a+#000], %v#;\n") +
           "st.global.f32 [%a+4], %y;\nret;\n}\n";
}

unsigned width(const std::string& text, translator::BlockShape shape = {{256, 1, 1}, {1, 1, 1}}, const char* target = "x86-64-v3") {
    const auto loader = ptx::ModuleLoader::load(text, "width.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target(target);
    return translator::compile(*loader, "k", shape, options).properties.lane_width;
}

} // namespace

TEST_CASE("width: short maps are whole warps, if these lie in one row of threads") {
    const std::string map = head + "ld.global.f32 %x, [%a]; mul.f32 %x, %x, 0f40000000; st.global.f32 [%a], %x; ret;\n}\n";
    CHECK(width(map) == 32);
    CHECK(width(map, {{32, 8, 1}, {1, 1, 1}}) == 32);
    CHECK(width(map, {{16, 16, 1}, {1, 1, 1}}) == 16);
    CHECK(width(map, {{256, 1, 1}, {1, 1, 1}}, "x86-64-v4") == 32);
    CHECK(width(map, {{16, 16, 1}, {1, 1, 1}}, "x86-64-v4") == 16);
    // Few values at once, but a long way.
    CHECK(width(head + each(20, "ld.global.f32 %x, [%a+#000]; fma.rn.f32 %y, %x, %x, %y;\n") +
                "st.global.f32 [%a], %y; ret;\n}\n") == 16);
    const std::string many = head + each(20, "ld.global.f32 %v#, [%a+#000];\n") + "mov.f32 %x, 0f00000000;\n" + each(20, "fma.rn.f32 %x, %x, %x, %v#;\n") + each(20, "fma.rn.f32 %x, %v#, %x, %v#;\n") +
                             "st.global.f32 [%a], %x; ret;\n}\n";
    CHECK(width(many) == 16);
}

TEST_CASE("width: with AVX2 a loop keeps its values in registers, unless it waits for chains of results") {
    CHECK(width(loop(4, each(4, "fma.rn.f32 %v#, %v#, %x, %x;\n"))) == 16);
    CHECK(width(loop(24, each(24, "fma.rn.f32 %v#, %v#, %x, %x;\n"))) == 8);
    CHECK(width(loop(24, each(24, "fma.rn.f32 %y, %v#, %x, %y;\n"))) == 32);
    // The model of the special function unit takes 16 lanes at once.
    CHECK(width(loop(10, each(10, "ex2.approx.f32 %v#, %v#;\n"))) == 16);
}
