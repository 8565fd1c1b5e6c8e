// SPDX-License-Identifier: Apache-2.0
// Where warps have to meet between a read of shared memory and a write, and where they need not.
#include "graph_fixture.h"

#include "translator/analysis/waits/race_points.h"

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

constexpr std::array<std::uint32_t, 3> line = {128, 1, 1};

/// %r1 is %tid.x, %r2 its word in `words`, %r3 the lane, %r4 the warp, %r5 its word; %r6 is n.
std::size_t points(const std::string& body, unsigned width = 32, MeetingPoints where = MeetingPoints::for_all) {
    test::AnalysedKernel kernel(R"(
        mov.u32 %r1, %tid.x;
        mov.u32 %r10, words;
        mad.lo.u32 %r2, %r1, 4, %r10;
        and.b32 %r3, %r1, 31;
        shr.u32 %r4, %r1, 5;
        mad.lo.u32 %r5, %r4, 4, %r10;
        ld.param.u32 %r6, [n];
        st.shared.u32 [%r2], %r1;
        bar.sync 0;
    )" + body + "ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r7; ret;",
                                line, width, ".shared .align 4 .b8 words[8192];\n.shared .align 4 .b8 others[8192];\n");
    return race_points(kernel.graph, kernel.shape, width, where).points.size();
}

} // namespace

TEST_CASE("race points: one point between reads and writes that may meet", "[races]") {
    CHECK(points("ld.shared.u32 %r7, [words]; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [words], %r6;") == 1);
    CHECK(points("ld.shared.u32 %r7, [words]; ld.shared.u32 %r8, [words + 4]; add.u32 %r7, %r7, %r8;"
                 "st.shared.u32 [%r2], %r6; st.shared.u32 [%r2 + 4], %r6;") == 1);
    CHECK(points("ld.shared.u32 %r7, [%r2 + 4]; st.shared.u32 [%r2], %r7;") == 1);
    CHECK(points("mad.lo.u32 %r8, %r6, 4, %r10; ld.shared.u32 %r7, [%r8]; st.shared.u32 [%r2], %r6;") == 1);
    // In the loop, since its next round writes.
    CHECK(points(R"(
        mov.u32 %r7, 0;
    round:
        st.shared.u32 [%r5], %r7;
        bar.sync 0;
        ld.volatile.shared.u32 %r8, [words];
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, %r6;
        @%p1 bra round;
    )") == 1);
}

TEST_CASE("race points: a copy writes where it writes to, and a bulk copy reads", "[races]") {
    const std::string pointer = "ld.param.u64 %rd2, [p];";
    CHECK(points(pointer + "ld.shared.u32 %r7, [%r2 + 4]; cp.async.ca.shared.global [%r2], [%rd2], 4;") == 1);
    CHECK(points(pointer + "ld.shared.u32 %r7, [words]; setp.eq.u32 %p1, %r1, 0; @%p1 cp.async.ca.shared.global [words], [%rd2], 4;") == 1);
    CHECK(points(pointer + "ld.shared.u32 %r7, [%r2]; cp.async.ca.shared.global [%r2], [%rd2], 4;") == 0);
    CHECK(points(pointer + "ld.shared.u32 %r7, [words]; cp.async.ca.shared.global [others], [%rd2], 4;") == 0);
    // The source is no shared memory, whatever its register holds besides.
    CHECK(points("cvt.u64.u32 %rd2, %r2; ld.shared.u32 %r7, [%r2]; cp.async.ca.shared.global [%r2], [%rd2 + 4], 4;") == 0);
    CHECK(points(pointer + "setp.eq.u32 %p1, %r1, 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [words + 256], 16;"
                           "st.shared.u32 [%r2], %r6;") == 1);
    CHECK(points(pointer + "setp.eq.u32 %p1, %r1, 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [others], 16;"
                           "st.shared.u32 [%r2], %r6;") == 0);
}

TEST_CASE("race points: none where a barrier stands between", "[races]") {
    CHECK(points("ld.shared.u32 %r7, [words]; bar.sync 0; st.shared.u32 [%r2], %r6;") == 0);
    CHECK(points(R"(
        mov.u32 %r7, 0;
    round:
        bar.sync 0;
        st.shared.u32 [%r5], %r7;
        bar.sync 0;
        ld.volatile.shared.u32 %r8, [words];
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, %r6;
        @%p1 bra round;
    )") == 0);
}

TEST_CASE("race points: none where threads keep to their own words", "[races]") {
    CHECK(points("ld.shared.u32 %r7, [%r2]; add.u32 %r7, %r7, 1; st.shared.u32 [%r2], %r7;") == 0);
    CHECK(points("ld.shared.u32 %r7, [words]; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [others], %r6;") == 0);
    // A row of each warp: its lanes talk with each other.
    const std::string rows = "xor.b32 %r8, %r1, 1; mad.lo.u32 %r8, %r8, 4, %r10; ld.shared.u32 %r7, [%r8];"
                             "st.shared.u32 [%r2], %r7;";
    CHECK(points(rows) == 0);
    CHECK(points(rows, 8) == 0);
    CHECK(points(rows, 1) == 1);
    // Any word of the thread's column, and of the warp's row.
    CHECK(points("shl.b32 %r8, %r6, 9; add.u32 %r8, %r8, %r2; ld.shared.u32 %r7, [%r8]; st.shared.u32 [%r2], %r7;") ==
          0);
    CHECK(points("and.b32 %r8, %r6, 31; shl.b32 %r9, %r4, 5; add.u32 %r8, %r8, %r9; mad.lo.u32 %r8, %r8, 4, %r10;"
                 "ld.shared.u32 %r7, [%r8]; st.shared.u32 [%r2], %r7;") == 0);
    // Bins of a thread's own, as far as one can see.
    const std::string bins = "ld.global.u32 %r8, [%rd5]; mad.lo.u32 %r8, %r8, 4, %r10; ld.shared.u32 %r7, [%r8];"
                             "add.u32 %r7, %r7, 1; st.shared.u32 [%r8], %r7;";
    const std::string in = "ld.param.u64 %rd5, [q]; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd5, %rd5, %rd6;";
    CHECK(points(in + bins + "add.u64 %rd5, %rd5, 512;" + bins) == 0);
    CHECK(points(in + bins + "ld.shared.u32 %r7, [%r8 + 4]; st.shared.u32 [%r8], %r7;") == 1);
    // Of one warp alone.
    CHECK(points("setp.ge.u32 %p1, %r1, 32; @%p1 bra end; ld.shared.u32 %r7, [words]; st.shared.u32 [%r2], %r7; end:") ==
          0);
    CHECK(points("atom.shared.add.u32 %r7, [words], 1; atom.shared.add.u32 %r7, [words + 4], 1;") == 0);
}

TEST_CASE("race points: none in a tree of sums, whatever the step", "[races]") {
    const std::string tree = R"(
        shr.u32 %r7, %r6, 1;
    level:
        setp.ge.u32 %p1, %r1, %r7;
        @%p1 bra meet;
        shl.b32 %r8, %r7, 2;
        add.u32 %r8, %r2, %r8;
        ld.shared.u32 %r9, [%r8];
        ld.shared.u32 %r11, [%r2];
        add.u32 %r9, %r9, %r11;
        st.shared.u32 [%r2], %r9;
    meet:
        bar.sync 0;
        shr.u32 %r7, %r7, 1;
        setp.ne.u32 %p1, %r7, 0;
        @%p1 bra level;
    )";
    CHECK(points(tree) == 0);
    CHECK(points(tree, 32, MeetingPoints::for_anyone) == 0);
}

TEST_CASE("race points: where all threads meet, and out of loops", "[races]") {
    // Read in a loop that threads leave at different times, written behind it.
    const std::string loop = R"(
        mov.u32 %r7, %r1;
    walk:
        ld.shared.u32 %r8, [words];
        add.u32 %r7, %r7, %r8;
        setp.lt.u32 %p1, %r7, %r6;
        @%p1 bra walk;
        st.shared.u32 [%r2], %r7;
    )";
    test::AnalysedKernel kernel("mov.u32 %r1, %tid.x; mov.u32 %r10, words; mad.lo.u32 %r2, %r1, 4, %r10;"
                                "ld.param.u32 %r6, [n]; bar.sync 0;" + loop + "ret;",
                                line, 32, ".shared .align 4 .b8 words[8192];\n");
    const RacePoints found = race_points(kernel.graph, kernel.shape, 32, MeetingPoints::for_all);
    REQUIRE(found.points.size() == 1);
    CHECK(kernel.graph.forest.loop_of[found.points[0].block] == no_loop);
    CHECK(found.left == 0);
    // Both in an arm that not all go through: nowhere for all, but for each warp by itself.
    const std::string arm =
        "setp.ge.u32 %p1, %r1, %r6; @%p1 bra end; ld.shared.u32 %r7, [words]; st.shared.u32 [%r2], %r7; end:";
    CHECK(points(arm + "bar.sync 0;") == 0);
    CHECK(points(arm + "bar.sync 0;", 32, MeetingPoints::for_anyone) == 1);
    CHECK(points(arm + "bar.sync 0;", 32, MeetingPoints::where_likely) == 1);
    // The others have nothing more to wait for, as behind an early return.
    CHECK(points(arm) == 1);
}

