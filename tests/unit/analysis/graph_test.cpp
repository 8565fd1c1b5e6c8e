// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analysis/graph_fixture.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/graph/dump_graph.h"
#include "translator/analysis/plans/plan_linearization.h"

namespace ptarmigan::test {
namespace {

using namespace translator;

const char* const square =
    ".func (.param .u32 r) square(.param .u32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; mul.lo.u32 %r2, %r1, %r1;"
    " st.param.u32 [r], %r2; ret; }\n";
const char* const call_square =
    "{ .param .u32 a0; st.param.u32 [a0], %r1; .param .u32 r0; call.uni (r0), square, (a0); ld.param.u32 %r2, [r0]; }";

TEST_CASE("calls are inlined and their parameters become values") {
    AnalysedKernel k("ld.param.u32 %r1, [n];" + std::string(call_square) + "st.global.u32 [%rd1], %r2; ret;", {32, 1, 1}, 32, square);
    CHECK(k.count("call") == 0);
    CHECK(k.count("mul_lo") == 1);
    CHECK(k.count("ld") == 1); // of the kernel's parameter only
    CHECK(k.graph.locals.empty());
    CHECK(k.graph.real_calls.empty());
}

TEST_CASE("a parameter whose address is taken lives in local memory") {
    AnalysedKernel k("ld.param.u32 %r1, [n]; { .param .align 8 .b8 a0[8]; st.param.u32 [a0], %r1; st.param.u32 [a0+4], %r1;"
                     " .param .u32 r0; call.uni (r0), second, (a0); ld.param.u32 %r2, [r0]; } st.global.u32 [%rd1], %r2; ret;",
                     {32, 1, 1}, 32,
                     ".func (.param .u32 r) second(.param .align 8 .b8 a[8]) { .reg .b32 %r<3>; .reg .b64 %rd<3>; mov.u64 %rd1, a;"
                     " ld.param.u32 %r1, [%rd1+4]; st.param.u32 [r], %r1; ret; }\n");
    REQUIRE(k.graph.locals.size() == 1);
    CHECK(k.graph.locals[0].size == 8);
    CHECK(k.graph.local_bytes == 0);
    CHECK(k.graph.interleaved_bytes == 16); // nothing but ld and st sees it
}

TEST_CASE("a local array at constant places becomes registers") {
    AnalysedKernel k(".local .align 8 .b8 a[16]; ld.param.u32 %r1, [n]; mov.u64 %rd1, a; cvta.local.u64 %rd2, %rd1; add.u64 %rd3, %rd2, 8;"
                     " st.local.u32 [%rd1+4], %r1; st.u32 [%rd3], 7; ld.local.u32 %r2, [a+8]; ld.param.u64 %rd4, [p];"
                     " st.global.u32 [%rd4], %r2; ret;");
    CHECK(k.graph.locals.empty());
    CHECK(k.count("st") == 1);
}

TEST_CASE("local: pairs of words of which one is accessed alone become registers, other overlaps memory") {
    const auto locals = [](const std::string& body) {
        AnalysedKernel k(".local .align 8 .b8 a[24]; ld.param.u64 %rd4, [p]; ld.param.u32 %r1, [n];" + body + " ret;");
        return k.graph.locals.size();
    };
    CHECK(locals("st.local.u64 [a], %rd4; ld.local.u32 %r2, [a+4]; st.global.u32 [%rd4], %r2;") == 0);
    CHECK(locals("st.local.u32 [a], %r1; st.local.u32 [a+4], 7; ld.local.u64 %rd2, [a]; st.global.u64 [%rd4], %rd2;") == 0);
    CHECK(locals("st.local.u64 [a], 0x100000002; st.local.u32 [a+4], %r1; ld.local.u64 %rd2, [a]; st.global.u64 [%rd4], %rd2;") == 0);
    CHECK(locals("st.local.v2.u64 [a], {%rd4, %rd4}; ld.local.u64 %rd2, [a+4]; st.global.u64 [%rd4], %rd2;") == 0);
    CHECK(locals("st.local.u64 [a], %rd4; ld.local.u16 %r2, [a+2]; st.global.u32 [%rd4], %r2;") == 1);
    for (const char* part : {"u8", "u16"}) // in the middle of the pair, where a word would begin
        CHECK(locals("st.local.u64 [a], %rd4; ld.local." + std::string(part) + " %r2, [a+4]; st.global.u32 [%rd4], %r2;") == 1);
    CHECK(locals("st.local.u64 [a], %rd4; st.local.u32 [a], 7; ld.local.u8 %r2, [a+4]; st.global.u32 [%rd4], %r2;") == 1);
    CHECK(locals("st.local.u8 [a+4], %r1; st.local.u64 [a], %rd4; ld.local.u32 %r2, [a]; st.global.u32 [%rd4], %r2;") == 1);
    CHECK(locals("st.local.u32 [a], %r1; ld.local.u32 %r2, [a+2]; st.global.u32 [%rd4], %r2;") == 1);
}

TEST_CASE("local memory is interleaved by lane unless something else sees its address") {
    const std::string loop = ".local .align 4 .b8 a[64]; ld.param.u64 %rd4, [p]; mov.u64 %rd1, a; mov.u32 %r1, 0;"
                             " L: st.local.u32 [%rd1], %r1; add.u64 %rd1, %rd1, 4; add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 16; @%p1 bra L;";
    AnalysedKernel plain(loop + "ld.local.u32 %r2, [a+4]; st.global.u32 [%rd4], %r2; ret;");
    REQUIRE(plain.graph.locals.size() == 1);
    CHECK(plain.graph.locals[0].is_interleaved);
    CHECK(plain.graph.interleaved_bytes == 64);
    for (const char* use : {"st.global.u64 [%rd4], %rd1;", "and.b64 %rd2, %rd1, 8; ld.local.u32 %r2, [%rd2];", "cvt.u32.u64 %r2, %rd1;",
                            "setp.lt.u64 %p2, %rd1, %rd4; @%p2 st.global.u32 [%rd4], 1;", "atom.add.u32 %r2, [%rd1], 1;",
                            "selp.b64 %rd2, %rd1, %rd4, %p1; ld.u32 %r2, [%rd2]; st.global.u32 [%rd4], %r2;"}) {
        INFO(use);
        AnalysedKernel seen(loop + use + " ret;");
        REQUIRE(seen.graph.locals.size() == 1);
        CHECK(!seen.graph.locals[0].is_interleaved);
    }
}

TEST_CASE("recursion stays a real call") {
    AnalysedKernel k("ld.param.u32 %r1, [n]; { .param .u32 a0; st.param.u32 [a0], %r1; .param .u32 r0; call.uni (r0), f, (a0);"
                     " ld.param.u32 %r2, [r0]; } st.global.u32 [%rd1], %r2; ret;", {32, 1, 1}, 32,
                     ".func (.param .u32 r) f(.param .u32 a) { .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, [a]; setp.eq.u32 %p1, %r1, 0;"
                     " @%p1 bra E; sub.u32 %r2, %r1, 1; { .param .u32 a0; st.param.u32 [a0], %r2; .param .u32 r0; call.uni (r0), f, (a0);"
                     " ld.param.u32 %r3, [r0]; } add.u32 %r1, %r1, %r3; E: st.param.u32 [r], %r1; ret; }\n");
    REQUIRE(k.graph.real_calls.size() == 1);
    CHECK(k.count("call") == 1); // f is inlined once; what it calls is itself
}

TEST_CASE("a call through a pointer is a choice among its targets, but for those that call themselves") {
    const std::string call = "ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [%rd1]; P: .callprototype (.reg .b32 _) _ (.reg .b32 _);"
                             " call (%r2), %rd2, (%r1), P; st.global.u32 [%rd1], %r2; ret;";
    const std::string two = ".func (.reg .b32 r) f(.reg .b32 a) { add.u32 r, a, 1; }\n.func (.reg .b32 r) g(.reg .b32 a) { mul.lo.u32 r, a, a; }\n";
    AnalysedKernel chosen(call, {32, 1, 1}, 32, two + ".func (.reg .b32 r) other(.reg .b64 a) { cvt.u32.u64 r, a; }\n");
    CHECK(chosen.count("call") == 0);
    CHECK(chosen.count("setp_unsigned") == 2);
    CHECK(chosen.count("trap") == 1);
    CHECK_FALSE(chosen.graph.has_indirect_call);
    CHECK(chosen.graph.real_calls.empty());
    AnalysedKernel recursive(call, {32, 1, 1}, 32,
                             two + ".func (.reg .b32 r) h(.reg .b32 a) { .reg .pred p; .reg .b32 m; setp.eq.u32 p, a, 0; mov.u32 r, 0;"
                                   " @p ret; sub.u32 m, a, 1; call (r), h, (m); ret; }\n");
    CHECK(recursive.count("setp_unsigned") >= 3);
    CHECK(recursive.graph.real_calls.size() == 1); // in h, which is inlined once
    std::string many;
    for (unsigned i = 0; i < 9; ++i) many += ".func (.reg .b32 r) f" + std::to_string(i) + "(.reg .b32 a) { add.u32 r, a, 1; }\n";
    AnalysedKernel kept(call, {32, 1, 1}, 32, many);
    CHECK(kept.count("call") == 1);
    CHECK(kept.graph.has_indirect_call);
}

TEST_CASE("the block's size is a constant, and branches on it are decided") {
    AnalysedKernel k("mov.u32 %r1, %ntid.x; setp.gt.u32 %p1, %r1, 64; @%p1 bra BIG; st.global.u32 [%rd1], %r1; BIG: ret;", {128, 1, 1});
    CHECK(k.count("setp_unsigned") == 0);
    CHECK(k.count("st") == 0);
}

TEST_CASE("comparisons of thread indices with the block's size are decided") {
    const char* body = "mov.u32 %r1, %tid.x; setp.gt.s32 %p1, %r1, 127; @%p1 bra OUT; st.global.u32 [%rd1], %r1; OUT: ret;";
    CHECK(AnalysedKernel(body, {128, 1, 1}).count("setp_signed") == 0);
    CHECK(AnalysedKernel(body, {129, 1, 1}).count("setp_signed") == 1);
    const char* negative = "mov.u32 %r1, %tid.x; sub.s32 %r2, %r1, 5; setp.lt.u32 %p1, %r2, 200; @%p1 bra OUT; st.global.u32 [%rd1], %r1; OUT: ret;";
    CHECK(AnalysedKernel(negative, {128, 1, 1}).count("setp_unsigned") == 1); // the first five wrap around
}

TEST_CASE("dead code goes, stores and barriers stay") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; ld.global.u32 %r3, [%rd1]; bar.sync 0; ret;");
    CHECK(k.count("add_int") == 0);
    CHECK(k.count("ld") == 0);
    CHECK(k.count("bar_sync") == 1);
}

TEST_CASE("strong loads stay without a reader: they can fault") {
    AnalysedKernel kernel("ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ld.volatile.global.u32 %r2, [%rd1+4];"
                          "ld.relaxed.gpu.global.u32 %r3, [%rd1+8]; ld.acquire.gpu.global.u32 %r4, [%rd1+12]; ret;");
    CHECK(kernel.count("ld") == 1); // the parameter
    CHECK(kernel.count("ld_volatile") == 1);
    CHECK(kernel.count("ld_relaxed") == 1);
    CHECK(kernel.count("ld_acquire") == 1);
}

TEST_CASE("shared variables have places, unsized ones together behind the rest") {
    AnalysedKernel k("mov.u32 %r1, a; mov.u32 %r2, b; mov.u32 %r3, d1; mov.u32 %r4, d2; st.shared.u32 [%r1], %r2; st.shared.u32 [%r3], %r4; ret;",
                     {32, 1, 1}, 32,
                     ".shared .align 4 .b8 a[12];\n.shared .align 16 .b8 b[20];\n.extern .shared .align 16 .b8 d1[];\n.extern .shared .align 4 .b8 d2[];\n");
    auto offset = [&](const std::string& name) {
        for (const SharedVariable& v : k.graph.shared)
            if (v.name == name) return v.offset;
        return 0xffffu;
    };
    CHECK(offset("a") == 0);
    CHECK(offset("b") == 16);
    CHECK(offset("d1") == 48);
    CHECK(offset("d2") == 48);
}

TEST_CASE("the plan of a divergent conditional") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; mov.u32 %r2, 1; @%p1 bra A; st.global.u32 [%rd1], %r1; mov.u32 %r2, 2; A:"
                     " st.global.u32 [%rd1], %r2; ret;");
    LinearPlan plan = plan_linearization(k.graph, whole_graph(k.graph));
    INFO(dump_graph(k.graph, true) + dump_plan(k.graph, plan));
    BlockId join = no_block;
    for (BlockId id : plan.order)
        if (!k.graph.blocks[id].phis.empty()) join = id;
    REQUIRE(join != no_block);
    CHECK(plan.blocks[0].divergent_branch);
    CHECK(plan.blocks[0].jump_to[0] == plan.blocks[0].jump_to[1]);
    CHECK(plan.blocks[join].mask.kind == MaskSource::Kind::same_as);
    CHECK(plan.blocks[join].mask.block == 0);
    CHECK(plan.blocks[join].blend[0]);
    CHECK_FALSE(plan.blocks[join].needs_skip_check);
}

bool splits(const std::string& body, std::array<std::uint32_t, 3> ntid = {64, 1, 1}) {
    AnalysedKernel k(body, ntid);
    return plan_barriers(k.graph, k.shape).splittable;
}

TEST_CASE("which barriers split a kernel") {
    CHECK(splits("bar.sync 0; ret;"));
    CHECK(splits("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 40; @%p1 ret; bar.sync 0; ret;")); // early return
    CHECK(splits("mov.u32 %r1, 0; L: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L; ret;"));
    CHECK_FALSE(splits("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 40; @%p1 bra A; bar.sync 0; A: bar.sync 0; ret;"));
    CHECK_FALSE(splits("mov.u32 %r1, %tid.x; L: bar.sync 0; sub.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0; @%p1 bra L; bar.sync 0; ret;"));
    CHECK_FALSE(splits("bar.sync 1; ret;"));
    CHECK_FALSE(splits("bar.sync 0, 32; ret;"));
    CHECK(splits("bar.sync 0, 64; ret;"));
}

} // namespace
} // namespace ptarmigan::test
