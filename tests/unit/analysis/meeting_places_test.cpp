// SPDX-License-Identifier: Apache-2.0
// Which collectives lanes of a warp may come to from different places.
#include "tests/unit/analysis/graph_fixture.h"
#include "translator/analysis/waits/meeting_places.h"

namespace ptarmigan::test {
namespace {

/// `body` in an arm that some lanes take, with a shuffle of the whole warp on the other way.
bool meet_elsewhere(const std::string& arm, const std::string& other = "shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r1, 5; mov.u32 %r4, 0; @%p1 bra ARM;" +
                     other + "bra END; ARM: " + arm + " END: st.global.u32 [%rd1], %r4; ret;");
    return translator::may_meet_elsewhere(k.graph);
}

} // namespace

TEST_CASE("collectives in both arms may be one; of the active lanes it is their own") {
    CHECK(meet_elsewhere("shfl.sync.idx.b32 %r4, %r1, 1, 31, -1;"));
    CHECK(meet_elsewhere("shfl.sync.idx.b32 %r4, %r1, 1, 31, %r2;"));
    CHECK_FALSE(meet_elsewhere("shfl.sync.idx.b32 %r4, %r1, 1, 31, 0x1f;")); // another mask
    CHECK_FALSE(meet_elsewhere("activemask.b32 %r3; shfl.sync.idx.b32 %r4, %r1, 1, 31, %r3;"));
    CHECK(meet_elsewhere("shfl.sync.idx.b32 %r4, %r1, 1, 31, %r3;", "activemask.b32 %r3; shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;"));
    // Who was active before lanes came apart again is not who is here.
    CHECK(meet_elsewhere("activemask.b32 %r3; setp.lt.u32 %p2, %r1, 2; @%p2 bra END; shfl.sync.idx.b32 %r4, %r1, 1, 31, %r3;"));
}

TEST_CASE("arms of a branch of all lanes behind the join: all come to them equally often") {
    // Lanes leave a loop one after the other, those that are left in it meet; behind it one of two collectives.
    const auto meet = [](const std::string& condition) {
        AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r2, [n]; setp.lt.u32 %p2, " + condition +
                         ", 5; mov.u32 %r3, -1; mov.u32 %r4, %r1; LOOP: add.u32 %r4, %r4, 7; setp.lt.u32 %p1, %r4, 99;"
                         "vote.sync.ballot.b32 %r3, %p1, %r3; @%p1 bra LOOP; @%p2 bra ARM; vote.sync.ballot.b32 %r5, %p1, -1; bra END;"
                         "ARM: vote.sync.ballot.b32 %r5, %p2, -1; END: st.global.u32 [%rd1], %r5; ret;");
        return translator::may_meet_elsewhere(k.graph);
    };
    CHECK_FALSE(meet("%r2"));
    CHECK(meet("%r1"));
}

TEST_CASE("lanes that a branch has parted meet where they have one value, and others bring another") {
    // Warps come by a uniform branch or through a divergent one, of which both sides have the same value.
    AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r1, 5; setp.lt.u32 %p2, %r2, 5; mov.u32 %r3, 2;"
                     "@%p2 bra SET; @%p1 bra JOIN; st.global.u32 [%rd1+8], %r1; bra JOIN; SET: mov.u32 %r3, 1; JOIN: st.global.u32 [%rd1], %r3; ret;");
    CHECK(k.shape_of("%r3").is_uniform());
    AnalysedKernel other("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r1, 5; setp.lt.u32 %p2, %r2, 5; mov.u32 %r3, 2;"
                         "@%p2 bra SET; @%p1 bra JOIN; mov.u32 %r3, 3; bra JOIN; SET: mov.u32 %r3, 1; JOIN: st.global.u32 [%rd1], %r3; ret;");
    CHECK(other.shape_of("%r3").is_varying());
}

} // namespace ptarmigan::test
