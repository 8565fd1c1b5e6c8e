// SPDX-License-Identifier: Apache-2.0
// Operations on bits of which some are looked at by nobody.
#include "tests/unit/analysis/graph_fixture.h"

namespace ptarmigan::test {
namespace {

/// The shape of %r9, which is made of %r1 (uniform) and %r2 (varying).
translator::Shape shape_of(const std::string& body) {
    AnalysedKernel k("mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd1, %rd2;"
                     "ld.global.u32 %r2, [%rd2]; setp.lt.u32 %p1, %r1, 7;" +
                     body + "st.global.u32 [%rd2+4], %r9; ret;");
    return k.shape_of("%r9");
}

} // namespace

TEST_CASE("prmt: bytes that nobody looks at") {
    // The upper half is what the register held.
    CHECK(shape_of("prmt.b32 %r3, %r1, %r2, 0x7610; and.b32 %r9, %r3, 0xff;").is_uniform());
    CHECK(shape_of("prmt.b32 %r3, %r1, %r2, 0x7610; cvt.u32.u8 %r9, %r3;").is_uniform());
    CHECK(shape_of("prmt.b32 %r3, %r1, %r2, 0x7601; lop3.b32 %r9, %r3, %r1, 0x1ff, 0x80;").is_uniform()); // moved
    CHECK(shape_of("prmt.b32 %r3, %r2, %r1, 0x7610; and.b32 %r9, %r3, 0xff0000;").is_uniform());
    CHECK(shape_of("prmt.b32 %r3, %r1, %r2, 0x7610; and.b32 %r9, %r3, 0x1ffff;").is_varying());
    CHECK(shape_of("prmt.b32 %r3, %r1, %r2, 0x761f; and.b32 %r9, %r3, 0xff;").is_varying()); // a sign
    CHECK(shape_of("prmt.b32 %r9, %r1, %r2, 0x7610;").is_varying());
    CHECK(shape_of("prmt.b32 %r3, %r1, %r2, %r1; and.b32 %r9, %r3, 0xff;").is_varying());
}

TEST_CASE("predicates kept as bits of a register that was something else") {
    const std::string kept = "and.b32 %r3, %r2, 0xffffffef; or.b32 %r4, %r3, 16; @%p1 mov.b32 %r3, %r4;";
    CHECK(shape_of(kept + "and.b32 %r9, %r3, 16;").is_uniform());
    CHECK(shape_of(kept + "and.b32 %r9, %r3, 18;").is_varying());
    CHECK(shape_of("xor.b32 %r3, %r2, 3; lop3.b32 %r4, %r3, 12, %r1, 0xea; and.b32 %r9, %r4, 0xc;").is_varying());
    CHECK(shape_of("lop3.b32 %r3, %r2, 0xf0, %r1, 0xe2; and.b32 %r9, %r3, 0xf0;").is_varying()); // b ? a : c
    CHECK(shape_of("lop3.b32 %r3, %r2, 0xf0, %r1, 0xe2; and.b32 %r9, %r3, 0x0f;").is_uniform());
    CHECK(shape_of("and.b32 %r3, %r2, 0xff00; and.b32 %r4, %r3, 0xff; add.u32 %r9, %r4, %r1;").is_uniform());
    CHECK(shape_of("and.b32 %r3, %r2, 0xff00; add.u32 %r4, %r3, 1; and.b32 %r9, %r4, 0xff;").is_varying()); // sums are not followed
}

TEST_CASE("bits that go round a loop") {
    const auto loop = [](const std::string& mask) {
        return shape_of("mov.b32 %r5, %r2; mov.u32 %r6, 0; LOOP: and.b32 %r5, %r5, 0xfffffffe; or.b32 %r5, %r5, %r1; add.u32 %r6, %r6, 1;"
                        "setp.lt.u32 %p2, %r6, %r1; @%p2 bra LOOP; and.b32 %r9, %r5, " +
                        mask + ";");
    };
    CHECK(loop("1").is_uniform());
    CHECK(loop("3").is_varying());
}

} // namespace ptarmigan::test
