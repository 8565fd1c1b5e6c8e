// SPDX-License-Identifier: Apache-2.0
// Declarations: variables, initialisers, functions, scopes, labels.
#include "tests/unit/frontend/load.h"

#include <atomic>
#include <new>
#include <thread>

using namespace ptarmigan;
using namespace ptarmigan::ptx;
using test::body_of;

namespace {
std::vector<std::uint8_t> initial(const std::string& declaration) {
    const auto loader = test::load(declaration);
    return loader->module().variables.back().init;
}
using Bytes = std::vector<std::uint8_t>;
} // namespace

TEST_CASE("module: header") {
    const auto loader = ModuleLoader::load(
        ".version 8.4 .target sm_90a, texmode_independent .address_size 64", "t");
    REQUIRE(loader->ok());
    CHECK(loader->module().version == Version{8, 4});
    CHECK(loader->module().target.sm == 90);
    CHECK(loader->module().target.suffix == 'a');
    CHECK(loader->module().target.texmode_independent);
}

TEST_CASE("module: sizes, alignments and linkage of variables") {
    const auto loader =
        test::load(".visible .global .align 16 .b8 a[40];\n.const .v2 .f64 b;\n"
                   ".extern .shared .align 8 .b8 c[];\n.weak .global .u16 d[2][3];\n"
                   ".global .attribute(.managed) .u32 e;\n");
    const auto& v = loader->module().variables;
    REQUIRE(v.size() == 5);
    CHECK((v[0].size == 40 && v[0].alignment == 16 && v[0].linkage == Linkage::visible));
    CHECK((v[1].size == 16 && v[1].alignment == 16 && v[1].space == StateSpace::constant));
    CHECK((v[2].size == 0 && v[2].unsized && v[2].linkage == Linkage::external));
    CHECK((v[3].size == 12 && v[3].dimensions == std::vector<std::uint32_t>{2, 3} &&
           v[3].linkage == Linkage::weak));
    CHECK(v[4].managed);
}

TEST_CASE("module: initialisers") {
    CHECK(initial(".global .u32 x = 5;") == Bytes{5, 0, 0, 0});
    CHECK(initial(".global .u8 x[4] = {1, -1};") == Bytes{1, 255, 0, 0});
    CHECK(initial(".global .u16 x[2][2] = {{1, 2}, {3}};") == Bytes{1, 0, 2, 0, 3, 0, 0, 0});
    CHECK(initial(".global .u16 x[] = {1, 2};") == Bytes{1, 0, 2, 0});
    CHECK(initial(".global .f32 x = 1.5;") == Bytes{0, 0, 0xc0, 0x3f});
    CHECK(initial(".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};") == Bytes{1, 2, 3, 4});
    CHECK(initial(".global .u32 x;").empty());
}

TEST_CASE("module: addresses in initialisers are relocations") {
    const auto loader = test::load(
        ".global .u32 y;\n.func f() { ret; }\n"
        ".global .u64 x[3] = {y+4, generic(y), f};\n.global .u8 z[2] = {0, 0xFF00(y)};\n");
    const auto& r = loader->module().variables[1].relocations;
    REQUIRE(r.size() == 3);
    CHECK((r[0].offset == 0 && r[0].addend == 4 && !r[0].generic && !r[0].is_function &&
           r[0].symbol == 0));
    CHECK((r[1].offset == 8 && r[1].generic));
    CHECK((r[2].offset == 16 && r[2].is_function));
    const auto& masked = loader->module().variables[2].relocations;
    REQUIRE(masked.size() == 1);
    CHECK((masked[0].size == 1 && masked[0].byte == 1 && masked[0].offset == 1));
}