TEST_CASE("race points: where turns cost too much for what may be apart", "[races]") {
    // A scan in place, in an arm whose threads are not known: the distance is one number.
    const auto scan = [](const std::string& from) {
        return points(R"(
        mov.u32 %r7, 1;
    level:
        setp.lt.u32 %p1, %r1, %r7;
        @%p1 bra meet;
    )" + from + R"(
        ld.shared.u32 %r9, [%r8];
        ld.shared.u32 %r11, [%r2];
        add.u32 %r9, %r9, %r11;
        st.shared.u32 [%r2], %r9;
    meet:
        bar.sync 0;
        shl.b32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, 128;
        @%p1 bra level;
    )", 32, MeetingPoints::where_likely);
    };
    CHECK(scan("sub.u32 %r8, %r1, %r7; mad.lo.u32 %r8, %r8, 4, %r10;") == 1);
    // As in a sorting network, and a scan up and down: products and bits of two numbers.
    CHECK(scan("xor.b32 %r8, %r1, %r7; mad.lo.u32 %r8, %r8, 4, %r10;") == 0);
    CHECK(scan("mul.lo.u32 %r8, %r1, %r7; mad.lo.u32 %r8, %r8, 4, %r10;") == 0);
}

TEST_CASE("race points: global memory where it is known to meet", "[races]") {
    const std::string pointers = "ld.param.u64 %rd2, [p]; ld.param.u64 %rd3, [q]; mov.u32 %r8, %ctaid.x;"
                                 "mul.wide.u32 %rd4, %r8, 4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;"
                                 "setp.eq.u32 %p1, %r1, 0; bar.sync 0;";
    CHECK(points(pointers + "ld.global.u32 %r7, [%rd2]; @%p1 st.global.u32 [%rd2], %r6;") == 1);
    CHECK(points(pointers + "ld.global.u32 %r7, [%rd2]; @%p1 st.global.u32 [%rd2 + 4], %r6;") == 0);
    CHECK(points(pointers + "ld.global.u32 %r7, [%rd2]; @%p1 st.global.u32 [%rd3], %r6;") == 0);
}
