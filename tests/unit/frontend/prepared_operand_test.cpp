// SPDX-License-Identifier: Apache-2.0
// Operands that are made by instructions of their own; what each means was read from ptxas' machine
// code.
#include "tests/unit/frontend/load.h"

namespace ptarmigan::test {

TEST_CASE("a register plus a constant as a value", "[prepared]") {
    auto loader = load_kernel("add.u32 %r1, %r2+4, 3; @%p1 mov.b64 %d1, %d2+-8;");
    const auto& list = body_of(*loader).instructions;
    REQUIRE(list.size() == 4);
    CHECK(form_name(list[0]) == form_name(list[1]));
    CHECK(list[0].operands[2].value == 4);
    CHECK(list[0].operands[0].index == list[1].operands[1].index);
    CHECK(list[2].operands[2].value == ~std::uint64_t{7});
    CHECK(list[2].guard == ptx::no_id);
    CHECK(list[3].guard != ptx::no_id);
}

TEST_CASE("addresses in registers of 8 and 16 bits are extended", "[prepared]") {
    auto loader = load_kernel(".reg .s16 %s; .reg .u8 %b; ld.shared.u32 %r1, [%s+4]; ld.global.u32 "
                              "%r1, [%s]; ld.local.u32 %r1, [%b];");
    const auto& list = body_of(*loader).instructions;
    REQUIRE(list.size() == 7);
    CHECK(list[0].types[0] == ptx::ScalarType::s32); // by its sign
    CHECK(list[1].operands[1].value == 4);
    CHECK(list[3].types[0] == ptx::ScalarType::u64); // and then with zeros
    CHECK(list[3].types[1] == ptx::ScalarType::u32);
    CHECK(list[5].types[1] == ptx::ScalarType::u8);
    CHECK(loader->diagnostics().render_all().find("the address is extended") != std::string::npos);
}

TEST_CASE("vector registers as arguments and results of calls", "[prepared]") {
    auto loader = load(
        ".func (.reg .v4 .f32 q) f(.reg .v4 .f32 p) { mov.v4.f32 q, p; ret; }\n"
        ".visible .entry k() { .reg .v4 .f32 a, b; .reg .pred %p; @%p call (b), f, (a); ret; }\n");
    const auto& list = body_of(*loader).instructions;
    REQUIRE(list.size() == 4);
    CHECK(list[0].vector_size == 4);
    CHECK(list[2].vector_size == 4);
    CHECK(list[2].guard == list[1].guard); // no result where there was no call
    CHECK(list[0].operands[0].index != list[2].operands[1].index);
}

TEST_CASE("names of registers with zeros before the number", "[prepared]") {
    auto loader = load_kernel("mov.u32 %r01, %r1;");
    const ptx::Instruction& move = body_of(*loader).instructions.front();
    CHECK(move.operands[0].index == move.operands[1].index);
}

TEST_CASE("floating-point constants in untyped variables", "[prepared]") {
    const auto bytes = [](const std::string& declaration) {
        return load(declaration)->module().variables.at(0).init;
    };
    using Bytes = std::vector<std::uint8_t>;
    CHECK(bytes(".global .b32 g = 1.1;") == Bytes{0xcd, 0xcc, 0x8c, 0x3f});
    CHECK(bytes(".global .b32 g = 0d3FF8000000000000;") == Bytes{0, 0, 0xc0, 0x3f});
    CHECK(bytes(".global .b16 g = 1.1;") == Bytes{0x9a, 0x99});
    CHECK(bytes(".global .b8 g = 0f12345678;") == Bytes{0x78});
    CHECK(bytes(".global .b64 g = 0f3FC00000;") == Bytes{0, 0, 0xc0, 0x3f, 0, 0, 0, 0});
}

} // namespace ptarmigan::test
