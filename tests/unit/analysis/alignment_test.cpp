// SPDX-License-Identifier: Apache-2.0
// What of an access's alignment is proved, demanded of the launch, or left to a check.
#include "graph_fixture.h"

#include "translator/analysis/memory/alignment.h"

using namespace ptarmigan;
using translator::AlignmentDemand;

namespace {

struct Plan {
    std::vector<AlignmentDemand> demands;
    unsigned accesses = 0, checks = 0;
};

Plan plan(const std::string& body, bool parameters_aligned = true, const std::string& module_scope = "") {
    test::AnalysedKernel kernel(body + "\nret;", {32, 1, 1}, 32, module_scope);
    Plan result;
    result.demands = translator::plan_alignment(kernel.graph, parameters_aligned);
    for (const auto& block : kernel.graph.blocks)
        for (const auto& instruction : block.instructions) {
            result.accesses += translator::access_bytes(instruction.inst) > 1;
            result.checks += instruction.check_alignment != 0;
        }
    return result;
}

const std::string pointers = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;";

} // namespace

TEST_CASE("alignment: indices scaled by the access size leave the pointer's", "[alignment]") {
    Plan found = plan(pointers + "mad.lo.s32 %r3, %r1, %r2, 7; mul.wide.s32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3;"
                                 "st.global.u32 [%rd4+8], %r1; st.global.u16 [%rd4+2], %r1;");
    CHECK(found.checks == 0);
    REQUIRE(found.demands.size() == 1);
    CHECK(found.demands[0].offset == 0);
    CHECK(found.demands[0].mask == 3);
    CHECK(found.demands[0].residue == 0);
}

TEST_CASE("alignment: offsets are part of a demand, contradictions are kept", "[alignment]") {
    Plan found = plan(pointers + "st.global.u64 [%rd2+4], %rd1; st.global.u32 [%rd2], %r1; st.global.u32 [%rd2+2], %r1;");
    CHECK(found.checks == 0);
    REQUIRE(found.demands.size() == 2);
    CHECK(found.demands[0].offset == 8);
    CHECK(found.demands[0].mask == 7);
    CHECK(found.demands[0].residue == 4);
    CHECK(found.demands[1].residue == 2);
}

TEST_CASE("alignment: without the launch's word every root is checked once", "[alignment]") {
    const std::string body = pointers + "mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;"
                                        "setp.eq.u32 %p1, %r1, 3; st.global.u32 [%rd4], %r1; @%p1 bra done;"
                                        "st.global.u32 [%rd4+4], %r1; st.global.u32 [%rd1], %r1; st.global.u32 [%rd5], %r1;"
                                        "done: st.global.u32 [%rd5+4], %r2;";
    Plan found = plan(body, false);
    CHECK(found.demands.empty());
    CHECK(found.accesses == 8); // three of them load parameters
    CHECK(found.checks == 3);   // %rd5's first one does not dominate its second
    CHECK(plan(body).demands.size() == 2);
}

TEST_CASE("alignment: pointers that step through a loop keep theirs", "[alignment]") {
    auto loop = [](const std::string& step) {
        return pointers + "mov.u64 %rd3, %rd1; mov.u32 %r3, 0; loop: st.global.u32 [%rd3], %r3; add.u64 %rd3, %rd3, " + step +
               "; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra loop;";
    };
    CHECK(plan(loop("12")).checks == 0);
    CHECK(plan(loop("12")).demands.size() == 1);
    CHECK(plan(loop("6")).checks == 1);
    CHECK(plan(loop("%rd2")).checks == 1);
}

TEST_CASE("alignment: what a phi merges must agree", "[alignment]") {
    auto choice = [](const std::string& other) {
        return pointers + "mov.u64 %rd3, %rd1; setp.eq.u32 %p1, %r1, 3; @%p1 bra there; " + other +
               " there: st.global.u32 [%rd3], %r1;";
    };
    CHECK(plan(choice("add.u64 %rd3, %rd1, 16;")).checks == 0);
    CHECK(plan(choice("add.u64 %rd3, %rd1, 2;")).checks == 1);
    CHECK(plan(choice("mov.u64 %rd3, %rd2;")).checks == 1);
}

TEST_CASE("alignment: an older iteration's pointer vouches for nothing", "[alignment]") {
    // %rd5 is the pointer of the iteration before: another value than the one that is checked.
    Plan found = plan(pointers + "ld.global.u64 %rd3, [%rd1]; mov.u64 %rd5, %rd3; mov.u32 %r3, 0; loop:"
                                 "ld.global.u64 %rd4, [%rd1+8]; st.global.u32 [%rd4], %r3; st.global.u32 [%rd5], %r3;"
                                 "mov.u64 %rd5, %rd4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra loop;");
    CHECK(found.checks == 2);
}

TEST_CASE("alignment: variables are where they were put", "[alignment]") {
    const std::string scope = ".global .align 4 .b8 words[64];\n";
    CHECK(plan("mov.u64 %rd1, words; st.global.u32 [%rd1+4], 1; st.global.u32 [words+8], 1;", true, scope).checks == 0);
    CHECK(plan("st.global.u32 [words+2], 1;", true, scope).checks == 1);
    CHECK(plan("st.global.u64 [words], 1;", true, scope).checks == 1);
    const std::string shared = ".shared .align 8 .b8 tile[64]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 8, %r2;";
    CHECK(plan(shared + "st.shared.v2.u32 [%r3], {%r1, %r1};").checks == 0);
    CHECK(plan(shared + "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};").checks == 1);
}
