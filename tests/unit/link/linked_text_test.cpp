// SPDX-License-Identifier: Apache-2.0
// What the linked text holds: names kept apart, initialisers across texts, aliases, lines.
#include "tests/unit/link/link.h"

#include "frontend/link/unit_lines.h"
#include "frontend/ptx/queries.h"

#include <algorithm>

using namespace ptarmigan;
using test::link;
using test::link_error;

namespace {

ptx::FunctionId function(const ptx::ModuleLoader& loader, std::string_view name) {
    const auto id = loader.module().find_function(name);
    REQUIRE(id);
    return *id;
}

/// The variable that the only access of `kernel` names.
std::string accessed(ptx::ModuleLoader& loader, std::string_view kernel) {
    for (const ptx::Instruction& i : loader.body(function(loader, kernel)).instructions)
        for (unsigned o = 0; o < i.operand_count; ++o)
            if (i.operands[o].base == ptx::Operand::Base::variable &&
                i.operands[o].scope == ptx::VariableScope::module)
                return loader.module().variables[i.operands[o].index].name;
    return {};
}

std::string loading(const std::string& kernel) {
    return ".visible .entry " + kernel +
           "() { .reg .b32 x; ld.global.u32 x, [own]; st.global.u32 [own], x; ret; }";
}

} // namespace

TEST_CASE("link: variables of one text only are kept apart from others of that name") {
    auto loader =
        link({".global .u32 own = 1; " + loading("k"), ".global .u32 own = 2; " + loading("k2"),
              ".visible .global .u32 own = 3; " + loading("k3")});
    const auto value = [&](const char* kernel) {
        const auto id = loader->module().find_variable(accessed(*loader, kernel));
        REQUIRE(id);
        return loader->module().variables[*id].init[0];
    };
    CHECK(value("k") == 1);
    CHECK(value("k2") == 2);
    CHECK(value("k3") == 3);
    CHECK(accessed(*loader, "k3") == "own"); // programs find what is visible by its name
}

TEST_CASE("link: functions of one text only are kept apart, in calls and as addresses") {
    const auto text = [](const std::string& number, const std::string& linkage) {
        return linkage + ".func (.param .b32 r) f() { .reg .b32 x; mov.b32 x, " + number +
               "; st.param.b32 [r], x; ret; }\n" + ".visible .global .u64 p" + number + " = f;\n" +
               ".visible .entry k" + number + "() { .param .b32 r; call (r), f; ret; }";
    };
    auto loader = link({text("1", ""), text("2", ".visible "), text("3", "")});
    for (const std::string number : {"1", "2", "3"}) {
        const ptx::Body& caller = loader->body(function(*loader, "k" + number));
        const ptx::Operand* callee = nullptr;
        for (const ptx::Instruction& i : caller.instructions)
            for (unsigned o = 0; o < i.operand_count; ++o)
                if (i.operands[o].kind == ptx::Operand::Kind::function) callee = &i.operands[o];
        REQUIRE(callee != nullptr);
        const ptx::Body& body = loader->body(callee->index);
        CHECK(body.instructions[0].operands[1].value == static_cast<unsigned>(number[0] - '0'));
        const auto pointer = loader->module().find_variable("p" + number);
        REQUIRE(pointer);
        CHECK(loader->module().variables[*pointer].relocations.at(0).symbol == callee->index);
    }
}

TEST_CASE("link: a new name is new in every text") {
    auto loader =
        link({".global .u32 own = 1; .visible .global .u32 own$unit1 = 7; " + loading("k"),
              ".global .u32 own = 2;\n.visible .entry k2() { .reg .b32 own$unit_1;\n"
              "ld.global.u32 own$unit_1, [own]; ret; }"});
    CHECK(accessed(*loader, "k") == "own");
    CHECK(accessed(*loader, "k2") == "own$unit__1");
}

TEST_CASE("link: a name that also means a register or an opcode is no guess") {
    const std::string clash = "The names of ";
    CHECK(link_error({".global .u32 x1;", ".global .u32 x1; .visible .entry k() { .reg .b32 x<4>;\n"
                                          "mov.b32 x1, 1; ret; }"})
              .starts_with(clash));
    CHECK(link_error({".global .u32 ret;", ".global .u32 ret; .visible .entry k() { ret; }"})
              .starts_with(clash));
}

TEST_CASE("link: initialisers find variables of other texts, in circles too") {
    auto loader =
        link({".extern .global .u64 second;\n.visible .global .u64 first = second+8;",
              ".extern .global .u64 first;\n.visible .global .u64 second = generic(first);"});
    const ptx::Module& module = loader->module();
    const ptx::Variable& first = module.variables[*module.find_variable("first")];
    CHECK(module.variables[first.relocations.at(0).symbol].name == "second");
    CHECK(first.relocations[0].addend == 8);
    const ptx::Variable& second = module.variables[*module.find_variable("second")];
    CHECK(module.variables[second.relocations.at(0).symbol].name == "first");
    CHECK(second.relocations[0].generic);
}