TEST_CASE("module: entries with limits and parameter layout") {
    const auto loader = test::load(".visible .entry k(.param .u8 a, .param .u64 .ptr .global "
                                   ".align 16 b, .param .align 8 .b8 c[12])\n"
                                   ".maxntid 256, 2\n.minnctapersm 2\n.maxnreg 64\n{ ret; }\n");
    const Function& k = loader->module().functions[0];
    CHECK(k.limits.max_ntid == std::array<std::uint32_t, 3>{256, 2, 1});
    CHECK(k.limits.min_ctas_per_sm == 2);
    CHECK(k.limits.max_registers == 64);
    CHECK((k.parameters[1].is_pointer && k.parameters[1].pointee_alignment == 16));
    const ParameterLayout layout = parameter_layout(k);
    CHECK(layout.offsets == std::vector<std::uint32_t>{0, 8, 16});
    CHECK(layout.size == 28);
}

TEST_CASE("module: an .align below that of the type is overlooked") {
    const auto loader = test::load(".visible .entry k(.param .u8 a, .param .align 1 .f64 b[3], .param .align 4 .v2 .u64 c[1]) { ret; }\n"
                                   ".global .align 2 .v4 .u32 v;\n");
    const ParameterLayout layout = parameter_layout(loader->module().functions[0]);
    CHECK(layout.offsets == std::vector<std::uint32_t>{0, 8, 32});
    CHECK(layout.size == 48);
    CHECK(layout.alignment == 16);
    CHECK(loader->module().variables[0].alignment == 16);
}

TEST_CASE("module: a declaration and its definition are one function") {
    const auto loader =
        test::load(".func (.param .b32 r) f(.param .b32 a);\n.entry k() { ret; }\n"
                   ".func (.param .b32 r) f(.param .b32 a) { ret; }\n.extern .func g();\n");
    REQUIRE(loader->module().functions.size() == 3);
    CHECK_FALSE(loader->module().functions[0].is_declaration);
    CHECK(loader->module().functions[2].is_declaration);
}

TEST_CASE("module: an alias stands for its function") {
    const auto loader =
        test::load(".func b() { ret; }\n.func a();\n.alias a, b;\n.entry k() { call a; ret; }\n");
    CHECK(loader->module().functions[1].alias_of == "b");
    CHECK(body_of(*loader).instructions[0][Role::f].index == 0);
}

TEST_CASE("body: names of inner scopes hide outer ones, labels are local") {
    const auto loader =
        test::load_kernel("mov.u32 %r1, 1; { .reg .u32 %r1; mov.u32 %r1, 2; bra inner; inner: } "
                          "{ inner: bra inner; } mov.u32 %r1, 3; ret;");
    const Body& body = body_of(*loader);
    const RegisterId outer = body.instructions[0][Role::d].index;
    CHECK(body.instructions[1][Role::d].index != outer);
    CHECK(body.instructions[4][Role::d].index == outer);
    REQUIRE(body.labels.size() == 2);
    CHECK(body.instructions[2][Role::t].index == 0);
    CHECK(body.instructions[3][Role::t].index == 1);
    CHECK(body.labels[0].instruction == 3);
}

TEST_CASE("body: call sequences") {
    const auto loader =
        test::load_kernel("{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0+0], %r1; call.uni "
                          "(r0), f, (p0); ld.param.b32 %r2, [r0+0]; }"
                          "proto: .callprototype (.param .b32 _) _ (.param .b32 _);"
                          "{ .param .b32 p0; .param .b32 r0; call (r0), %d1, (p0), proto; } ret;",
                          ".func (.param .b32 r) f(.param .b32 a) { ret; }\n");
    const Body& body = body_of(*loader);
    const Instruction& direct = body.instructions[1];
    CHECK(direct[Role::f].kind == Operand::Kind::function);
    CHECK(direct[Role::a].kind == Operand::Kind::list);
    const Operand& argument = body.operand_pool[direct[Role::a].first];
    CHECK(argument.kind == Operand::Kind::variable);
    CHECK(body.variables[argument.index].name == "p0");
    const Instruction& indirect = body.instructions[3];
    CHECK(indirect[Role::f].kind == Operand::Kind::reg);
    CHECK(indirect[Role::t].kind == Operand::Kind::prototype);
}

