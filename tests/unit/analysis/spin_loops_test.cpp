// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analysis/graph_fixture.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/waits/region_waits.h"
#include "translator/analysis/waits/spin_loops.h"

namespace ptarmigan::test {
namespace {

using namespace translator;

const std::string address = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ";

bool could_spin(const std::string& body) {
    return may_spin(AnalysedKernel(address + body + " ret;").graph, WaitingLoops::all);
}

bool spins(const std::string& body) { return may_spin(AnalysedKernel(address + body + " ret;").graph, WaitingLoops::found); }

TEST_CASE("loops that poll one place wait") {
    CHECK(spins("L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"));
    CHECK(spins("mov.u32 %r1, 0; bra T; L: ld.volatile.global.u32 %r1, [%rd1]; T: setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"));
    // With a limit of rounds: strong reads only.
    CHECK(spins("mov.u32 %r2, 0; L: ld.relaxed.gpu.global.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9;"
                " setp.eq.and.u32 %p2, %r1, 0, %p1; @%p2 bra L;"));
    CHECK_FALSE(spins("mov.u32 %r2, 0; L: ld.global.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9;"
                      " setp.eq.and.u32 %p2, %r1, 0, %p1; @%p2 bra L;"));
    // What it reads decides nothing.
    CHECK_FALSE(spins("mov.u32 %r2, 0; L: ld.volatile.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1; add.u32 %r2, %r2, 1;"
                      " setp.lt.u32 %p1, %r2, 9; @%p1 bra L;"));
}

TEST_CASE("locks of every atomic wait") {
    const std::string again = " setp.ne.u32 %p1, %r1, 0; @%p1 bra L; atom.global.exch.b32 %r2, [%rd1], 0;";
    for (const char* atomic : {"cas.b32 %r1, [%rd1], 0, 1;", "exch.b32 %r1, [%rd1], 1;", "or.b32 %r1, [%rd1], 1;", "max.u32 %r1, [%rd1], 1;",
                               "and.b32 %r1, [%rd1], 1;", "inc.u32 %r1, [%rd1], 1;", "add.u32 %r1, [%rd1], 0;", "min.u32 %r1, [%rd1], -1;"}) {
        INFO(atomic);
        CHECK(spins("L: atom.global." + std::string(atomic) + again));
    }
    // An addition that is taken back, and one that is not.
    CHECK(spins("L: atom.global.add.u32 %r1, [%rd1], 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; red.global.add.u32 [%rd1], -1; bra L; E:"));
    CHECK_FALSE(spins("L: atom.global.add.u32 %r1, [%rd1], 1; setp.ge.u32 %p1, %r1, 100; @%p1 bra E; red.global.add.u32 [%rd1+4], -1; bra L; E:"));
    CHECK_FALSE(spins("L: atom.global.add.u32 %r1, [%rd1], 1; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], 1;"
                      " setp.lt.u32 %p1, %r1, 100; @%p1 bra L;")); // a queue
}

TEST_CASE("locks that are given back behind the loop wait") {
    const std::string take = "L: atom.global.add.u32 %r1, [%rd1], 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ";
    CHECK(spins(take + "st.global.u32 [%rd1], 0;"));
    CHECK(spins(take + "atom.global.exch.b32 %r2, [%rd1], 0;"));
    CHECK_FALSE(spins(take + "st.global.u32 [%rd1+4], 0; red.global.add.u32 [%rd1], 1;"));
}

TEST_CASE("loads from behind the first cache, of other memory between barriers, and through reloaded pointers wait") {
    CHECK(spins("mov.u32 %r2, 0; L: ld.global.cv.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; setp.eq.and.u32 %p2, %r1, 0, %p1; @%p2 bra L;"));
    CHECK(spins("mov.u32 %r2, 0; L: ld.global.cg.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; setp.eq.and.u32 %p2, %r1, 0, %p1; @%p2 bra L;"));
    CHECK(spins("L: ld.global.u32 %r1, [%rd1]; bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"));
    CHECK(spins("L: ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3]; membar.gl; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"));
    CHECK_FALSE(spins("L: ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"));
    CHECK(spins(".shared .u32 s; L: ld.volatile.global.u32 %r1, [%rd1]; atom.shared.add.u32 %r3, [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s];"
                " bar.sync 0; setp.lt.u32 %p2, %r2, 5; @%p2 bra L;"));
}

TEST_CASE("plain loads beside fences of all threads wait") {
    const std::string handed_on = " st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;";
    CHECK(spins(".shared .u32 s; L: membar.gl; ld.global.u32 %r1, [%rd1];" + handed_on));
    CHECK_FALSE(spins(".shared .u32 s; L: membar.cta; ld.global.u32 %r1, [%rd1];" + handed_on));
    const std::string walk = " ld.global.u64 %rd3, [%rd1]; setp.eq.u64 %p1, %rd3, 0; selp.b64 %rd1, %rd1, %rd3, %p1; setp.ne.u64 %p2, %rd1, %rd2; @%p2 bra L;"
                             " st.global.u64 [%rd2], %rd1;";
    CHECK(spins("L: fence.acq_rel.gpu;" + walk));
    CHECK_FALSE(spins("L:" + walk));
    // What a branch on the load decides.
    CHECK(spins("mov.u32 %r2, 0; L: membar.gl; ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra N; mov.u32 %r2, 1; N:"
                " setp.eq.u32 %p2, %r2, 0; @%p2 bra L;"));
}

TEST_CASE("all loops that end by what they read of memory that may change can be taken to wait") {
    const std::string walk = "L: ld.global.u64 %rd1, [%rd1]; setp.ne.u64 %p1, %rd1, 0; @%p1 bra L;";
    CHECK(could_spin(walk));
    CHECK_FALSE(spins(walk));
    CHECK(could_spin("mov.u32 %r2, 0; L: atom.global.add.u32 %r1, [%rd1], 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;"));
    CHECK_FALSE(could_spin("L: ld.global.nc.u64 %rd1, [%rd1]; setp.ne.u64 %p1, %rd1, 0; @%p1 bra L;"));
    CHECK_FALSE(could_spin("mov.u32 %r2, 0; L: ld.volatile.global.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra L;"));
}

TEST_CASE("a retry of compare-and-swap does not wait, unless it asks more of what it has seen") {
    CHECK_FALSE(spins("ld.global.u32 %r1, [%rd1]; L: add.u32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%rd1], %r1, %r2;"
                      " setp.ne.u32 %p1, %r3, %r1; mov.u32 %r1, %r3; @%p1 bra L;"));
    CHECK_FALSE(spins("L: ld.volatile.global.u32 %r1, [%rd1]; add.u32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%rd1], %r1, %r2;"
                      " setp.ne.u32 %p1, %r3, %r1; @%p1 bra L;"));
    // Until what another one adds is there.
    CHECK_FALSE(spins("ld.global.u32 %r1, [%rd1]; L: setp.ge.u32 %p1, %r1, 50; @%p1 bra E; atom.global.cas.b32 %r3, [%rd1], %r1, 50;"
                      " setp.ne.u32 %p2, %r3, %r1; mov.u32 %r1, %r3; @%p2 bra L; E:"));
    CHECK(spins("ld.global.u32 %r1, [%rd1]; L: and.b32 %r4, %r1, -2; add.u32 %r2, %r4, 1; atom.global.cas.b32 %r1, [%rd1], %r4, %r2;"
                " setp.ne.u32 %p1, %r1, %r4; @%p1 bra L;"));
    CHECK(spins("L: ld.volatile.global.u32 %r1, [%rd1]; and.b32 %r4, %r1, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra L; add.u32 %r2, %r1, 1;"
                " atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.ne.u32 %p1, %r3, %r1; @%p1 bra L;"));
    // Success that goes on: a semaphore that writes back what it saw.
    CHECK(spins("ld.global.u32 %r1, [%rd1]; L: setp.eq.u32 %p2, %r1, 0; selp.u32 %r4, 0, 1, %p2; sub.u32 %r2, %r1, %r4;"
                " atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.ne.u32 %p1, %r3, %r1; mov.u32 %r1, %r3; @%p1 bra L; @%p2 bra L;"));
    CHECK(spins("L: atom.global.cas.b32 %r1, [%rd1], 5, 5; setp.ne.u32 %p1, %r1, 7; @%p1 bra L;")); // a read
}

TEST_CASE("reads of another place each time wait where something may be waited for") {
    CHECK_FALSE(spins("L: ld.global.u64 %rd1, [%rd1]; setp.ne.u64 %p1, %rd1, 0; @%p1 bra L;")); // a list
    const std::string next = " add.u32 %r9, %r9, 1; and.b32 %r9, %r9, 3; mul.wide.u32 %rd3, %r9, 8; add.u64 %rd4, %rd1, %rd3;";
    const std::string insert = "mov.u32 %r9, 0; L:" + next + " atom.global.cas.b32 %r1, [%rd4], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ";
    CHECK_FALSE(spins(insert));                                          // a hash table
    CHECK_FALSE(spins(insert + "st.global.u32 [%rd4+4], 5;"));           // with values
    CHECK_FALSE(spins("atom.global.cas.b32 %r1, [%rd1], 0, %r9; " + insert)); // with a first try before
    CHECK(spins("mov.u32 %r1, 0; st.global.u32 [%rd1], %r1; " + insert));     // which another CTA may have yet to do
    CHECK_FALSE(spins(insert + "st.global.u32 [%rd2], 0;"));             // another array
    CHECK(spins(insert + "st.global.u32 [%rd4], 0;"));                   // locks
    CHECK(spins(insert + "atom.global.exch.b32 %r2, [%rd4], 0;"));
    const std::string poll = "mov.u32 %r9, 0; L:" + next + " ld.acquire.gpu.global.u32 %r1, [%rd4]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ";
    CHECK_FALSE(spins(poll));
    CHECK(spins(poll + "st.global.u32 [%rd1+8], 0;"));
    // Union-find: what is written comes from what was read.
    CHECK_FALSE(spins("ld.global.u32 %r1, [%rd2]; L: mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; ld.global.u32 %r2, [%rd4];"
                      " atom.global.min.u32 %r3, [%rd4], %r2; setp.ne.u32 %p1, %r3, %r2; mov.u32 %r1, %r3; @%p1 bra L;"));
}

TEST_CASE("hash tables in shared memory do not wait for those who made them empty") {
    const std::string table = ".shared .align 4 .b8 t[1024]; mov.u32 %r8, t; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; add.u32 %r3, %r8, %r2;"
                              " st.shared.u32 [%r3], 0; ";
    const std::string insert = "mov.u32 %r9, %r1; L: add.u32 %r9, %r9, 1; and.b32 %r9, %r9, 255; shl.b32 %r4, %r9, 2; add.u32 %r5, %r8, %r4;"
                               " atom.shared.cas.b32 %r6, [%r5], 0, 7; setp.ne.u32 %p1, %r6, 0; @%p1 bra L; ";
    CHECK_FALSE(spins(table + "bar.sync 0; " + insert));
    CHECK(spins(table + insert));
}

TEST_CASE("what decides a branch before the exit is waited for too") {
    CHECK(spins("mov.u32 %r2, 0; L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra N; mov.u32 %r2, 1;"
                " N: setp.eq.u32 %p2, %r2, 0; @%p2 bra L;"));
    CHECK(spins("ld.param.u32 %r3, [n]; setp.gt.u32 %p2, %r3, 3; L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"
                " @%p2 bra E; bra L; E:"));
    // Both ways go on alike.
    CHECK_FALSE(spins("mov.u32 %r2, 0; L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra N; st.global.u32 [%rd2], 1;"
                      " N: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra L;"));
    // By way of memory: one thread reads, and tells the others.
    CHECK(spins(".shared .u32 s; mov.u32 %r5, %tid.x; setp.ne.u32 %p1, %r5, 0; L: @%p1 bra N; ld.volatile.global.u32 %r1, [%rd1];"
                " st.shared.u32 [s], %r1; N: bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0; setp.eq.u32 %p2, %r2, 0; @%p2 bra L;"));
    CHECK(spins(".local .align 8 .b8 a[16]; ld.param.u32 %r3, [n]; mul.wide.u32 %rd4, %r3, 4; mov.u64 %rd5, a; add.u64 %rd6, %rd5, %rd4;"
                " L: ld.volatile.global.u32 %r1, [%rd1]; st.local.u32 [%rd6], %r1; ld.local.u32 %r2, [%rd6]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;"));
}

TEST_CASE("cycles of several entries wait") {
    const std::string cycle = "ld.param.u32 %r3, [n]; setp.gt.u32 %p2, %r3, 3; @%p2 bra B; A: add.u32 %r4, %r4, 1;"
                              " B: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;";
    CHECK_FALSE(AnalysedKernel(address + cycle + " ret;").graph.forest.reducible);
    CHECK(spins(cycle));
}

TEST_CASE("lanes wait apart between barriers of all threads, whoever comes to those together") {
    // Only a word in memory says which of two arms a warp takes, so the kernel does not split at its barriers.
    const auto apart = [](const std::string& before_barrier, const std::string& barrier) {
        AnalysedKernel k("mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; ld.param.u64 %rd1, [p]; ld.global.u32 %r2, [%rd1];"
                               "setp.eq.u32 %p2, %r2, 0; @%p2 bra OTHER; @%p1 bra MET; LOOK: ld.relaxed.gpu.global.u32 %r3, [%rd1+4];"
                               "setp.eq.u32 %p3, %r3, 0; @%p3 bra LOOK; MET:" +
                                   before_barrier + barrier + "st.global.u32 [%rd1+8], %r1; bar.sync 0; OTHER: bar.sync 0; ret;",
                               {64, 1, 1});
        CHECK_FALSE(plan_barriers(k.graph, k.shape).splittable);
        const std::vector<bool> waits = loops_that_wait(k.graph, WaitingLoops::found);
        CHECK(std::count(waits.begin(), waits.end(), true) == 1);
        return lanes_wait_apart(k.graph, k.shape, regions_between_barriers(k.graph, k.shape), waits, 32);
    };
    CHECK(apart("", "bar.sync 0;"));
    CHECK(apart("add.u32 %r4, %r1, 1;", "bar.sync 0, 64;"));
    CHECK_FALSE(apart("st.global.u32 [%rd1+4], %r1;", "bar.sync 0;")); // what the first lane may wait for
    CHECK_FALSE(apart("", ""));
    CHECK_FALSE(apart("", "bar.sync 1, 32;")); // not seen whether the lane is among those
}

TEST_CASE("who waits lower down than it writes may hold up the writes of lanes beside it") {
    // Each thread looks back over its own word of the CTAs before until one has a sum in it.
    const auto apart = [](const std::string& after, const std::string& step = "sub.u32 %r2, %r2, 1;", const std::string& row = "256",
                          const std::string& scope = ".relaxed.gpu") {
        AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, " + row +
                             ", %r1; mul.wide.s32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2; ld.param.u64 %rd6, [q]; st" + scope +
                             ".global.u32 [%rd3], 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra DONE; NEXT: " + step + " mad.lo.u32 %r4, %r2, " + row +
                             ", %r1; mul.wide.s32 %rd4, %r4, 4; add.u64 %rd5, %rd1, %rd4; LOOK: ld.relaxed.gpu.global.u32 %r5, [%rd5];"
                             "setp.eq.u32 %p1, %r5, 0; @%p1 bra LOOK; setp.eq.u32 %p1, %r5, 1; @%p1 bra NEXT; DONE:" +
                             after + "bar.sync 0; ret;",
                         {64, 1, 1});
        const std::vector<bool> waits = loops_that_wait(k.graph, WaitingLoops::found);
        CHECK(std::count(waits.begin(), waits.end(), true) > 0);
        return lanes_wait_apart(k.graph, k.shape, regions_between_barriers(k.graph, k.shape), waits, 32);
    };
    const std::string tell = "st.relaxed.gpu.global.u32 [%rd3], 2;";
    CHECK(apart(tell));
    CHECK(apart(tell + "st.global.u32 [%rd6], 2;")); // for whom comes after the kernel
    CHECK(apart(tell, "sub.u32 %r2, %r2, 2;"));
    CHECK(apart(tell, "sub.u32 %r2, %r2, 1;", "32"));
    CHECK_FALSE(apart(tell, "sub.u32 %r2, %r2, 1;", "31")); // the last lane looks into the row of the first
    CHECK_FALSE(apart(tell, "add.u32 %r2, %r2, 1;"));
    CHECK_FALSE(apart(tell, "mad.lo.u32 %r2, %r1, -1, %r2;"));
    CHECK_FALSE(apart(tell + "st.relaxed.sys.global.u32 [%rd6], 2;")); // the host may wait for it
    CHECK_FALSE(apart(tell + "st.global.u32 [%rd6], 2; membar.sys;"));
    CHECK_FALSE(apart(tell + "bar.sync 0;" + tell)); // other warps wait for this one there
    CHECK_FALSE(apart(tell + "@%p1 bra NEXT;"));    // in another round what it writes may lie lower
    CHECK_FALSE(apart("st.relaxed.gpu.global.u32 [%rd3+-1024], 2;"));
}

} // namespace
} // namespace ptarmigan::test
