// SPDX-License-Identifier: Apache-2.0
// What is printed parses back to the same module.
#include "tests/support/module_comparison.h"
#include "tests/unit/frontend/load.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ptarmigan;
using namespace ptarmigan::ptx;

namespace {

void check_round_trip(ModuleLoader& loader) {
    CHECK(test::round_trip_fault(loader) == "");
}

} // namespace

TEST_CASE("printer: modules that differ are told apart") {
    const std::string before = "{ .reg .b32 %r<4>; .reg .pred %p; ", after = " ret; }\n";
    const auto differ = [&](const std::string& a, const std::string& b) {
        const auto first = test::load(".visible .entry k(.param .u32 n)\n" + before + a + after);
        const auto second = test::load(".visible .entry k(.param .u32 n)\n" + before + b + after);
        return test::difference(*first, *second);
    };
    CHECK(differ("add.u32 %r1, %r2, 1;", "add.u32 %r1, %r2, 1;") == "");
    CHECK(differ("add.u32 %r1, %r2, 1;", "add.u32 %r1, %r2, 2;") ==
          "operand 3 of the instruction at line 5 in function k");
    CHECK(differ("add.u32 %r1, %r2, %r2;", "add.u32 %r1, %r2, %r3;") != "");
    CHECK(differ("add.u32 %r1, %r2, %r3;", "add.s32 %r1, %r2, %r3;") != "");
    CHECK(differ("ld.local.u32 %r1, [0];", "ld.local.cv.u32 %r1, [0];") != "");
    CHECK(differ("@%p mov.u32 %r1, 1;", "@!%p mov.u32 %r1, 1;") != "");
    CHECK(differ("a: mov.u32 %r1, 1; bra a;", "mov.u32 %r1, 1; a: bra a;") != "");
    CHECK(differ(".local .b8 a[4];", ".local .b8 a[8];") != "");
}

TEST_CASE("printer: variables that bodies declare stand at module scope") {
    const auto loader = test::load(".global .u32 x = 1;\n.func f() { .global .u32 x = 2; { .const .u64 y[] = {x, generic(x)+4}; ret; } }\n"
                                   ".entry k() { .reg .b32 r; .const .u32 x<2>; ld.const.u32 r, [x1]; { .global .u32 %x; st.global.u32 [%x+0], r; } ret; }");
    check_round_trip(*loader);
}

TEST_CASE("printer: a module with everything parses back") {
    const auto loader = test::load(
        ".file 1 \"a.cu\"\n.global .align 8 .b8 buffer[8] = {1, 2, 3};\n.func f(.reg .u32 a) { "
        "ret; }\n"
        ".global .u64 table[3] = {generic(buffer)+4, buffer, f};\n.global .u8 m[2] = {0, "
        "0xFF00(buffer)};\n"
        ".const .v2 .f32 pair[2] = {{1.0, 2.0}, {3.0, 0f40800000}};\n.extern .shared .align 16 .b8 "
        "dynamic[];\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".visible .entry k(.param .u64 .ptr .global .align 4 p, .param .align 4 .b8 s[12]) "
        ".reqntid 32, 1, 1\n{\n"
        ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %d<4>; .reg .v4 .f32 v; "
        ".reg .f64 %e<2>;\n"
        ".local .align 8 .b8 stack[32];\n.loc 1 2 3\n"
        "ts: .branchtargets A, B;\nproto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "@!%p1 brx.idx %r1, ts;\nA: { .reg .b32 %r1; .param .b64 q; .param .b32 q1; mov.u32 %r1, "
        "-5; call (q1), vprintf, (q, q); }\n"
        "{ .param .b32 q; .param .b32 q1; call (q1), %d1, (q), proto; }\n"
        "ld.global.v4.f32 v, [%d1+-16]; fma.rn.ftz.f32 %f1, v.x, 1.5, %f2; add.f64 %e1, %e1, "
        "-0.0;\n"
        "setp.lt.or.s32 %p1|%p2, %r1, -3, !%p2; shfl.sync.up.b32 %r2|%p1, %r3, 1, 0, -1;\n"
        "mov.b64 {%r4, _}, %d1; mov.u64 %d2, buffer+4; mov.u32 %r3, %tid.z; add.cc.u32 %r1, %r1, "
        "1; addc.u32 %r2, %r2, 0;\n"
        "call f, (%r3); st.shared.u8 [dynamic+1], %r1; atom.global.cas.b32 %r1, [%d1], %r2, %r3;\n"
        "B: ld.local.u8 %r5, [stack+3]; bra.uni A;\n}\n");
    check_round_trip(*loader);
}

TEST_CASE("printer: the PTX of the test programs parses back") {
    const std::filesystem::path folder = PTARMIGAN_SOURCE_DIR "/tests/programs/ptx";
    std::error_code missing;
    unsigned count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
        if (entry.path().extension() != ".ptx") continue;
        INFO(entry.path().string());
        std::ifstream in(entry.path());
        std::stringstream text;
        text << in.rdbuf();
        const auto loader = ModuleLoader::load(text.str(), entry.path().string(),
                                               {.bind_all_bodies = true, .max_errors = 20});
        REQUIRE(loader->ok());
        check_round_trip(*loader);
        ++count;
    }
    CHECK(count > 0);
}

TEST_CASE("printer: one instruction") {
    const auto loader = test::load_kernel("@!%p1 ld.volatile.global.u32 %r1, [%d1+8];");
    const Body& body = test::body_of(*loader);
    CHECK(print(loader->module(), body, body.instructions[0]) ==
          "@!%p1 ld.volatile.global.u32 %r1, [%d1+8];");
}
