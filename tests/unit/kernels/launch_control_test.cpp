// SPDX-License-Identifier: Apache-2.0
// clusterlaunchcontrol (manual 9.7.13.17, 9.7.13.18): CTAs that take over those that have not started. For compute capability 10.0
// and newer, so hidden: ctest runs it with PTARMIGAN_CC.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

/// Each cluster counts its CTAs' numbers, then those of the clusters that it cancels, until there is none.
std::string text(const std::string& directives, const std::string& cancel, unsigned cluster) {
    const std::string sync = cluster > 1 ? "barrier.cluster.arrive; barrier.cluster.wait;" : "bar.sync 0;";
    return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 done, .param .u64 taken))" + directives + R"(
{
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 bar;
    .reg .b32 %r<40>; .reg .b64 %l<20>; .reg .pred %p<8>; .reg .b128 %q<2>;
    ld.param.u64 %l1, [done]; ld.param.u64 %l2, [taken];
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z; mov.u32 %r5, %cluster_ctarank;
    mov.u32 %r6, %nctaid.x; mov.u32 %r7, %nctaid.y; mov.u32 %r20, 0;
    )" + sync + R"(
AGAIN:
    mad.lo.u32 %r8, %r4, %r7, %r3; mad.lo.u32 %r8, %r8, %r6, %r2;
    mul.wide.u32 %l3, %r8, 4; add.u64 %l3, %l3, %l1;
    @%p1 red.global.add.u32 [%l3], 1;
    @%p1 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 16;
    )" + sync + R"(
    setp.eq.u32 %p2, %r5, 0; and.pred %p2, %p2, %p1;
    @%p2 )" + cancel + R"( [response], [bar];
    and.b32 %r21, %r20, 1; add.u32 %r20, %r20, 1;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], %r21;
    @!%p3 bra WAIT;
    ld.shared.b128 %q1, [response];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q1;
    @!%p4 bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r2, %r3, %r4, _}, %q1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r9, %q1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r10, %q1;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r11, %q1;
    sub.u32 %r9, %r9, %r2; sub.u32 %r10, %r10, %r3; sub.u32 %r11, %r11, %r4; or.b32 %r9, %r9, %r10; or.b32 %r9, %r9, %r11;
    setp.ne.u32 %p5, %r9, 0;
    @%p5 trap;
    @%p1 red.global.add.u32 [%l2], 1;
    add.u32 %r2, %r2, %r5; // clusters extend in x
    )" + sync + R"(
    bra AGAIN;
DONE:
    )" + sync + R"(
    ret;
}
)";
}

/// Every CTA must have been counted once; returns how many were taken over.
unsigned run_persistent(const std::string& ptx, Extents grid, unsigned ctas) {
    Array<std::uint32_t> done(ctas), taken(1);
    Module module(ptx, "launch_control.ptx");
    module.launch("k", grid, {64}, {done.address(), taken.address()});
    synchronize();
    CHECK(done.values() == std::vector<std::uint32_t>(ctas, 1));
    return taken.values()[0];
}

} // namespace

TEST_CASE("launch control: every CTA runs once, by itself or taken over", "[.][sm_100]") {
    const std::string cancel = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128";
    unsigned taken = 0;
    for (int round = 0; round < 5; ++round) taken += run_persistent(text("", cancel, 1), {40, 5, 2}, 400);
    CHECK(taken > 0);
    // A single CTA finds nobody.
    CHECK(run_persistent(text("", cancel, 1), {1}, 1) == 0);
}

TEST_CASE("launch control: clusters are taken over as a whole", "[.][sm_100]") {
    const std::string cancel =
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128";
    unsigned taken = 0;
    for (int round = 0; round < 5; ++round) taken += run_persistent(text(" .reqnctapercluster 2,1,1", cancel, 2), {64, 3}, 192);
    CHECK(taken > 0);
    CHECK(taken % 2 == 0);
}

TEST_CASE("launch control: blocks that exit early, and threads that ask for themselves", "[.][sm_100]") {
    // Of 500 blocks every third exits at once. In the others threads 0, 33 and 66 each take over blocks until there is none, and count them.
    constexpr unsigned blocks = 500;
    Array<std::uint32_t> done(blocks);
    run(R"(
        mul.wide.u32 %l2, %r61, 4; add.u64 %l2, %l2, %l60; rem.u32 %r1, %r61, 3; rem.u32 %r2, %r60, 33; setp.eq.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r2, 0;
        setp.eq.u32 %p0, %r60, 0;
        @%p0 red.global.add.u32 [%l2], 1;
        @%p1 exit;
        @%p2 exit;
        div.u32 %r3, %r60, 33; shl.b32 %r4, %r3, 4; mov.u32 %r5, responses; add.u32 %r5, %r5, %r4; shl.b32 %r4, %r3, 3; mov.u32 %r6, bars; add.u32 %r6, %r6, %r4;
        mbarrier.init.shared.b64 [%r6], 1; fence.proxy.async.shared::cta; mov.u32 %r7, 0;
    NEXT:
        mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 16;
        clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r5], [%r6];
    WAIT:
        mbarrier.try_wait.parity.shared.b64 %p3, [%r6], %r7;
        @!%p3 bra WAIT;
        xor.b32 %r7, %r7, 1;
        ld.shared.b128 %q1, [%r5];
        fence.proxy.async.shared::cta;
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q1;
        @!%p4 exit;
        clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r8, %q1;
        mul.wide.u32 %l3, %r8, 4; add.u64 %l3, %l3, %l60; red.global.add.u32 [%l3], 1;
        bra NEXT;
    )", {blocks}, {96}, {done.address()}, ".shared .align 16 .b8 responses[64]; .shared .align 8 .b8 bars[32];\n", 0, {"sm_100"});
    CHECK(done.values() == std::vector<std::uint32_t>(blocks, 1));
}
