// SPDX-License-Identifier: Apache-2.0
// Which row an instruction is an instance of, and what its words say.
#include "tests/unit/frontend/load.h"

using namespace ptarmigan;
using namespace ptarmigan::ptx;
using test::body_of;
using test::form_name;

namespace {

std::string form_of(const std::string& statement) {
    const auto loader = test::load_kernel(statement);
    return form_name(body_of(*loader).instructions.front());
}

} // namespace

TEST_CASE("overload: type and modifiers choose the row") {
    CHECK(form_of("add.s32 %r1, %r2, 1;") == "add_int");
    CHECK(form_of("add.f32 %f1, %f2, %f3;") == "add_f32");
    CHECK(form_of("add.rn.ftz.f32 %f1, %f2, %f3;") == "add_f32");
    CHECK(form_of("add.rz.f64 %e1, %e2, %e3;") == "add_f64");
    CHECK(form_of("add.cc.u32 %r1, %r2, 1;") == "add_cc");
    CHECK(form_of("mul.wide.s32 %d1, %r2, %r3;") == "mul_wide");
    CHECK(form_of("mad.lo.s32 %r1, %r2, %r3, %r4;") == "mad_lo");
}

TEST_CASE("overload: the look of the operands decides between rows of the same words") {
    CHECK(form_of("mov.b64 %d1, %d2;") == "mov");
    CHECK(form_of("mov.b64 %d1, {%r1, %r2};") == "mov_pack");
    CHECK(form_of("mov.b64 {%r1, %r2}, %d1;") == "mov_unpack");
}

TEST_CASE("overload: words may come in any order behind the opcode") {
    const auto loader = test::load_kernel("ld.u32.global.volatile %r1, [%d1]; add.f32.rn.ftz %f1, "
                                          "%f2, %f3; cvt.f32.rn.s32 %f1, %r1;");
    const Body& body = body_of(*loader);
    CHECK(form_name(body.instructions[0]) == "ld_volatile");
    CHECK(body.instructions[0].space == StateSpace::global);
    CHECK(body.instructions[1].has(Modifier::ftz));
    CHECK(body.instructions[1].has(Modifier::rn));
    CHECK(body.instructions[2].types[0] == ScalarType::f32);
    CHECK(body.instructions[2].types[1] == ScalarType::s32);
}

TEST_CASE("overload: space, vector size and types land in their fields") {
    const auto loader = test::load_kernel("ld.v2.f32 {%f1, %f2}, [%d1]; st.shared.u8 [%r1], %r2;");
    const Body& body = body_of(*loader);
    CHECK(body.instructions[0].space == StateSpace::generic);
    CHECK(body.instructions[0].vector_size == 2);
    CHECK(body.instructions[0].type() == ScalarType::f32);
    CHECK(body.instructions[1].space == StateSpace::shared);
    CHECK(body.instructions[1].type() == ScalarType::u8);
}
