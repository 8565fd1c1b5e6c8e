// SPDX-License-Identifier: Apache-2.0
// Operands as bound: kinds, types, roles, constants.
#include "frontend/isa/special_registers.h"
#include "frontend/ptx/queries.h"
#include "tests/unit/frontend/load.h"

#include <bit>

using namespace ptarmigan;
using namespace ptarmigan::ptx;
using test::body_of;
using Kind = Operand::Kind;

namespace {

std::uint64_t constant(const std::string& type, const std::string& destination,
                       const std::string& text) {
    const auto loader = test::load_kernel("mov." + type + " " + destination + ", " + text + ";");
    return body_of(*loader).instructions[0][Role::a].value;
}

} // namespace

TEST_CASE("operand: constants become the bits of the operand's type") {
    CHECK(constant("u32", "%r1", "10U") == 10);
    CHECK(constant("u32", "%r1", "-1") == 0xffffffffu);
    CHECK(constant("s64", "%d1", "-1") == ~std::uint64_t{0});
    CHECK(constant("u32", "%r1", "0x1F") == 31);
    CHECK(constant("u32", "%r1", "017") == 15);
    CHECK(constant("u32", "%r1", "0b101") == 5);
    CHECK(constant("u32", "%r1", "WARP_SZ") == 32);
    CHECK(constant("f32", "%f1", "1.5") == 0x3fc00000u);
    CHECK(constant("f32", "%f1", ".5") == 0x3f000000u);
    CHECK(constant("f32", "%f1", "-2e-1") == std::bit_cast<std::uint32_t>(-0.2f));
    CHECK(constant("f32", "%f1", "0f3F800000") == 0x3f800000u);
    CHECK(constant("f64", "%e1", "0f3F800000") == 0x3f800000u);
    CHECK(constant("f32", "%f1", "0d3FF0000000000000") == 0x3f800000u);
    CHECK(constant("b32", "%r1", "0f3F800000") == 0x3f800000u);
    CHECK(constant("b64", "%d1", "1.0") == 0x3ff0000000000000u);
}

TEST_CASE("operand: constant expressions have the operators and precedence of C") {
    CHECK(constant("u32", "%r1", "1+2*3") == 7);
    CHECK(constant("u32", "%r1", "(1+2)*3") == 9);
    CHECK(constant("u32", "%r1", "-7/2") == 0xfffffffdu);
    CHECK(constant("u32", "%r1", "-7 % 3") == 0); // unsigned, unlike C: 2^64 - 7 is a multiple of 3
    CHECK(constant("u32", "%r1", "1<<4|3") == 19);
    CHECK(constant("u32", "%r1", "~0&0xF0") == 0xf0);
    CHECK(constant("u32", "%r1", "3>2?10:20") == 10);
    CHECK(constant("u32", "%r1", "1==2||3!=4&&1") == 1);
    CHECK(constant("s64", "%d1", "-8>>1") == static_cast<std::uint64_t>(-4));
    CHECK(constant("u64", "%d1", "0xFFFFFFFFFFFFFFFF>>63") == 1);
    CHECK(constant("s64", "%d1", "(.u64)-1>>63") == 1);
    CHECK(constant("s64", "%d1", "-9223372036854775807-1") == 0x8000000000000000u);
    CHECK(constant("f32", "%f1", "1.5*2.0") == 0x40400000u);
}

TEST_CASE("operand: addresses") {
    const auto loader = test::load_kernel(
        "ld.global.u32 %r1, [%d1+-4]; ld.param.u64 %d1, [in]; ld.global.u32 %r1, [g+8];"
        "ld.local.u32 %r1, [16];",
        ".global .u32 g[4];\n");
    const Body& body = body_of(*loader);
    const Operand& reg = body.instructions[0][Role::a];
    CHECK(reg.kind == Kind::address);
    CHECK(reg.base == Operand::Base::reg);
    CHECK(body.registers[reg.index].name == "%d1");
    CHECK(static_cast<std::int64_t>(reg.value) == -4);
    const Operand& parameter = body.instructions[1][Role::a];
    CHECK(parameter.base == Operand::Base::variable);
    CHECK(parameter.scope == VariableScope::body);
    CHECK(body.variables[parameter.index].name == "in");
    const Operand& global = body.instructions[2][Role::a];
    CHECK(global.scope == VariableScope::module);
    CHECK(global.value == 8);
    CHECK(body.instructions[3][Role::a].base == Operand::Base::none);
    CHECK(body.instructions[3][Role::a].value == 16);
}

