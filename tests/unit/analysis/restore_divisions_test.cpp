// SPDX-License-Identifier: Apache-2.0
// Which texts are taken for a division that ptxas has written out; what divisions leave is tests/unit/kernels' subject.
#include "graph_fixture.h"

#include "tests/unit/kernels/written_out_division.h"

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

struct Found {
    std::size_t quotients = 0, remainders = 0, estimates = 0;
};

Found found(const std::string& division, const std::string& results = "{%r12, %r14}", const std::string& divisor = "ld.global.u32 %r2, [%rd1];") {
    const AnalysedKernel k("ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1+4];" + divisor + replaced(division, "%l", "%rd") +
                           "st.global.v2.u32 [%rd1+8], " + results + "; ret;");
    Found result;
    for (const auto& block : k.graph.blocks)
        for (const auto& instruction : block.instructions) {
            result.quotients += instruction.inst.form == ptx::FormId::div_int;
            result.remainders += instruction.inst.form == ptx::FormId::rem_int;
            result.estimates += instruction.inst.form == ptx::FormId::rcp_approx;
        }
    return result;
}

bool is_left(const std::string& division) { return found(division).estimates == 1; }

} // namespace

TEST_CASE("divisions that are written out become div and rem") {
    for (const bool is_signed : {false, true}) {
        const std::string division = written_out_division(is_signed);
        const Found both = found(division), quotient = found(division, "{%r12, %r12}"), remainder = found(division, "{%r14, %r14}");
        CHECK((both.quotients == 1 && both.remainders == 1 && both.estimates == 0));
        CHECK((quotient.quotients == 1 && quotient.remainders == 0 && quotient.estimates == 0));
        CHECK((remainder.quotients == 0 && remainder.remainders == 1 && remainder.estimates == 0));
    }
    const Found bare = found(written_out_division(false, false));
    CHECK((bare.quotients == 1 && bare.remainders == 1 && bare.estimates == 0));
    const Found known = found(written_out_division(false), "{%r12, %r14}", "mov.u32 %r2, %ntid.x;");
    CHECK((known.quotients == 1 && known.remainders == 1 && known.estimates == 0));
}

TEST_CASE("divisions that are written out otherwise in places are divisions") {
    const std::string division = written_out_division(false);
    const auto stays = [&](const char* from, const char* to) {
        REQUIRE(division.find(from) != division.npos);
        return !is_left(replaced(division, from, to));
    };
    CHECK(stays("mul.lo.s32 %r8, %r7, %r6;", "sub.s32 %r8, 0, %r6; mul.lo.s32 %r8, %r8, %r2;"));
    CHECK(stays("mul.lo.s32 %r8, %r7, %r6;", "mul.lo.s32 %r8, %r2, %r6; neg.s32 %r8, %r8;"));
    CHECK(stays("mul.hi.u32 %r12, %r11, %r1", "mul.hi.u32 %r12, %r1, %r11"));
    CHECK(stays("sub.s32 %r15, %r14, %r2;", "neg.s32 %r15, %r2; add.s32 %r15, %r15, %r14;"));
    CHECK(stays("setp.ge.u32 %p1, %r14, %r2;", "setp.lt.u32 %p1, %r14, %r2; not.pred %p1, %p1;"));
    CHECK(stays("setp.ne.s32 %p4, %r2, 0;", "setp.eq.u32 %p4, %r2, 0; not.pred %p4, %p4;"));
    CHECK(stays("sub.s32 %r19, 0xffffffff, %r2", "not.b32 %r19, %r2"));
    CHECK(stays("cvt.rp.f32.u32", "cvt.rp.f32.s32"));
}