TEST_CASE("link: initialisers of the text are as short as they were") {
    const ptx::LinkResult linked =
        test::try_link({".visible .global .u32 a[1000000] = {1, 0, 2};\n.global .u32 b;",
                        ".visible .global .u32 c[2][3] = {{1, 0, 0}, {0, 5}};\n"
                        ".visible .global .v2 .u32 d[3] = {{0, 1}};\n.global .u32 b;\n"
                        ".visible .global .v4 .u32 v = {1, 0, 0, 0};\n"
                        ".visible .global .u64 e[4] = {0, c};\n"
                        ".visible .global .u32 f[2][2] = {{0, 0}, {0, 0}};"});
    REQUIRE(linked.ok);
    CHECK(linked.text.find("a[1000000] = {1, 0, 2};") != std::string::npos);
    CHECK(linked.text.find("c[2][3] = {{1, 0, 0}, {0, 5}};") != std::string::npos);
    CHECK(linked.text.find("d[3] = {{0, 1}};") != std::string::npos);
    CHECK(linked.text.find("v = {1, 0, 0, 0};") != std::string::npos); // ptxas wants them all
    CHECK(linked.text.find("e[4] = {0, c};") != std::string::npos);
    CHECK(linked.text.find("f[2][2] = {};") != std::string::npos);
    auto loader = ptx::ModuleLoader::load(linked.text, "linked.ptx");
    REQUIRE(loader->ok());
    const ptx::Module& module = loader->module();
    const ptx::Variable& c = module.variables[*module.find_variable("c")];
    REQUIRE(c.init.size() == 24);
    CHECK(c.init[0] == 1);
    CHECK(c.init[16] == 5);
}

TEST_CASE("link: an alias is a definition for other texts") {
    auto loader =
        link({".visible .func real(.param .b32 a) {ret;}\n.visible .func other(.param .b32 a);\n"
              ".alias other, real;",
              ".extern .func other(.param .b32 a);\n.visible .entry k() { .param .b32 v;\n"
              "call other, (v); ret; }"});
    const ptx::Instruction& call = loader->body(function(*loader, "k")).instructions.at(0);
    const auto* callee =
        std::find_if(call.operands.begin(), call.operands.end(),
                     [](const auto& o) { return o.kind == ptx::Operand::Kind::function; });
    REQUIRE(callee != call.operands.end());
    CHECK(callee->index == function(*loader, "real"));
}

TEST_CASE("link: dynamic shared memory is one array with the largest alignment") {
    auto loader =
        link({".extern .shared .align 4 .b8 pool[];", ".extern .shared .align 16 .b8 pool[];"});
    REQUIRE(loader->module().variables.size() == 1);
    CHECK(loader->module().variables[0].unsized);
    CHECK(loader->module().variables[0].alignment == 16);
}

TEST_CASE("link: weak functions that lose are not in the text") {
    auto loader = link({".weak .entry k() { trap; ret; }", ".visible .entry k() { exit; }",
                        ".weak .entry k() { brkpt; ret; }"});
    CHECK(loader->module().functions.size() == 1);
    CHECK(loader->body(0).instructions.size() == 1);
}

TEST_CASE("link: file numbers of lines are those of the linked table") {
    const auto text = [](const std::string& file, const std::string& kernel) {
        return ".visible .entry " + kernel +
               "()\n{\n.loc 1 5 3, function_name $info, inlined_at 1 7 0\n" +
               "ret;\n.loc 1 6 1\n}\n.file 1 \"" + file +
               "\"\n.section .debug_str { $info: .b8 65 }";
    };
    auto loader = link({text("a.cu", "k"), text("b.cu", "k2")});
    const std::vector<std::string>& files = loader->module().files;
    for (const auto& [kernel, file] : {std::pair{"k", "a.cu"}, std::pair{"k2", "b.cu"}}) {
        const ptx::Body& body = loader->body(function(*loader, kernel));
        REQUIRE(body.source_lines.size() == 2);
        CHECK(files.at(body.source_lines[0].file) == file);
        CHECK(body.source_lines[0].line == 5);
        CHECK(body.source_lines[1].line == 6);
    }
}

