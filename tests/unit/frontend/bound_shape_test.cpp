// SPDX-License-Identifier: Apache-2.0
// Instructions that look like one bound before take its mould: what differs between them must be
// looked at all the same.
#include "tests/unit/frontend/load.h"

namespace ptarmigan::test {

namespace {
/// Whether the second of two statements is refused when the first, which is good, stands before it.
bool refused_behind(const std::string& good, const std::string& bad) {
    return is_accepted(kernel_around(good)) && !is_accepted(kernel_around(good + " " + bad));
}
} // namespace

TEST_CASE("an instruction like one before has its own names and constants", "[shape]") {
    auto loader =
        load_kernel("@%p1 mad.lo.s32 %r1, %r2, -3, %r3; @!%p2 mad.lo.s32 %r4, %r5, 7, %r6; "
                    "mad.lo.s32 %r7, %r1, 9, %r2;"
                    "ld.shared.v2.u32 {%r1, %r2}, [%r3+8]; ld.shared.v2.u32 {%r4, _}, [%r5+-4];"
                    "ld.shared.v2.u32 {%r6, %r7}, [%r1];");
    const ptx::Body& body = body_of(*loader);
    const auto& list = body.instructions;
    REQUIRE(list.size() == 6);
    CHECK(body.registers[list[0].guard].name == "%p1");
    CHECK(!list[0].guard_negated);
    CHECK(body.registers[list[1].guard].name == "%p2");
    CHECK(list[1].guard_negated);
    CHECK(list[2].guard == ptx::no_id);
    CHECK(!list[2].guard_negated);
    const auto name = [&](const ptx::Operand& operand) {
        return body.registers[operand.index].name;
    };
    CHECK(name(list[1].operands[0]) == "%r4");
    CHECK(name(list[1].operands[3]) == "%r6");
    CHECK(list[0].operands[2].value == 0xfffffffdu);
    CHECK(list[1].operands[2].value == 7);
    CHECK(list[2].operands[2].value == 9);
    CHECK(list[1].location.column > list[0].location.column);
    const auto element = [&](std::size_t at, unsigned i) {
        return body.operand_pool[list[at].operands[0].first + i];
    };
    CHECK(name(element(3, 1)) == "%r2");
    CHECK(name(element(4, 0)) == "%r4");
    CHECK(element(4, 1).kind == ptx::Operand::Kind::sink);
    CHECK(name(element(5, 1)) == "%r7");
    CHECK(list[4].operands[1].value == ~std::uint64_t{3});
    CHECK(list[5].operands[1].value == 0);
}

TEST_CASE("what was right for one instruction is checked for the next", "[shape]") {
    CHECK(refused_behind("mov.u32 %r1, %r2;", "mov.u32 %r1, %d1;"));
    CHECK(refused_behind("mov.u32 %r1, 1;", "mov.u32 %r1, 1.0;"));
    CHECK(refused_behind("mov.u32 %r1, %r2;", "mov.u32 %r1, %r99999;"));
    CHECK(refused_behind("add.u32 %r1, %r2, 1;", "add.u32 %r1, 1, 1.5;"));
    CHECK(refused_behind("ld.global.u32 %r1, [%d1];", "ld.global.u32 %r1, [%r1];"));
    CHECK(refused_behind("@%p1 add.u32 %r1, %r2, 1;", "@%r1 add.u32 %r1, %r2, 1;"));
    CHECK(refused_behind("bfind.u32 %r1, %r2;", "bfind.u32 %r1, !%r2;"));
    CHECK(refused_behind("bfe.u32 %r1, %r2, 0, 255;", "bfe.u32 %r1, %r2, 0, 256;"));
    CHECK(refused_behind("cp.async.ca.shared.global [%r1], [%d1], 8, 4;",
                         "cp.async.ca.shared.global [%r1], [%d1], 8, 9;"));
    CHECK(refused_behind("ld.shared.v2.u32 {%r1, %r2}, [%r3];",
                         "ld.shared.v2.u32 {%r1, %r2, %r3}, [%r3];"));
    CHECK(refused_behind("{ .shared .b32 s; ld.shared.u32 %r1, [s]; }",
                         "{ .local .b32 s; ld.shared.u32 %r1, [s]; }"));
}

TEST_CASE("a function writes to its results, not to its parameters", "[shape]") {
    const auto accepted = [](const std::string& stores) {
        return is_accepted(".func (.param .b32 r) f(.param .b32 a) { .reg .b32 x; " + stores +
                           " ret; }");
    };
    CHECK(accepted("st.param.b32 [r], x; st.param.b32 [r+0], x;"));
    CHECK(!accepted("st.param.b32 [r], x; st.param.b32 [a], x;"));
    CHECK(accepted("ld.param.b32 x, [a]; st.param.b32 [r], x;"));
}

TEST_CASE("the carry flag belongs to its body", "[shape]") {
    auto loader =
        load(".entry f() { .reg .b32 a, b, c, d; add.cc.u32 a, b, c; add.cc.u32 b, c, d; ret; }\n"
             ".entry g() { .reg .b32 a; add.cc.u32 a, a, a; addc.u32 a, a, a; ret; }\n");
    REQUIRE(loader->ok());
    const ptx::Body& body = loader->body(1);
    const auto& sum = body.instructions[0];
    const auto carry = [&](const ptx::Instruction& instruction) {
        for (const ptx::Operand& operand : instruction.operands)
            if (operand.kind == ptx::Operand::Kind::reg &&
                body.registers.at(operand.index).name == "%cc.cf")
                return true;
        return false;
    };
    CHECK(carry(sum));
    CHECK(carry(body.instructions[1]));
}

TEST_CASE("ranges whose prefixes end in digits or share eight letters", "[shape]") {
    const auto names = [](const std::string& text) {
        const auto loader = ptx::ModuleLoader::load(header + ".entry f() { " + text + " ret; }",
                                                    "test.ptx", {.bind_all_bodies = true});
        std::vector<std::string> found;
        if (!loader->ok()) return found;
        const ptx::Body& body = loader->body(0);
        for (const ptx::Register& one : body.registers)
            found.push_back(one.name + "." + std::string(ptx::spelling(one.type)));
        return found;
    };
    using Names = std::vector<std::string>;
    CHECK(names(".reg .b32 %register_a<9>; .reg .b64 %register_b<9>; mov.b32 %register_a1, "
                "%register_a2; mov.b64 %register_b1, %register_b2;") ==
          Names{"%register_a1.b32", "%register_a2.b32", "%register_b1.b64", "%register_b2.b64"});
    CHECK(names(".reg .b32 %abcdefg<9>; .reg .b64 %abcdefgh<9>; mov.b32 %abcdefg1, %abcdefg8; "
                "mov.b64 %abcdefgh1, %abcdefgh8;")
              .size() == 4);
    CHECK(names(".reg .b32 %r<20>; .reg .b64 %r1x<5>; mov.b32 %r12, %r1; mov.b64 %r1x1, %r1x4;")
              .size() == 4);
    CHECK(names(".reg .b64 %q1<5>; mov.b64 %q11, %q14;") == Names{"%q11.b64", "%q14.b64"});
    CHECK(names(".reg .b32 %r<5>; mov.b32 %r1, %r5;").empty());
    CHECK(names(".reg .b32 %r<5>; mov.b32 %r1, %r00000000001;").empty());
}

} // namespace ptarmigan::test
