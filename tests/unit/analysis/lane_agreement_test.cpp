// SPDX-License-Identifier: Apache-2.0
// Code in versions for what lanes nearly always agree on, and what makes it possible.
#include "graph_fixture.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/thread_branches.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/loops/plan_prefetch.h"
#include "translator/analysis/shapes/lane_agreement.h"

#include <utility>

using namespace ptarmigan;

namespace {

/// Stores by addresses whose lanes are known distances apart, and others.
std::pair<unsigned, unsigned> stores(const translator::FunctionGraph& graph) {
    std::pair<unsigned, unsigned> result;
    for (const auto& block : graph.blocks)
        for (const auto& instruction : block.instructions)
            if (instruction.inst.form == ptx::FormId::st)
                ++(graph.values[instruction.inst[ptx::Role::a].index].shape.is_affine() ? result.first : result.second);
    return result;
}

/// %r4 = the thread's number in the grid, %r1 = n.
const std::string numbers = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; cvt.u32.u64 %r2, %rd2;"
                            "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r4, %r3, 32, %r4;";
/// p[%r6 * 4096 + (%r4 - %r6 * 40) * %r2]
const std::string store = "mul.lo.u32 %r7, %r6, 40; sub.u32 %r7, %r4, %r7; mul.lo.u32 %r8, %r6, 4096; mad.lo.u32 %r8, %r7, %r2, %r8;"
                          "cvt.u64.u32 %rd3, %r8; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd3], %r4;";

std::pair<unsigned, unsigned> stores_in_versions(const std::string& body) {
    test::AnalysedKernel kernel(numbers + body + "ret;");
    const bool made = translator::version_kernel(kernel.graph) != 0;
    translator::compute_shapes(kernel.graph, kernel.shape, 32, translator::CompileOptions{});
    translator::verify_graph(kernel.graph);
    CHECK(made == (stores(kernel.graph).first + stores(kernel.graph).second > 1));
    return stores(kernel.graph);
}

} // namespace

TEST_CASE("lane agreement: quotients by reciprocals that the launch knows", "[lane_agreement]") {
    CHECK(stores_in_versions("mul.hi.u32 %r6, %r4, %r1; add.u32 %r6, %r6, %r4; shr.u32 %r6, %r6, 5;" + store) == std::pair(1u, 1u));
    CHECK(stores_in_versions("mul.hi.u32 %r6, %r1, %r4; add.u32 %r6, %r4, %r6; shr.u32 %r6, %r6, %r2;" + store) == std::pair(1u, 1u));
    // as ptxas computes it
    CHECK(stores_in_versions("mov.u32 %r5, 0; mov.b64 %rd5, {%r5, %r4}; mad.wide.u32 %rd5, %r4, %r1, %rd5; mov.b64 {%r5, %r6}, %rd5; shr.u32 %r6, %r6, %r2;" +
                             store) == std::pair(1u, 1u));
    // signed shifts, other sums and products of two lines are something else
    CHECK(stores_in_versions("mul.hi.u32 %r6, %r4, %r1; add.u32 %r6, %r6, %r4; shr.s32 %r6, %r6, 5;" + store) == std::pair(0u, 1u));
    CHECK(stores_in_versions("mul.hi.u32 %r6, %r4, %r1; add.u32 %r6, %r6, %r1; shr.u32 %r6, %r6, 5;" + store) == std::pair(0u, 1u));
    CHECK(stores_in_versions("mul.hi.u32 %r6, %r4, %r4; add.u32 %r6, %r6, %r4; shr.u32 %r6, %r6, 5;" + store) == std::pair(0u, 1u));
}

