// SPDX-License-Identifier: Apache-2.0
// What old and hand-written PTX has and compilers of today don't write.
#include "tests/unit/frontend/load.h"

using namespace ptarmigan;
using namespace ptarmigan::ptx;

namespace {

std::unique_ptr<ModuleLoader> load_text(const std::string& text) {
    return ModuleLoader::load(text, "old.ptx", {.bind_all_bodies = true, .max_errors = 20});
}

std::string first_error(const std::string& text) {
    const auto loader = load_text(text);
    return loader->ok() ? "" : loader->diagnostics().list().front().text;
}

/// The instructions of the only function, printed.
std::string printed(ModuleLoader& loader) {
    std::string text;
    for (const Instruction& inst : loader.body(0).instructions)
        text += print(loader.module(), loader.body(0), inst);
    return text;
}

} // namespace

TEST_CASE("array elements: the index counts scalars") {
    // The offsets are those in the machine code that ptxas 13.0 makes.
    const auto loader =
        test::load(".global .b32 g[4][3]; .global .v4 .f32 v[4]; .shared .b8 s[8];\n"
                   ".visible .entry k(.param .b32 a[4]) {\n"
                   ".reg .b64 %d; .reg .b32 %r; .local .b64 l[8];\n"
                   "mov.u64 %d, s[5]; mov.u64 %d, g[2]; cvta.global.u64 %d, v[2];\n"
                   "ld.global.u32 %r, g[1+1]; ld.param.b32 %r, a[3];\n"
                   "st.local.v2.u32 l[-1], {%r, %r}; mov.u32 %r, s[0];\n}\n");
    CHECK(printed(*loader) == "mov.u64 %d, s+5;mov.u64 %d, g+8;cvta.global.u64 %d, v+8;"
                              "ld.global.u32 %r, [g+8];ld.param.b32 %r, [a+12];"
                              "st.local.v2.u32 [l+-8], {%r, %r};mov.u32 %r, s;");
}

TEST_CASE("array elements: a register counts in 32 bits") {
    // ptxas 13.0 makes the same machine code of both texts.
    const auto text = [](const std::string& statements) {
        const auto loader = test::load(
            ".global .b32 g[8]; .shared .b64 s[8]; .const .b8 c[8];\n.visible .entry k() {\n"
            ".reg .b64 %d; .reg .b32 %r; .reg .s16 %h; .reg .u64 %w; .reg .pred %p;\n" +
            statements + "}\n");
        return printed(*loader);
    };
    CHECK(text("ld.global.u32 %r, g[%h+1];") ==
          "cvt.s32.s16 %element, %h;add.u32 %element, %element, 1;shl.b32 %element, %element, 2;"
          "mov.u64 %element, g;cvt.u64.u32 %element, %element;add.u64 %element, %element, %element;"
          "ld.global.u32 %r, [%element];");
    CHECK(text("@%p ld.shared.v2.u32 {%r, %r}, s[%w];") ==
          "cvt.u32.u64 %element, %w;shl.b32 %element, %element, 3;mov.u32 %element, s;"
          "add.u32 %element, %element, %element;@%p ld.shared.v2.u32 {%r, %r}, [%element];");
    CHECK(text("mov.u64 %d, c[%laneid];") ==
          "mov.u32 %element, %laneid;mov.u64 %element, c;cvt.u64.u32 %element, %element;"
          "add.u64 %element, %element, %element;mov.u64 %d, %element;");
    // A generic access of a variable in shared memory needs its generic address.
    CHECK(text("st.u8 s[%r], %r;").find("cvta.shared.u64") != std::string::npos);
}

TEST_CASE("addresses have 64 bits where no .address_size stands") {
    // ptxas 13.0 makes sm_90 code of the first text and refuses the others.
    const auto text = [](const std::string& statement) {
        return ".version 6.0\n.target sm_60\n.global .u32 g[4];\n.func f() { ret; }\n.visible .entry k() {\n"
               ".reg .b64 %d; .reg .b32 %r;\n" + statement + "\nret; }\n";
    };
    const auto loader = load_text(text("ld.global.u32 %r, g[%r]; mov.u64 %d, f; p: .callprototype _ (); call %d, p;"));
    REQUIRE(loader->ok());
    CHECK(loader->module().address_size == 64);
    CHECK(first_error(text("ld.global.u32 %r, [%r];")).find("addresses have 64 bits") != std::string::npos);
    CHECK(first_error(text("cvta.global.u32 %r, %r;")).find("addresses have 64 bits") != std::string::npos);
}

TEST_CASE("array elements: what has none") {
    const auto error = [](const std::string& statement) {
        return first_error(test::header + ".global .b32 g[4], one; .func f() { .reg .b32 %r; " +
                           statement + " }");
    };
    CHECK(error("ld.global.u32 %r, one[0];") == "'one' is not an array");
    CHECK(error("ld.global.u32 %r, %r[0];") == "'%r' is not an array");
    CHECK(error("ld.global.u32 %r, nothing[0];") == "'nothing' is not an array");
    CHECK(error("ld.global.u32 %r, g[1.5];") == "an array index must be an integer");
    CHECK(error("ld.global.u32 %r, one[%r];") == "'one' is not an array");
    CHECK(error("ld.global.u32 %r, g[%unknown];") == "unknown symbol '%unknown'");
    CHECK(error(".reg .f32 %f; ld.global.u32 %r, g[%f];") == "'%f' can't be an array index");
    CHECK(error("ld.global.u32 %r, g[g];") == "'g' can't be an array index");
    CHECK(error("ld.shared.u32 %r, g[%r];") == "'g' is in .global, the instruction accesses .shared");
    CHECK(error("mov.u32 %r, g[%r];") != "");
    CHECK(error("add.u32 %r, g[%r], 1;") ==
          "an element of an array stands in loads, stores, mov and cvta only");
    CHECK(error("ld.global.u32 %r, [g[%r]];") != "");
    CHECK(first_error(test::header + ".global .texref t[4]; .func f() { .reg .b32 %r; ld.global.b32 %r, t[%r]; }") ==
          "'t' is no memory to access");
    CHECK(error("atom.global.add.u32 %r, g[1], 1;") != "");
    CHECK(error("ld.global.u32 %r, [g[1]];") != "");
}

