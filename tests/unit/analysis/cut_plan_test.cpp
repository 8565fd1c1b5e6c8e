// SPDX-License-Identifier: Apache-2.0
// Plans of parts of a kernel, between barriers, agree with the shapes of the whole.
#include "tests/unit/analysis/graph_fixture.h"


#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/waits/settle_races.h"

using namespace ptarmigan;
using namespace ptarmigan::translator;

TEST_CASE("plans: a join behind which the region ends keeps its shape") {
    // All lanes of a step come to JOIN by one of two ways, or don't. The barrier that the race wants in front of the
    // store ends the region there, and what is behind it comes earlier in the region's order than in the kernel's.
    test::AnalysedKernel k(R"(
        .shared .align 4 .b8 board[256];
        mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, board; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0; bar.sync 0;
        and.b32 %r5, %r0, 3; ld.param.u64 %rd0, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r6, [n]; setp.eq.u32 %p1, %r6, 0;
        mov.u32 %r4, 0; setp.eq.u32 %p0, %r6, 1; @%p0 bra ROUND; xor.b32 %r3, %r1, 128; ld.shared.u32 %r4, [%r3];
    ROUND:
        @%p1 bra END;
        sub.u32 %r5, %r5, 1; setp.gt.s32 %p2, %r5, 0; @%p2 bra ROUND;
        shr.u32 %r7, %r0, 5; mad.wide.u32 %rd1, %r7, 4, %rd0; ld.global.u32 %r8, [%rd1];
        setp.lt.s32 %p3, %r8, 0; mov.u32 %r9, 5; @%p3 bra JOIN;
        mov.u32 %r9, 4; setp.eq.s32 %p4, %r5, -1; @%p4 bra END;
    JOIN:
        st.shared.u32 [%r1], %r9;
    END:
        add.u32 %r4, %r4, %r9; mad.wide.u32 %rd1, %r0, 4, %rd2; st.global.u32 [%rd1], %r4;
    )",
                           {64, 1, 1});
    REQUIRE(settle_races(k.graph, k.shape, 32, Meeting::barrier).changed);
    compute_shapes(k.graph, k.shape, 32, CompileOptions{});
    const BarrierPlan plan = plan_barriers(k.graph, k.shape);
    REQUIRE(plan.splittable);
    REQUIRE(plan.regions.size() >= 3);

    for (const RegionView& view : plan.regions) CHECK_NOTHROW(plan_linearization(k.graph, view));
}