TEST_CASE("body: jump tables and source lines") {
    const auto loader =
        test::load_kernel(".loc 1 10 3\nts: .branchtargets A, B, A;\nbrx.idx %r1, ts;\nA: "
                          "ret;\n.loc 1 11 4, function_name $x, inlined_at 1 5 6\nB: ret;");
    const Body& body = body_of(*loader);
    REQUIRE(body.branch_targets.size() == 1);
    CHECK(body.branch_targets[0] == std::vector<LabelId>{0, 1, 0});
    CHECK(body.instructions[0][Role::t].kind == Operand::Kind::target_list);
    REQUIRE(body.source_lines.size() == 2);
    CHECK((body.source_lines[1].line == 11 && body.source_lines[1].instruction == 2));
}

TEST_CASE("body: ranges of targets name their members in order") {
    const auto loader = test::load_kernel("ts: .branchtargets B, A<3>;\nbrx.idx %r1, ts;\nA2: ret;\nA1: ret;\nA0: ret;\nB: ret;");
    CHECK(body_of(*loader).branch_targets[0] == std::vector<LabelId>{3, 2, 1, 0});
    const auto calls = test::load(".func f0() { ret; }\n.func f1() { ret; }\n.func other() { ret; }\n" +
                                  test::kernel_around("fs: .calltargets f<2>;\nmov.u64 %d1, f1;\ncall %d1, fs;\nret;"));
    const auto id = [&](const char* name) { return calls->module().find_function(name).value(); };
    CHECK(body_of(*calls).call_targets[0] == std::vector<FunctionId>{id("f0"), id("f1")});
    CHECK_FALSE(test::is_accepted(test::kernel_around("ts: .branchtargets A<3>;\nbrx.idx %r1, ts;\nA0: A1: ret;")));
}

TEST_CASE("module: the first declaration of a function says who sees it") {
    const auto loader = test::load(".visible .func f();\n.func f() { ret; }\n.weak .func g();\n.func g() { ret; }\n"
                                   ".visible .func h();\n.visible .func h() { ret; }\n");
    const auto linkage = [&](const char* name) {
        return loader->module().functions[loader->module().find_function(name).value()].linkage;
    };
    CHECK(linkage("f") == Linkage::visible); // as in the symbol tables of ptxas' binaries
    CHECK(linkage("g") == Linkage::weak);
    CHECK(linkage("h") == Linkage::visible);
    CHECK_FALSE(test::is_accepted(".visible .func f();\n.weak .func f() { ret; }\n"));
}

TEST_CASE("loader: bodies are checked on several threads as on one") {
    std::string text = test::header;
    for (unsigned i = 0; i < 300; ++i)
        text += ".func f" + std::to_string(i) + "() { .reg .b32 %r<4>; mov.b32 %r1, " + std::to_string(i) + "; " +
                (i % 50 == 49 ? "mov.b32 %q, 1; " : "") + "ret; }\n";
    const auto several = [](const std::function<void()>& work) {
        std::thread other(work), third(work);
        work();
        other.join();
        third.join();
    };
    const auto all = ModuleLoader::load(text, "test.ptx", {.bind_all_bodies = true, .max_errors = 20});
    const auto loader = ModuleLoader::load(text, "test.ptx");
    std::atomic<unsigned> visited = 0, wrong = 0;
    loader->check_bodies(
        [&](FunctionId f, const Body& body) {
            ++visited;
            if (body.instructions.size() != 2 || body.instructions[0].operands[1].value != f) ++wrong;
        },
        several);
    CHECK(visited == 294);
    CHECK(wrong == 0);
    CHECK(loader->diagnostics().error_count() == 6);
    CHECK(loader->diagnostics().render_all() == all->diagnostics().render_all());
    CHECK_THROWS_AS(loader->body(49), DiagnosticError);
    CHECK(loader->diagnostics().error_count() == 6);
    CHECK_THROWS_AS(loader->check_bodies([](FunctionId, const Body&) { throw std::bad_alloc(); }, several), std::bad_alloc);
}

