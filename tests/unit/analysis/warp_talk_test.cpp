// SPDX-License-Identifier: Apache-2.0
// Which kernels count on their warp being one step, so that quick code keeps its width.
#include "graph_fixture.h"

#include "translator/analysis/waits/warp_talk.h"

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

/// %r1 is %tid.x, %r2 its word in `words`, %r6 is n.
bool talks(const std::string& body) {
    test::AnalysedKernel kernel(R"(
        mov.u32 %r1, %tid.x;
        mov.u32 %r10, words;
        mad.lo.u32 %r2, %r1, 4, %r10;
        ld.param.u32 %r6, [n];
    )" + body + "ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r7; ret;",
                                {128, 1, 1}, 1, ".shared .align 4 .b8 words[8192];\n.shared .align 4 .b8 others[8192];\n");
    return talks_without_meeting(kernel.graph, kernel.shape);
}

} // namespace

TEST_CASE("warp talk: another thread's word with nothing between", "[races]") {
    CHECK(talks("st.shared.u32 [%r2], %r6; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK(talks("st.volatile.shared.u32 [%r2], %r6; ld.volatile.shared.u32 %r7, [%r2 + 64];"));
    CHECK(talks("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [words], %r6; ld.shared.u32 %r7, [words];"));
    // The last round's store, this round's load.
    CHECK(talks(R"(
        mov.u32 %r7, 0;
    round:
        ld.volatile.shared.u32 %r8, [%r2 + 4];
        st.volatile.shared.u32 [%r2], %r8;
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, %r6;
        @%p1 bra round;
    )"));
}

TEST_CASE("warp talk: not where lanes wait for each other between, or keep to their own", "[races]") {
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; bar.warp.sync -1; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; shfl.sync.idx.b32 %r8, %r6, 0, 31, -1; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK_FALSE(talks("setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.shared.u32 [words], %r6; bar.sync 0;"
                      "ld.volatile.shared.u32 %r7, [words];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; mov.u32 %r11, words; mad.lo.u32 %r12, %r1, 4, %r11; ld.shared.u32 %r7, [%r12];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; ld.shared.u32 %r7, [%r2 + 4096];"));
    CHECK_FALSE(talks("ld.shared.u32 %r7, [%r2 + 4]; st.shared.u32 [%r2], %r7;")); // settle_races()
}
