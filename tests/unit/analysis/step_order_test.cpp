// SPDX-License-Identifier: Apache-2.0
// Which barriers the order of the steps makes needless, and in which order the steps then run.
#include "graph_fixture.h"

#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/waits/single_step.h"
#include "translator/analysis/waits/step_order.h"

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

constexpr std::array<std::uint32_t, 3> line = {128, 1, 1};

struct Result {
    std::size_t left = 0, falling = 0;
    bool operator==(const Result&) const = default;
};

/// Barriers that stay behind the first one, and regions whose steps fall. %r1 is %tid.x, %r2 its word in `words`.
Result order(const std::string& body, unsigned width = 32) {
    test::AnalysedKernel kernel(R"(
        mov.u32 %r1, %tid.x;
        mov.u32 %r10, words;
        mad.lo.u32 %r2, %r1, 4, %r10;
        ld.param.u32 %r6, [n];
        ld.param.u64 %rd1, [p];
        st.shared.u32 [%r2], %r1;
        fence.acq_rel.cta;
        bar.sync 0;
    )" + body + "st.global.u32 [%rd1], %r7; ret;",
                                line, width, ".shared .align 4 .b8 words[8192];\n");
    const BarrierPlan plan = plan_barriers(kernel.graph, kernel.shape);
    REQUIRE(plan.splittable);
    const StepOrder order = drop_ordered_barriers(kernel.graph, kernel.shape, width, plan);
    const auto left = std::count_if(kernel.graph.blocks.begin(), kernel.graph.blocks.end(),
                                    [](const Block& block) { return block.ends_with_barrier; });
    return {std::size_t(left) - 1, order.falling.size()};
}

const std::string end = "bar.sync 0; fence.acq_rel.cta;\n"; // stays

} // namespace

TEST_CASE("step order: reads below what is written: the last step first", "[order]") {
    const std::string scan = "setp.lt.u32 %p1, %r1, 8; mov.u32 %r7, 0; @%p1 bra none; ld.shared.u32 %r7, [%r2 + -32]; none:"
                             "bar.sync 0; ld.shared.u32 %r8, [%r2]; add.u32 %r8, %r8, %r7; st.shared.u32 [%r2], %r8;" + end;
    CHECK(order(scan) == Result{1, 1});
    CHECK(order(scan, 16) == Result{1, 1});
    CHECK(order(scan, 1) == Result{1, 1});
}

TEST_CASE("step order: reads above what is written: the first step first", "[order]") {
    CHECK(order("ld.shared.u32 %r7, [%r2 + 4]; bar.sync 0; st.shared.u32 [%r2], %r7;" + end) == Result{1, 0});
    CHECK(order("ld.shared.u32 %r7, [%r2]; bar.sync 0; st.shared.u32 [%r2], %r6;" + end) == Result{1, 0});
    // Word n and those behind it: what all have in common does not matter.
    const std::string above = "mad.lo.u32 %r5, %r6, 4, %r2;";
    CHECK(order(above + "ld.shared.u32 %r7, [%r5 + 128]; bar.sync 0; st.shared.u32 [%r5], %r7;" + end) == Result{1, 0});
}

TEST_CASE("step order: barriers stay where steps would meet, or nobody knows", "[order]") {
    // Both ways at once.
    CHECK(order("ld.shared.u32 %r7, [%r2 + 4]; ld.shared.u32 %r8, [%r2 + 128 + -4]; add.u32 %r7, %r7, %r8;"
                "bar.sync 0; st.shared.u32 [%r2 + 64], %r7;" + end) == Result{2, 0});
    CHECK(order("ld.shared.u32 %r7, [words + 256]; bar.sync 0; st.shared.u32 [%r2], %r7;" + end) == Result{2, 0});
    // An address that is not known, in one of the two, or that another number has moved.
    CHECK(order("ld.shared.u32 %r7, [%r2]; shl.b32 %r7, %r7, 2; add.u32 %r5, %r7, %r10; bar.sync 0;"
                "st.shared.u32 [%r5], %r7;" + end) == Result{2, 0});
    CHECK(order("mad.lo.u32 %r5, %r6, 4, %r2; ld.shared.u32 %r7, [%r5]; bar.sync 0; st.shared.u32 [%r2], %r7;" + end) ==
          Result{2, 0});
    // What is written is read.
    CHECK(order("st.shared.u32 [%r2], %r6; bar.sync 0; ld.shared.u32 %r7, [%r2 + -4];" + end) == Result{2, 0});
    // Global memory, volatile accesses, atomics, and a loop.
    CHECK(order("ld.global.u32 %r7, [%rd1]; bar.sync 0; st.global.u32 [%rd1], %r6;" + end) == Result{2, 0});
    CHECK(order("ld.volatile.shared.u32 %r7, [%r2]; bar.sync 0; st.shared.u32 [%r2], %r6;" + end) == Result{2, 0});
    CHECK(order("ld.shared.u32 %r7, [%r2]; bar.sync 0; atom.shared.add.u32 %r8, [%r2], 1;" + end) == Result{2, 0});
    CHECK(order("mov.u32 %r7, 0; round: ld.shared.u32 %r8, [%r2]; add.u32 %r7, %r7, %r8; setp.lt.u32 %p1, %r7, %r6;"
                "@%p1 bra round; bar.sync 0; st.shared.u32 [%r2], %r6;" + end) == Result{2, 0});
}