TEST_CASE("loader: lines end in strings, which know no escapes, as with ptxas") {
    const auto loader = ModuleLoader::load(test::header + ".file 1 \"a\nb\\\"\n.func f() { .pragma \"c\n}\"; wrong; ret; }\n", "test.ptx",
                                           {.bind_all_bodies = true, .max_errors = 20});
    REQUIRE(loader->diagnostics().list().size() == 1);
    const std::string text = loader->diagnostics().render_all();
    CHECK(text.find("'wrong'") != std::string::npos);
    const auto lines = static_cast<std::uint32_t>(std::count(test::header.begin(), test::header.end(), '\n'));
    CHECK(loader->diagnostics().list()[0].location.line == lines + 4);
}

TEST_CASE("loader: a malformed initial value is one error") {
    for (const char* value : {"{-0f3f800000, 1.0}", "{{1.0}, -0f3f800000}", "{1.0 + }", "-0f3f800000"}) {
        const auto loader = ModuleLoader::load(test::header + ".global .f32 g[2] = " + value +
                                                   ";\n.func f() { .reg .f32 %f; ld.global.f32 %f, [g]; ret; }\n",
                                               "test.ptx", {.bind_all_bodies = true, .max_errors = 20});
        INFO(loader->diagnostics().render_all());
        CHECK(loader->diagnostics().error_count() == 1);
    }
}

TEST_CASE("loader: bodies that are not kept are validated, and bound again when asked for") {
    const std::string text = test::header + ".func f() { .reg .b32 %r<3>; .local .b8 l<1000>; mov.b32 %r1, 1; ret; }\n"
                                            ".func g() { mov.b32 %r1, 1; }\n";
    const auto loader = ModuleLoader::load(
        text, "test.ptx", {.bind_all_bodies = true, .keep_bodies = false, .max_errors = 20});
    CHECK(loader->diagnostics().error_count() == 1);
    const Body& body = loader->body(0);
    CHECK(body.instructions.size() == 2);
    CHECK(&loader->body(0) == &body);
    for (unsigned i = 0; i < 1000; ++i) { // beyond what a module may declare as ranges
        loader->forget_bodies();
        REQUIRE(loader->body(0).instructions.size() == 2);
    }
    CHECK_THROWS_AS(loader->body(1), DiagnosticError);
    CHECK(loader->diagnostics().error_count() == 1);
}

TEST_CASE("loader: registers of a range that is too large are declared all the same") {
    const std::string text = test::header + ".entry k() { .reg .b32 %r<4000000000>; .reg .b64 %q<99999999999>;\n"
                                            "mov.b32 %r1, %r3999999999; mov.b64 %q2, 1; ret; }\n";
    const auto loader = ModuleLoader::load(text, "test.ptx", {.bind_all_bodies = true, .max_errors = 20});
    REQUIRE(loader->diagnostics().list().size() == 2);
    for (const auto& error : loader->diagnostics().list()) CHECK(error.text == "too many registers");
}

TEST_CASE("loader: what a malformed declaration declared is not unknown as well") {
    const auto loader = ModuleLoader::load(R"(.version 8.0
.target sm_90
.address_size 64
.func f(.reg .b33 a)
{
    ret;
}
.global .b33 counter;
.entry k()
{
    .reg .b32 %r;
    call f, (%r);
    ld.global.b32 %r, [counter];
    ld.global.b32 %r, [other];
    ret;
}
)", "text", {.bind_all_bodies = true, .max_errors = 20});
    const std::string messages = loader->diagnostics().render_all();
    CHECK(messages.find("text:4:14: error: unknown type '.b33'") != std::string::npos);
    CHECK(messages.find("text:8:9: error: unknown type '.b33'") != std::string::npos);
    CHECK(messages.find("unknown symbol 'f'") == std::string::npos);
    CHECK(messages.find("unknown symbol 'counter'") == std::string::npos);
    CHECK(messages.find("unknown symbol 'other'") != std::string::npos);
}

