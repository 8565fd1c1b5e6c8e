// SPDX-License-Identifier: Apache-2.0
// Which texts are taken for a reciprocal or a root that ptxas has written out. What cubins' leave is tests/driver_api/machine_code_test.cpp's subject.
#include "graph_fixture.h"

#include "tests/unit/kernels/written_out_division.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

const std::string reciprocal = R"(
    add.s32 %r2, %r1, 0x1800000;
    and.b32 %r3, %r2, 0x7f800000;
    setp.gt.u32 %p1, %r3, 0x1ffffff;
    @%p1 bra SHORT;
    rcp.rn.f32 %r9, %r1;
    bra JOIN;
SHORT:
    rcp.approx.ftz.f32 %r4, %r1;
    fma.rn.f32 %r5, %r1, %r4, 0fBF800000;
    neg.f32 %r6, %r5;
    add.ftz.f32 %r7, %r6, 0f80000000;
    fma.rn.f32 %r9, %r4, %r7, %r4;
JOIN:
)";
const std::string root = R"(
    add.s32 %r2, %r1, 0xf3000000;
    rsqrt.approx.ftz.f32 %r3, %r1;
    setp.gt.u32 %p1, %r2, 0x727fffff;
    @!%p1 bra SHORT;
    sqrt.rn.f32 %r9, %r1;
    bra JOIN;
SHORT:
    mul.ftz.f32 %r4, %r1, %r3;
    mul.ftz.f32 %r5, %r3, 0f3F000000;
    neg.f32 %r6, %r4;
    fma.rn.f32 %r7, %r6, %r4, %r1;
    fma.rn.f32 %r9, %r7, %r5, %r4;
JOIN:
)";

/// Whether the unit's approximation is still there.
bool is_left(const std::string& text) {
    const AnalysedKernel k("ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];" + text + "st.global.u32 [%rd1+4], %r9; ret;");
    bool left = false, has_statement = false;
    for (const auto& block : k.graph.blocks)
        for (const auto& instruction : block.instructions) {
            const auto form = instruction.inst.form;
            left = left || form == ptx::FormId::rcp_approx || form == ptx::FormId::rsqrt_approx;
            has_statement = has_statement || form == ptx::FormId::rcp_f32 || form == ptx::FormId::sqrt_f32;
        }
    CHECK(has_statement);
    return left;
}

bool is_left(const std::string& text, const char* from, const char* to) {
    REQUIRE(text.find(from) != text.npos);
    return is_left(replaced(text, from, to));
}

} // namespace

TEST_CASE("reciprocals and roots of two ways are one statement") {
    CHECK_FALSE(is_left(reciprocal));
    CHECK_FALSE(is_left(reciprocal, "@%p1 bra", "not.pred %p1, %p1; @!%p1 bra"));
    CHECK_FALSE(is_left(reciprocal, "add.ftz.f32 %r7, %r6, 0f80000000;", "mov.b32 %r7, %r6;"));
    CHECK_FALSE(is_left(root));
    CHECK_FALSE(is_left(root, "fma.rn.f32 %r7, %r6, %r4, %r1", "fma.rn.f32 %r7, %r4, %r6, %r1"));
}

TEST_CASE("what differs from a reciprocal or a root in one place stays") {
    CHECK(is_left(reciprocal, "0x1800000", "0x1000000"));
    CHECK(is_left(reciprocal, "0x7f800000", "0x7fc00000"));
    CHECK(is_left(reciprocal, "0x1ffffff", "0xffffff"));
    CHECK(is_left(reciprocal, "@%p1 bra", "@!%p1 bra"));
    CHECK(is_left(reciprocal, "setp.gt", "setp.ge"));
    CHECK(is_left(reciprocal, "rcp.rn.f32 %r9, %r1", "rcp.rz.f32 %r9, %r1"));
    CHECK(is_left(reciprocal, "rcp.rn.f32 %r9, %r1", "rcp.rn.ftz.f32 %r9, %r1"));
    CHECK(is_left(reciprocal, "rcp.rn.f32 %r9, %r1", "rcp.rn.f32 %r9, %r2"));
    CHECK(is_left(reciprocal, "rcp.rn.f32 %r9, %r1", "rcp.rn.f32 %r9, %r1; st.global.u32 [%rd1+8], %r9"));
    CHECK(is_left(reciprocal, "0fBF800000", "0f3F800000"));
    CHECK(is_left(reciprocal, "0f80000000", "0f00800000"));
    CHECK(is_left(reciprocal, "fma.rn.f32 %r9, %r4, %r7, %r4", "fma.rz.f32 %r9, %r4, %r7, %r4"));
    CHECK(is_left(reciprocal, "fma.rn.f32 %r9, %r4, %r7, %r4", "fma.rn.f32 %r9, %r4, %r5, %r4"));
    CHECK(is_left(reciprocal, "fma.rn.f32 %r9, %r4, %r7, %r4", "fma.rn.f32 %r9, %r4, %r7, %r1"));
    CHECK(is_left(root, "0xf3000000", "0xf3000001"));
    CHECK(is_left(root, "0x727fffff", "0x727ffffe"));
    CHECK(is_left(root, "@!%p1 bra", "@%p1 bra"));
    CHECK(is_left(root, "sqrt.rn.f32 %r9, %r1", "rcp.rn.f32 %r9, %r1"));
    CHECK(is_left(root, "0f3F000000", "0f3F800000"));
    CHECK(is_left(root, "neg.f32 %r6, %r4", "neg.f32 %r6, %r3"));
    CHECK(is_left(root, "fma.rn.f32 %r7, %r6, %r4, %r1", "fma.rn.ftz.f32 %r7, %r6, %r4, %r1"));
    CHECK(is_left(root, "fma.rn.f32 %r9, %r7, %r5, %r4", "fma.rn.f32 %r9, %r7, %r5, %r1"));
    CHECK(is_left(root, "mul.ftz.f32 %r4, %r1, %r3", "mul.ftz.f32 %r4, %r1, %r1"));
}