namespace {

/// Whether a CTA is asked as a whole before its steps are: by tests that read no thread's number.
bool asks_ctas(const std::string& body, std::array<std::uint32_t, 3> ntid) {
    test::AnalysedKernel kernel(numbers + body + "ret;", ntid);
    const auto spans = [&] {
        const translator::BlockShape& shape = kernel.shape;
        translator::compute_shapes(kernel.graph, shape, shape.ntid[0] * shape.ntid[1], translator::CompileOptions{});
        translator::CtaSpans found = translator::cta_spans(kernel.graph);
        translator::compute_shapes(kernel.graph, shape, 32, translator::CompileOptions{});
        return found;
    };
    CHECK(translator::version_kernel(kernel.graph, spans) != 0);
    translator::compute_shapes(kernel.graph, kernel.shape, 32, translator::CompileOptions{});
    translator::verify_graph(kernel.graph);
    REQUIRE(kernel.graph.blocks[0].terminator.kind == translator::Terminator::Kind::branch);
    for (const auto& instruction : kernel.graph.blocks[0].instructions)
        for (const ptx::Operand& operand : instruction.inst.operands)
            if (operand.kind == ptx::Operand::Kind::special && ptx::SpecialRegister(operand.index) != ptx::SpecialRegister::ctaid) return false;
    return true;
}

} // namespace

TEST_CASE("lane agreement: CTAs are asked before their steps", "[lane_agreement]") {
    const std::string divide = "div.u32 %r6, %r4, %r1;" + store, bound = "setp.ge.s32 %p1, %r4, %r1; @%p1 bra A;" + store + "A:";
    for (const std::string& body : {divide, "mov.u32 %r6, 0;" + bound}) {
        CHECK(asks_ctas(body, {128, 1, 1}));
        CHECK(asks_ctas(body, {100, 1, 1}));
    }
    // Known distances apart in each step, but not in the CTA: the first step is as the others are.
    CHECK(asks_ctas("mov.u32 %r5, %tid.y; mad.lo.u32 %r4, %r5, 1000, %r4;" + divide, {32, 4, 1}));
    // Of what the warps have of their own nothing is asked of the CTA.
    CHECK_FALSE(asks_ctas("mov.u32 %r5, %laneid; add.u32 %r4, %r5, %r3;" + divide, {128, 1, 1}));
    CHECK_FALSE(asks_ctas("mov.u32 %r5, %warpid; add.u32 %r4, %r4, %r5;" + divide, {128, 1, 1}));
    CHECK_FALSE(asks_ctas("mov.u32 %r5, %tid.x; shr.u32 %r5, %r5, 6; add.u32 %r9, %r1, %r5; div.u32 %r6, %r4, %r9;" + store, {128, 1, 1}));
}

TEST_CASE("lane agreement: a bound that has been asked for already", "[lane_agreement]") {
    // Two elements a thread, the second behind the first in the text.
    const std::string element = "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd3], %r4; add.s32 %r4, %r4, 32;";
    test::AnalysedKernel kernel(numbers + "setp.ge.s32 %p1, %r4, %r1; @%p1 bra A;" + element + "A: setp.ge.s32 %p2, %r4, %r1; @%p2 bra B;" + element +
                                "B: ret;");
    CHECK(translator::thread_branches(kernel.graph));
    translator::verify_graph(kernel.graph);
    translator::compute_shapes(kernel.graph, kernel.shape, 32, translator::CompileOptions{});
    CHECK(stores(kernel.graph) == std::pair(2u, 0u));
    CHECK_FALSE(translator::thread_branches(kernel.graph));
}

TEST_CASE("lane agreement: bounds that only look alike", "[lane_agreement]") {
    const auto changes = [](const std::string& second) {
        test::AnalysedKernel kernel(numbers + "setp.ge.s32 %p1, %r4, %r1; @%p1 bra A; st.global.u32 [%rd1], %r4; add.s32 %r4, %r4, 32; A:" + second +
                                    "@%p2 bra B; st.global.u32 [%rd1+4], %r4; B: st.global.u32 [%rd1+8], %r3; ret;");
        return translator::thread_branches(kernel.graph);
    };
    CHECK(changes("setp.ge.s32 %p2, %r4, %r1;"));
    CHECK_FALSE(changes("setp.ge.u32 %p2, %r4, %r1;"));
    CHECK_FALSE(changes("setp.gt.s32 %p2, %r4, %r1;"));
    CHECK_FALSE(changes("setp.ge.s32 %p2, %r4, %r2;"));
    CHECK_FALSE(changes("add.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, %r1;"));
    CHECK_FALSE(changes("st.global.u32 [%rd1+12], %r4; setp.ge.s32 %p2, %r4, %r1;"));
}