TEST_CASE("step order: steps don't fall where two of them write one word, or global memory is read", "[order]") {
    const std::string scan = "ld.shared.u32 %r7, [%r2 + -4]; bar.sync 0; st.shared.u32 [%r2], %r7;";
    CHECK(order(scan + end) == Result{1, 1});
    CHECK(order(scan + "st.shared.u32 [words + 4096], %r7;" + end) == Result{2, 0});
    CHECK(order("ld.global.u32 %r8, [%rd1]; ld.shared.u32 %r7, [%r2 + -4]; bar.sync 0; add.u32 %r7, %r7, %r8;"
                "st.shared.u32 [%r2], %r7;" + end) == Result{2, 0});
}

TEST_CASE("step order: a scan's rounds in a row keep one barrier each", "[order]") {
    std::string rounds;
    for (const char* distance : {"-4", "-8", "-16", "-32"})
        rounds += std::string("ld.shared.u32 %r7, [%r2 + ") + distance + "]; bar.sync 0; ld.shared.u32 %r8, [%r2];" +
                  "add.u32 %r8, %r8, %r7; st.shared.u32 [%r2], %r8; bar.sync 0;\n";
    CHECK(order(rounds + "fence.acq_rel.cta;\n") == Result{4, 4});
}

TEST_CASE("step order: a barrier waits for threads that exit without it", "[order]") {
    const auto exits = [](const std::string& arm) {
        return "setp.ge.u32 %p1, %r1, 64; @%p1 bra out; ld.shared.u32 %r7, [%r2]; bar.sync 0; st.shared.u32 [%r2], %r6;" + end +
               "bra done; out: " + arm + " ret; done:";
    };
    CHECK(order(exits("")) == Result{1, 0});
    CHECK(order(exits("st.global.u32 [%rd1], %r6;")) == Result{1, 0});
    CHECK(order(exits("ld.shared.u32 %r8, [%r2 + -256]; st.global.u32 [%rd1], %r8;")) == Result{2, 0});
    CHECK(order(exits("ld.u32 %r8, [%rd1]; st.global.u32 [%rd1], %r8;")) == Result{2, 0});
}

namespace {

/// Barriers that are left in a CTA of 32 threads in one step.
std::size_t left_of_single_step(const std::string& body) {
    test::AnalysedKernel kernel("mov.u32 %r1, %tid.x; mov.u32 %r2, words; mad.lo.u32 %r2, %r1, 4, %r2; ld.param.u64 %rd1, [p];" + body +
                                    "ld.shared.u32 %r7, [%r2 + 4]; st.global.u32 [%rd1], %r7; ret;",
                                {32, 1, 1}, 32, ".shared .align 4 .b8 words[8192];\n");
    const BarrierPlan plan = plan_barriers(kernel.graph, kernel.shape);
    REQUIRE(plan.splittable);
    drop_barriers_of_single_step(kernel.graph, plan);
    return std::size_t(std::count_if(kernel.graph.blocks.begin(), kernel.graph.blocks.end(),
                                     [](const Block& block) { return block.ends_with_barrier; }));
}

} // namespace

TEST_CASE("single step: no barrier is needed, but where lanes that leave have something to do", "[order]") {
    const std::string store = "st.shared.u32 [%r2], %r1; bar.sync 0;";
    CHECK(left_of_single_step(store) == 0);
    CHECK(left_of_single_step(store + "ld.shared.u32 %r3, [%r2 + 8]; bar.sync 0; st.shared.u32 [%r2 + 4], %r3;") == 0);
    CHECK(left_of_single_step("setp.gt.u32 %p1, %r1, 9; @%p1 ret;" + store) == 0);
    CHECK(left_of_single_step("setp.gt.u32 %p1, %r1, 9; @!%p1 bra stay; st.global.u32 [%rd1 + 4], %r1; ret; stay:" + store) == 1);
}