TEST_CASE("link: a line of the text leads back to its unit") {
    const auto text = [](const std::string& kernel) {
        return "// a comment\n.visible .entry " + kernel +
               "()\n{\n.reg .b32 %r<2>;\n.loc 1 5 3, function_name $info,\n inlined_at 1 7 0\n"
               "mov.b32 %r1, 7;\nret;\n}\n.file 1 \"a.cu\"\n";
    };
    const ptx::LinkResult linked = test::try_link({text("k"), text("k2")});
    REQUIRE(linked.ok);
    auto loader = ptx::ModuleLoader::load(linked.text, "linked.ptx");
    for (const auto& [kernel, unit] : {std::pair{"k", "a.ptx"}, std::pair{"k2", "b.ptx"}}) {
        const ptx::Instruction& move = loader->body(function(*loader, kernel)).instructions.at(0);
        const auto origin = ptx::find_unit_line(linked.text, move.location.line);
        REQUIRE(origin);
        CHECK(origin->unit == unit);
        CHECK(origin->line == 10); // of the unit: three lines of header, six before the move
    }
    CHECK_FALSE(ptx::find_unit_line(linked.text, 1));
    CHECK_FALSE(ptx::find_unit_line(linked.text, 100000));
    CHECK_FALSE(ptx::find_unit_line("//@ 99999999999 x\n\n\n", 3));
}

TEST_CASE("link: the newest version and the highest target are the text's") {
    auto loader =
        link({".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry k() {ret;}",
              ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k2() {ret;}",
              ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k3() {ret;}"});
    CHECK(loader->module().version == ptx::Version{8, 3});
    CHECK(loader->module().target.sm == 90);
    CHECK(loader->module().target.suffix == 'a');
}

TEST_CASE("link: targets whose arithmetic differs are not mixed") {
    const std::string old = ".version 1.4\n.target sm_13\n.entry k2() { exit; }";
    CHECK(link_error({".visible .entry k() {ret;}", old}).find("flush denormals") !=
          std::string::npos);
    CHECK(test::try_link({old, ".version 1.4\n.target sm_10\n.entry k3() { exit; }"}).ok);
    const std::string head = ".version 8.0\n.target sm_75, texmode_independent\n.address_size 64\n";
    CHECK(link_error({".visible .entry k() {ret;}", head + ".visible .entry k2() {ret;}"})
              .find("texture mode") != std::string::npos);
}

TEST_CASE("link: textures of PTX 1.4 beside a text of the same and of a later version") {
    const std::string old =
        ".version 1.4\n.target sm_13\n.tex .u32 picture;\n.entry k() { .reg .f32 %f<4>; .reg .s32 %r;\n"
        "mov.s32 %r, 0; tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [picture, {%r, %r, %r, %r}]; exit; }";
    const auto alone = link({old});
    CHECK(alone->module().version == ptx::Version{1, 4});
    const auto later = link({old, ".version 1.5\n.target sm_13\n.entry later() { exit; }"});
    CHECK(later->module().version == ptx::Version{1, 5});
    for (const auto* loader : {&alone, &later}) {
        const auto id = (*loader)->module().find_variable("picture");
        REQUIRE(id);
        CHECK((*loader)->module().variables[*id].type == ptx::ScalarType::texref);
    }
}

TEST_CASE("link: entries before PTX 1.4 keep their parameters in the body") {
    const std::string old = ".version 1.3\n.target sm_13\n.entry k { .param .u32 x; { .param .u16 y; } exit; }";
    const auto alone = link({old});
    CHECK(alone->module().functions[0].parameters.size() == 2);
    CHECK(link_error({old, ".version 1.4\n.target sm_13\n.entry later() { exit; }"}) ==
          "'a.ptx' is of a PTX version before 1.4 and can't be linked with later ones");
}

TEST_CASE("link: addresses of entries of other texts and further down, which the units declare first") {
    const std::string taker = ".extern .entry launched(.param .u64 x);\n.visible .entry own(.param .u32 y);\n"
                              ".visible .entry k() { .reg .b64 a; mov.u64 a, launched; mov.u64 a, own; ret; }\n"
                              ".visible .entry own(.param .u32 y) { ret; }";
    const std::string launched = ".visible .entry launched(.param .u64 x) { ret; }\n.visible .global .u64 table[1] = {launched};";
    for (const auto& units : {std::vector{taker, launched}, std::vector{launched, taker}}) {
        auto loader = link(units);
        const auto& body = loader->body(function(*loader, "k"));
        REQUIRE(body.instructions.size() == 3);
        CHECK(body.instructions[0].operands[1].index == function(*loader, "launched"));
        CHECK(body.instructions[1].operands[1].index == function(*loader, "own"));
    }
}

TEST_CASE("link: variables that bodies declare stay in them") {
    const std::string kernel = "() { .global .u32 own = 4; .reg .b32 x; ld.global.u32 x, [own]; st.global.u32 [own], x; ret; }";
    auto loader = link({".global .u32 own; .visible .entry a" + kernel, ".global .u32 own; .visible .entry b" + kernel});
    const auto& variables = loader->module().variables;
    CHECK(variables.size() == 4);
    const std::string a = accessed(*loader, "a"), b = accessed(*loader, "b");
    CHECK(a != b);
    for (const std::string& name : {a, b}) {
        const ptx::Variable& variable = variables.at(loader->module().find_variable(name).value());
        CHECK(variable.init == std::vector<std::uint8_t>{4, 0, 0, 0});
    }
}