TEST_CASE("targets: compute_ is another spelling of sm_") {
    const auto loader = load_text(".version 9.0\n.target compute_90a\n.entry k { exit; }\n");
    CHECK(loader->ok());
    CHECK(loader->module().target.sm == 90);
    CHECK(loader->module().target.suffix == 'a');
    CHECK(first_error(".version 9.0\n.target lto_90\n.entry k { exit; }\n") ==
          "unknown target 'lto_90'");
}

TEST_CASE("sm_1x: single precision has no subnormals") {
    const std::string body =
        ".entry k { .reg .f32 %f<4>; .reg .f64 %e; .reg .pred %p; .reg .b32 %r;\n"
        "add.rz.sat.f32 %f1, %f2, %f3; setp.lt.f32 %p, %f1, %f2;\n"
        "cvt.rn.f32.f64 %f1, %e; cvt.f64.f32 %e, %f1; cvt.rzi.s32.f32 %r, %f1;\n"
        "mov.f32 %f1, %f2; add.u32 %r, %r, 1; sin.approx.f32 %f1, %f2; }";
    const auto old = load_text(".version 1.4\n.target sm_13\n" + body);
    CHECK(printed(*old) ==
          "add.rz.ftz.sat.f32 %f1, %f2, %f3;setp.lt.ftz.f32 %p, %f1, %f2;cvt.rn.f32.f64 %f1, %e;"
          "cvt.f64.f32 %e, %f1;cvt.rzi.ftz.s32.f32 %r, %f1;mov.f32 %f1, %f2;add.u32 %r, %r, 1;"
          "sin.approx.ftz.f32 %f1, %f2;");
    const auto later = load_text(".version 2.0\n.target sm_20\n" + body);
    CHECK(printed(*later).find("ftz") == std::string::npos);
}

TEST_CASE("module scope: registers and .local of modules without an ABI") {
    const std::string head =
        ".version 2.3\n.target sm_20\n.reg .b32 g, %x<4>;\n.local .b32 l[4];\n";
    const auto loader = load_text(head + ".entry unused { exit; }\n");
    CHECK(loader->ok());
    // An entry has them as its own; a .func shares them with its callers.
    const auto used = load_text(head + ".reg .v2 .f32 v; .reg .pred p;\n.entry k { .reg .b32 %r; mov.u32 %x3, g;\n"
                                       "@p mov.f32 v.x, v.y; ld.local.u32 %r, [l+4]; add.u32 g, %x3, %r; }\n");
    REQUIRE(used->ok());
    CHECK(printed(*used) == "mov.u32 %x3, g;@p mov.f32 v.x, v.y;ld.local.u32 %r, [l+4];add.u32 g, %x3, %r;");
    CHECK(used->body(0).variables.size() == 1);
    CHECK(first_error(head + ".entry k { .reg .b32 %r; mov.u32 %r, %x4; }") ==
          "unknown symbol '%x4'");
    const auto shared = load_text(head + ".func f { .reg .b32 %r; mov.u32 %r, g; st.local.u32 [l], %r; }\n.entry k { call f; add.u32 g, %x1, g; }\n");
    REQUIRE(shared->ok());
    CHECK(shared->body(0).thread_registers.size() == 1);
    CHECK(shared->body(0).thread_locals.size() == 1);
    CHECK(shared->body(1).thread_registers.size() == 2);
    const std::string text = print(*shared);
    CHECK(text.find(".reg .b32 g;\n.reg .b32 %x<4>;\n.local .b32 l[4];\n") != std::string::npos);
    CHECK(print(*load_text(text)) == text);
    CHECK(first_error(head + ".reg .u32 g;\n") == "'g' is already declared");
    CHECK(first_error(".version 2.3\n.target sm_20\n.local .b32 l = 1;\n") ==
          "only .global and .const variables have initial values");
    CHECK(first_error(head + ".global .b32 a; .reg .b32 a;") == "'a' is already declared");
    CHECK(first_error(".version 3.0\n.target sm_20\n.reg .b32 g;\n") ==
          ".reg variables at module scope are not supported");
    const auto texture = load_text(".version 1.4\n.target sm_10\n.tex .u32 picture;\n");
    REQUIRE(texture->ok());
    CHECK(texture->module().variables.at(0).type == ScalarType::texref);
}

TEST_CASE("wmma: .aligned is understood before PTX 6.3 and asked for from then on") {
    const auto text = [](const std::string& version, const std::string& word) {
        return ".version " + version + "\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b32 %r<8>; .reg .b64 %d;\n"
               "ld.param.u64 %d, [p]; wmma.load.a.sync" + word + ".row.m16n16k16.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d];\n}\n";
    };
    CHECK(first_error(text("6.0", "")).empty());
    CHECK(first_error(text("6.2", ".aligned")).find("needs .version 6.3") != std::string::npos);
    CHECK(first_error(text("6.3", "")).find("needs .aligned") != std::string::npos);
    CHECK(first_error(text("6.3", ".aligned")).empty());
}