// What ptxas 13.0 accepts and refuses.
TEST_CASE("operand: 32 bits of an address where copies and policies take them") {
    for (const char* statement : {"cp.async.mbarrier.arrive.b64 [%r1];", "prefetch.tensormap [%r1];", "cp.async.bulk.prefetch.L2.global [%r1], 16;",
                                  "cp.async.bulk.prefetch.tensor.1d.L2.global [%r1, {%r2}];",
                                  "createpolicy.range.L2::evict_last.b64 %d1, [%r1], %r2, %r3;",
                                  "createpolicy.range.global.L2::evict_last.b64 %d1, [%r1], %r2, %r3;"}) {
        INFO(statement);
        CHECK(test::is_accepted(test::kernel_around(statement)));
    }
    for (const char* statement : {"st.bulk [%r1], %d1, 0;", "tensormap.replace.tile.rank.b1024.b32 [%r1], 1;", "red.async.release.gpu.add.u32 [%r1], %r2;",
                                  "red.async.release.global.gpu.add.u32 [%r1], %r2;", "st.async.release.global.sys.u32 [%r1], %r2;"}) {
        INFO(statement);
        const std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n" + test::kernel_around(statement);
        CHECK(ModuleLoader::load(text, "test.ptx", {.bind_all_bodies = true, .max_errors = 1})->ok());
    }
    for (const char* statement : {"ld.u32 %r2, [%r1];", "red.add.u32 [%r1], %r2;", "prefetch.L1 [%r1];", "mbarrier.init.b64 [%r1], 1;",
                                  "discard.L2 [%r1], 128;", "applypriority.L2::evict_normal [%r1], 128;", "ldu.global.u32 %r2, [%r1];"}) {
        INFO(statement);
        CHECK(!test::is_accepted(test::kernel_around(statement)));
    }
}

TEST_CASE("operand: pairs are operands of their own, absent where not written") {
    const auto loader = test::load_kernel(
        "setp.eq.u32 %p1|%p2, %r1, 3; setp.eq.u32 %p1, %r1, 3; setp.lt.and.s32 %p1, %r1, 3, !%p4;"
        "shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1; shfl.sync.idx.b32 %r1, %r2, %r3, 31, -1;");
    const Body& body = body_of(*loader);
    CHECK(body.instructions[0][Role::q].kind == Kind::reg);
    CHECK(body.instructions[1][Role::q].kind == Kind::none);
    CHECK(body.instructions[2][Role::c].negated);
    CHECK(body.instructions[3][Role::p].kind == Kind::reg);
    CHECK(body.instructions[3][Role::p].type == ScalarType::pred);
    CHECK(body.instructions[4][Role::p].kind == Kind::none);
    CHECK(body.instructions[4][Role::membermask].value == 0xffffffffu);
}

TEST_CASE("operand: vectors, sinks and vector registers") {
    const auto loader =
        test::load_kernel(".reg .v4 .f32 v; ld.global.v4.f32 v, [%d1]; mov.f32 %f1, v.w;"
                          "ld.global.v2.u32 {%r1, _}, [%d1]; mov.b64 %d1, {%r1, 7};");
    const Body& body = body_of(*loader);
    const Operand& whole = body.instructions[0][Role::d];
    CHECK(whole.kind == Kind::vector);
    CHECK(whole.count == 4);
    const std::uint32_t w = body.operand_pool[whole.first + 3].index;
    CHECK(body.registers[w].name == "v.w");
    CHECK(body.instructions[1][Role::a].index == w);
    CHECK(body.operand_pool[body.instructions[2][Role::d].first + 1].kind == Kind::sink);
    const Operand& constant = body.operand_pool[body.instructions[3][Role::a].first + 1];
    CHECK(constant.kind == Kind::imm);
    CHECK(constant.type == ScalarType::b32);
}

TEST_CASE("operand: special registers carry number and component") {
    const auto loader = test::load_kernel("mov.u32 %r1, %ntid.y; mov.u32 %r1, %envreg7;");
    const Body& body = body_of(*loader);
    CHECK(body.instructions[0][Role::a].kind == Kind::special);
    CHECK(body.instructions[0][Role::a].index == static_cast<std::uint32_t>(SpecialRegister::ntid));
    CHECK(body.instructions[0][Role::a].component == 1);
    CHECK(body.instructions[1][Role::a].component == 7);
}