TEST_CASE("lane agreement: a value of one way that is used behind both", "[lane_agreement]") {
    // The first store's address is of one number of the lanes then; %r9 is what was read, or 5.
    test::AnalysedKernel kernel(numbers + "mov.u32 %r9, 5; setp.ge.s32 %p1, %r4, %r1; @%p1 bra A; ld.global.u32 %r9, [%rd1]; add.s32 %r4, %r4, 32;"
                                          "A: setp.ge.s32 %p2, %r4, %r1; @%p2 bra B; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3;"
                                          "st.global.u32 [%rd3], %r4; B: st.global.u32 [%rd1+8], %r9; st.global.u32 [%rd1+12], %r4; ret;");
    CHECK(stores(kernel.graph) == std::pair(0u, 3u));
    CHECK(translator::thread_branches(kernel.graph));
    translator::verify_graph(kernel.graph);
    translator::compute_shapes(kernel.graph, kernel.shape, 32, translator::CompileOptions{});
    CHECK(stores(kernel.graph) == std::pair(1u, 2u));
    CHECK_FALSE(translator::thread_branches(kernel.graph));
}

TEST_CASE("lane agreement: what the question itself computes is not known behind both ways", "[lane_agreement]") {
    test::AnalysedKernel kernel(numbers + "setp.ge.s32 %p1, %r4, %r1; @%p1 bra A; st.global.u32 [%rd1], %r4; add.s32 %r4, %r4, 32;"
                                          "A: setp.ge.s32 %p2, %r4, %r1; @%p2 bra B; st.global.u32 [%rd1+4], %r4; B: selp.u32 %r9, 1, 2, %p2; st.global.u32 [%rd1+8], %r9; ret;");
    CHECK_FALSE(translator::thread_branches(kernel.graph));
    translator::verify_graph(kernel.graph);
}

TEST_CASE("lane agreement: a stride of none on one of two ways", "[lane_agreement]") {
    test::AnalysedKernel kernel(numbers + "mul.lo.u32 %r8, %r4, %r2; setp.eq.u32 %p1, %r1, 0; @!%p1 bra A; mov.u32 %r8, 0; A: cvt.u64.u32 %rd3, %r8;"
                                          "add.s64 %rd3, %rd1, %rd3; ld.global.u32 %r9, [%rd3]; st.global.u32 [%rd3], %r9; ret;");
    CHECK(stores(kernel.graph) == std::pair(1u, 0u));
    translator::plan_prefetch(kernel.graph, kernel.shape, 32);
    unsigned ahead = 0;
    for (const auto& block : kernel.graph.blocks)
        for (const auto& instruction : block.instructions) ahead += instruction.neighbours_ahead;
    CHECK(ahead == 4096);
}

TEST_CASE("needed lanes: a choice below many branches", "[lane_agreement]") {
    // %r9 is looked at where %p1 holds; %r10, which varies, is what it would be elsewhere.
    std::string body = numbers + "ld.global.u32 %r10, [%rd1]; add.u32 %r10, %r10, %r4; mov.u32 %r11, 0;";
    for (int i = 0; i < 20; ++i)
        body += "setp.eq.u32 %p2, %r1, " + std::to_string(i + 100) + "; @%p2 bra E; st.global.u32 [%rd1+" + std::to_string(8 + 4 * i) + "], %r2;";
    body += "setp.ne.u32 %p1, %r2, 7; selp.b32 %r9, %r1, %r10, %p1; add.u32 %r12, %r9, 3; @%p1 mov.u32 %r11, %r12; E: st.global.u32 [%rd1+4], %r11; ret;";
    test::AnalysedKernel kernel(body);
    CHECK(kernel.shape_of("%r12").is_uniform());
}