TEST_CASE("module: variables that bodies declare are the module's, seen in their scope only") {
    const auto loader = test::load(
        ".global .u32 x = 1;\n"
        ".func f() { .global .u32 x = 2; { .const .u64 y[] = {x, 5}; ret; } }\n"
        ".global .u32 z;\n"
        ".entry k() {\n.reg .b32 r; .reg .b64 a;\n.shared .u32 s; ld.global.u32 r, [x];\n"
        "{ .global .align 16 .b8 x<2>; mov.u64 a, x1; .attribute(.managed) .global .u32 m; st.global.u32 [m], r; }\n"
        "{ .global .u32 x = 3; .global .u64 at = x; st.global.u32 [x], r; ld.global.u64 a, [at]; }\nst.global.u32 [x], r; ret; }\n"
        ".entry l() { .reg .b32 r; ld.global.u32 r, [x]; /* .global */ ret; }");
    const auto& v = loader->module().variables;
    REQUIRE(v.size() == 9);
    std::vector<std::string> names;
    for (const Variable& variable : v) names.push_back(variable.name);
    CHECK(names == std::vector<std::string>{"x", "$__x__1", "$__y__2", "z", "$__x0__4", "$__x1__5", "$__m__6", "$__x__7", "$__at__8"});
    CHECK((v[1].init == Bytes{2, 0, 0, 0} && v[1].space == StateSpace::global));
    CHECK((v[2].size == 16 && v[2].space == StateSpace::constant && v[2].init[8] == 5));
    REQUIRE(v[2].relocations.size() == 1);
    CHECK(v[2].relocations[0].symbol == 1); // the x of that body
    CHECK((v[4].alignment == 16 && v[5].alignment == 16 && v[6].managed));
    REQUIRE(v[8].relocations.size() == 1);
    CHECK(v[8].relocations[0].symbol == 7);
    const Body& body = body_of(*loader);
    std::vector<std::uint32_t> used;
    for (const Instruction& inst : body.instructions)
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (inst.operands[i].kind == Operand::Kind::variable || inst.operands[i].base == Operand::Base::variable) {
                CHECK(inst.operands[i].scope == VariableScope::module);
                used.push_back(inst.operands[i].index);
            }
    CHECK(used == std::vector<std::uint32_t>{0, 5, 6, 7, 8, 0});
    CHECK(body.variables.size() == 1); // s
    CHECK(loader->module().find_variable("x") == 0u);
    // A name that is taken.
    CHECK(test::load(".global .u32 $__x__1;\n.entry k() { .global .u32 x; ret; }")->module().variables[1].name == "$__x__1$");
}

TEST_CASE("module: what can't be declared in bodies") {
    const auto refused = [](const std::string& statement) {
        return !test::is_accepted(".global .u32 g;\n.entry k() { .reg .b32 r; .shared .u32 s; " + statement + " ret; }\n.global .u32 later;");
    };
    CHECK(refused(".global .u32 x[];"));
    CHECK(refused(".global .texref t;"));
    CHECK(refused(".const[2] .u32 x;"));
    CHECK(refused(".global .u64 p = x; .global .u32 x;"));
    CHECK(refused(".global .u64 p = later;"));
    CHECK(refused(".global .u64 p = s;"));
    CHECK(refused(".global .u64 p = r;"));
    CHECK(refused(".global .u32 x; .global .u32 x;"));
    CHECK(refused("{ .global .u32 x; } ld.global.u32 r, [x];"));
    CHECK(refused(".global .u32 x<600000>;"));
    CHECK(refused(".global .u32 x[] = {};"));
    for (const char* space : {"const", "shared", "local", "param", "reg"})
        CHECK(refused("." + std::string(space) + " .attribute(.managed) .u32 x;"));
    for (const char* space : {"global", "const", "shared", "local", "param", "reg"}) {
        const std::string text = "\n.target sm_90\n.address_size 64\n.entry k() { ." + std::string(space) + " .b128 x; ret; }";
        CHECK_FALSE(ModuleLoader::load(".version 8.2" + text, "t", {.bind_all_bodies = true})->ok());
        CHECK(ModuleLoader::load(".version 8.3" + text, "t", {.bind_all_bodies = true})->ok());
    }
    CHECK(!refused(".global .u64 p = g; .global .u64 q = k; .global .u32 x<4>; ld.global.u32 r, [x3];"));
    CHECK(refused(".global .u32 x<4>; ld.global.u32 r, [x4];"));
}