TEST_CASE("operand: the carry flag is a hidden register of the body") {
    const auto loader = test::load_kernel("add.cc.u32 %r1, %r2, %r3; addc.u32 %r4, %r5, 0;");
    const Body& body = body_of(*loader);
    const Operand& out = body.instructions[0][Role::cc_out];
    CHECK(out.kind == Kind::reg);
    CHECK(out.index == body.instructions[1][Role::cc_in].index);
    CHECK(body.registers[out.index].type == ScalarType::pred);
}

TEST_CASE("operand: each body has its own carry flag, also where instructions are like those of a body before") {
    const std::string chain = "add.cc.u32 %r1, %r2, %r3; addc.cc.u32 %r1, %r2, %r3; subc.cc.u32 %r1, %r2, %r3;"
                              " madc.lo.cc.u32 %r1, %r2, %r3, %r1; addc.u32 %r1, %r2, %r3; ret;";
    const auto kernel = [&](const char* name, const char* registers) {
        return std::string(".visible .entry ") + name + "()\n{\n.reg .b32 %r<" + registers + ">;\n" + chain + "\n}\n";
    };
    const auto loader = ModuleLoader::load(".version 8.0\n.target sm_90\n.address_size 64\n" + kernel("first", "5") +
                                               kernel("second", "40") + kernel("third", "9"),
                                           "test");
    REQUIRE(loader->ok());
    for (const char* name : {"first", "second", "third"}) {
        INFO(name);
        const Body& body = loader->body(*loader->module().find_function(name));
        const std::uint32_t flag = body.instructions[0][Role::cc_out].index;
        CHECK(body.registers[flag].type == ScalarType::pred);
        for (std::size_t i = 1; i < 4; ++i) {
            CHECK(body.instructions[i][Role::cc_in].index == flag);
            CHECK(body.instructions[i][Role::cc_out].index == flag);
        }
        CHECK(body.instructions[4][Role::cc_in].index == flag);
    }
}

TEST_CASE("queries: registers are visited with sources first") {
    const auto loader = test::load_kernel("ld.global.v2.u32 {%r1, %r2}, [%d3]; mad.lo.s32 %r1, "
                                          "%r1, %r4, 5; st.global.u32 [%d3], %r1;");
    const Body& body = body_of(*loader);
    auto visit = [&](std::size_t i) {
        std::string seen;
        for_each_register(body.instructions[i], body.operand_pool,
                          [&](const Operand& operand, bool is_definition) {
                              seen +=
                                  body.registers[operand.index].name + (is_definition ? "= " : " ");
                          });
        return seen;
    };
    CHECK(visit(0) == "%d3 %r1= %r2= ");
    CHECK(visit(1) == "%r1 %r4 %r1= ");
    CHECK(visit(2) == "%d3 %r1 ");
}

TEST_CASE("operands: video selectors are kept and printed") {
    const auto loader = test::load_kernel("vadd2.u32.u32.u32 %r1.h10, %r2.h32, %r3, %r4; vmad.s32.s32.s32 %r1, -%r2.b3, %r3.h1, %r4;");
    const Body& body = body_of(*loader);
    CHECK(body.instructions[0].operands[0].component == 0x22);
    CHECK(body.instructions[0].operands[1].value == 0x32);
    CHECK(body.instructions[0].operands[2].component == 0);
    CHECK(print(loader->module(), body, body.instructions[0]).find("%r1.h10, %r2.h32, %r3, %r4") != std::string::npos);
    CHECK(print(loader->module(), body, body.instructions[1]).find("-%r2.b3, %r3.h1") != std::string::npos);
}

TEST_CASE("operands: the index into an array of textures is an integer, its coordinates are not") {
    const auto loader = test::load_kernel("tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%u1, %f5, %f6, %f6}];",
                                          ".global .texref t;\n");
    const Body& body = body_of(*loader);
    const Instruction& tex = body.instructions[0];
    const Operand& c = *std::find_if(tex.operands.begin(), tex.operands.end(), [](const Operand& o) { return o.kind == Operand::Kind::vector && o.type == ScalarType::f32 && o.first != 0; });
    CHECK(body.operand_pool[c.first].type == ScalarType::u32);
    CHECK(body.operand_pool[c.first + 1].type == ScalarType::f32);
}