TEST_CASE("what differs from a division in one place is none") {
    const std::string division = written_out_division(false);
    const auto is_other = [&](const std::string& text, const char* from, const char* to) {
        REQUIRE(text.find(from) != text.npos);
        return is_left(replaced(text, from, to));
    };
    CHECK(is_other(division, "0xffffffe", "0xfffffff"));
    CHECK(is_other(division, "0xffffffe", "0xffffffd"));
    CHECK(is_other(division, "cvt.rp.f32.u32", "cvt.rn.f32.u32"));
    CHECK(is_other(division, "cvt.rzi.ftz.u32", "cvt.rni.ftz.u32"));
    CHECK(is_other(division, "cvt.rzi.ftz.u32", "cvt.rzi.ftz.s32"));
    CHECK(is_other(division, "rcp.approx.ftz.f32", "rsqrt.approx.ftz.f32") == false); // none of these is left
    CHECK(found(replaced(division, "rcp.approx.ftz.f32", "rsqrt.approx.ftz.f32")).quotients == 0);
    CHECK(is_other(division, "mul.lo.s32 %r8, %r7, %r6", "mul.lo.s32 %r8, %r2, %r6"));
    CHECK(is_other(division, "mov.b32 %r9, 0", "mov.b32 %r9, 1"));
    CHECK(is_other(division, "{%r9, %r6}", "{%r6, %r9}"));
    CHECK(is_other(division, "mad.wide.u32", "mad.wide.s32"));
    CHECK(is_other(division, "mov.b64 {%r10, %r11}", "mov.b64 {%r11, %r10}"));
    CHECK(is_other(division, "mul.hi.u32", "mul.hi.s32"));
    CHECK(is_other(division, "sub.s32 %r13, 0, %r12", "sub.s32 %r13, 1, %r12"));
    CHECK(is_other(division, "mad.lo.s32 %r14, %r2, %r13, %r1", "mad.lo.s32 %r14, %r1, %r13, %r1"));
    CHECK(is_other(division, "setp.ge.u32 %p1", "setp.gt.u32 %p1"));
    CHECK(is_other(division, "setp.ge.u32 %p1", "setp.ge.s32 %p1"));
    CHECK(is_other(division, "setp.gt.u32 %p2", "setp.ge.u32 %p2"));
    CHECK(is_other(division, "sub.s32 %r15, %r14, %r2", "sub.s32 %r15, %r2, %r14"));
    CHECK(is_other(division, "add.s32 %r16, %r12, 1", "add.s32 %r16, %r12, 2"));
    CHECK(is_other(division, "add.s32 %r17, %r12, 1", "add.s32 %r17, %r12, 0xffffffff"));
    CHECK(is_other(division, "@%p1 mov.b32 %r12", "@!%p1 mov.b32 %r12"));
    CHECK(is_other(division, "@!%p2 mov.b32 %r12", "@%p2 mov.b32 %r12"));
    CHECK(is_other(division, "@!%p2 mov.b32 %r14", "@%p2 mov.b32 %r14"));
    // The ends: what is left is a quotient without a sign, or one that is chosen from.
    const auto is_unsigned = [&](const char* from, const char* to) {
        const std::string text = written_out_division(true);
        REQUIRE(text.find(from) != text.npos);
        const AnalysedKernel k("ld.param.u64 %rd1, [p]; ld.global.v2.u32 {%r1, %r2}, [%rd1];" + replaced(replaced(text, from, to), "%l", "%rd") +
                               "st.global.v2.u32 [%rd1+8], {%r12, %r14}; ret;");
        return std::any_of(k.graph.blocks.begin(), k.graph.blocks.end(), [](const auto& block) {
            return std::any_of(block.instructions.begin(), block.instructions.end(), [](const auto& instruction) {
                const bool divides = instruction.inst.form == ptx::FormId::div_int || instruction.inst.form == ptx::FormId::rem_int;
                return divides && instruction.inst.type() == ptx::ScalarType::u32;
            });
        });
    };
    CHECK_FALSE(is_unsigned("sub.s32 %r19", "sub.s32 %r19")); // as it is
    CHECK(is_unsigned("xor.b32 %r24, %r1, %r2", "and.b32 %r24, %r1, %r2"));
    CHECK(is_unsigned("setp.ge.s32 %p3, %r24, 0", "setp.ge.s32 %p3, %r24, 1"));
    CHECK(is_unsigned("setp.ge.s32 %p3, %r1, 0", "setp.ge.s32 %p3, %r2, 0"));
    CHECK(is_unsigned("abs.s32 %r22, %r1", "neg.s32 %r22, %r1"));
    CHECK(is_unsigned("setp.ne.s32 %p4, %r2, 0", "setp.ne.s32 %p4, %r2, 1"));
    CHECK(is_unsigned("sub.s32 %r19, 0xffffffff, %r2", "sub.s32 %r19, 0xfffffffe, %r2"));
    CHECK(is_unsigned("sub.s32 %r26, 0, %r14", "sub.s32 %r26, 1, %r14"));
}