TEST_CASE("operands: an ignored source is a predicate, which may be negated") {
    const auto loader = test::load_kernel("cp.async.ca.shared.global [s], [g], 4, !%p1; cp.async.ca.shared.global [s], [g], 4, %r1;",
                                          ".shared .b32 s;\n.global .b32 g;\n");
    const Body& body = body_of(*loader);
    CHECK(body.instructions[0].operands[3].type == ScalarType::pred);
    CHECK(body.instructions[0].operands[3].negated);
    CHECK(body.instructions[1].operands[3].type == ScalarType::u32);
}

TEST_CASE("textures, samplers and surfaces: which variable stands where") {
    const auto error = [](const std::string& target, const std::string& statement) {
        const auto loader = ModuleLoader::load(
            ".version 9.0\n.target sm_90" + target + "\n.address_size 64\n"
            ".global .texref t; .global .surfref s; .global .surfref many[2]; .global .b32 g;\n" +
                (target.empty() ? "" : ".global .samplerref m;\n") +
                ".entry k { .reg .f32 %f<8>; .reg .b32 %r; .reg .b64 %d;\n" + statement + " }\n",
            "handles.ptx", {.bind_all_bodies = true, .max_errors = 5});
        return loader->ok() ? "" : loader->diagnostics().list().front().text;
    };
    const std::string independent = ", texmode_independent", results = "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, ";
    CHECK(error("", results + "[t, {%f4}];") == "");
    CHECK(error("", results + "[%d, {%f4}];") == "");
    CHECK(error("", results + "[s, {%f4}];") == "'s' is no .texref");
    CHECK(error("", results + "[g, {%f4}];") == "'g' is no .texref");
    CHECK(error("", "suld.b.1d.b32.trap %r, [t, {%r}];") == "'t' is no .surfref");
    CHECK(error("", "suld.b.1d.b32.trap %r, [many, {%r}];") == "'many' is an array, and not one .surfref");
    CHECK(error("", "txq.width.b32 %r, [s];") == "'s' is no .texref");
    CHECK(error("", "ld.global.b32 %r, [t];") == "'t' is a .texref, no memory to access");
    CHECK(error(independent, results + "[t, m, {%f4}];") == "");
    CHECK(error(independent, results + "[t, %d, {%f4}];") == "");
    CHECK(error(independent, results + "[t, t, {%f4}];") == "'t' is no .samplerref");
    CHECK(error(independent, results + "[t, {%f4}];") ==
          "in .texmode_independent a sampler stands behind the texture");
    CHECK(error(independent, "txq.filter_mode.b32 %r, [m];") == "");
    CHECK(error(independent, "txq.filter_mode.b32 %r, [t];") == "'t' is no .samplerref");
    CHECK(error(independent, "txq.width.b32 %r, [m];") == "'m' is no .texref");
}

TEST_CASE("a special register as a guard") {
    const auto loader = test::load(".entry k { .reg .b32 %r; @!%is_explicit_cluster mov.u32 %r, 1; }\n");
    const Body& body = body_of(*loader);
    REQUIRE(body.instructions.size() == 2);
    CHECK(body.instructions[0].operands[1].kind == Kind::special);
    CHECK(body.instructions[1].guard == body.instructions[0].operands[0].index);
    CHECK(body.instructions[1].guard_negated);
    const auto number = ModuleLoader::load(test::header + ".entry k { .reg .b32 %r; @%laneid mov.u32 %r, 1; }\n",
                                           "guard.ptx", {.bind_all_bodies = true, .max_errors = 5});
    REQUIRE(!number->ok());
    CHECK(number->diagnostics().list().front().text == "the guard '%laneid' is not a predicate register");
}

TEST_CASE("cp.async copies no more than it writes") {
    const auto error = [](const std::string& sizes) {
        const auto loader = ModuleLoader::load(test::header + ".entry k { .reg .b64 %d; .reg .b32 %r;\n"
                                                              "cp.async.ca.shared.global [%d], [%d], " +
                                                   sizes + "; }\n",
                                               "copy.ptx", {.bind_all_bodies = true, .max_errors = 5});
        return loader->ok() ? "" : loader->diagnostics().list().front().text;
    };
    CHECK(error("8, 8") == "");
    CHECK(error("8, 0") == "");
    CHECK(error("8, %r") == "");
    CHECK(error("4, 8") == "8 bytes to copy into 4");
}
