// SPDX-License-Identifier: Apache-2.0
// activemask: lanes that are told of each other are at one place in one round of their loops, and who asks inside of a section that a lock
// guards is not kept there by lanes that wait for it.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 96;

/// Adds the number of lanes in %r10, of which this is one, to [%l61] once, and 1 to [%l62] for each lane. If the lanes do not agree on %r11, or
/// are not in their mask, to [%l63], too. `n` keeps labels apart.
std::string count_company(const std::string& n) {
    return "popc.b32 %r20, %r10; mov.u32 %r21, %lanemask_lt; and.b32 %r21, %r21, %r10;\n"
           "setp.ne.u32 %p5, %r21, 0; @%p5 bra FOLLOW" + n + "; atom.global.add.u32 %r22, [%l61], %r20;\nFOLLOW" + n + ":\n"
           "red.global.add.u32 [%l62], 1; brev.b32 %r23, %r10; bfind.shiftamt.u32 %r24, %r23;\n"
           "shfl.sync.idx.b32 %r25, %r11, %r24, 31, %r10; setp.ne.u32 %p6, %r25, %r11;\n"
           "mov.u32 %r26, %lanemask_eq; and.b32 %r26, %r26, %r10; setp.eq.or.u32 %p6, %r26, 0, %p6; @%p6 red.global.add.u32 [%l63], 1;\n"
           "bar.warp.sync %r10;\n";
}

struct Counts {
    std::uint32_t counted, calls, wrong;
};

Counts counts_of(const std::string& body, unsigned grid = 1) {
    Array<std::uint32_t> locks(64), counted(1), calls(1), wrong(1);
    run("mov.u32 %r1, %laneid; mov.u32 %r11, 0;\n" + body, {grid}, {threads}, {locks.address(), counted.address(), calls.address(), wrong.address()});
    return {counted.values()[0], calls.values()[0], wrong.values()[0]};
}

/// `body` in a section that one lane of the grid has at a time; %l10 is the lock.
std::string guarded(const std::string& n, const std::string& body) {
    return "TRY" + n + ": atom.global.cas.b32 %r0, [%l10], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra TRY" + n + ";\nmembar.gl;\n" + body +
           "membar.gl; atom.global.exch.b32 %r0, [%l10], 0;\n";
}

} // namespace

TEST_CASE("who asks inside of a section under a spin lock goes on", "[kernels][flow][spin]") {
    const Counts counts = counts_of("mov.u64 %l10, %l60;\n" + guarded("A", "activemask.b32 %r10;\n" + count_company("A")), 2);
    CHECK(counts.calls == 2 * threads);
    CHECK(counts.counted == 2 * threads);
    CHECK(counts.wrong == 0);
}

TEST_CASE("who asks inside of a section under one of several spin locks, in a loop in an arm, goes on", "[kernels][flow][spin]") {
    const Counts counts = counts_of(
        "and.b32 %r2, %r1, 3; mad.wide.u32 %l10, %r2, 4, %l60; mov.u32 %r3, 0;\nROUND: add.u32 %r4, %r3, %r1; and.b32 %r4, %r4, 1;\n"
        "setp.eq.u32 %p1, %r4, 0; @%p1 bra NEXT;\n" + guarded("A", "activemask.b32 %r10; mov.u32 %r11, 0;\n" + count_company("A")) +
        "NEXT: add.u32 %r3, %r3, 1; and.b32 %r4, %r1, 3; add.u32 %r4, %r4, 2; setp.lt.u32 %p1, %r3, %r4; @%p1 bra ROUND;");
    CHECK(counts.wrong == 0);
    CHECK(counts.calls > threads);
}

TEST_CASE("who asks with a place of a semaphore goes on", "[kernels][flow][spin]") {
    // Two places: lanes take one by addition, and give it back where there was none.
    const Counts counts = counts_of(R"(
    setp.ne.u32 %p1, %r60, 0; @%p1 bra TRY; st.volatile.global.u32 [%l60], 2;
    TRY: ld.volatile.global.u32 %r0, [%l60]; setp.eq.u32 %p0, %r0, 0; @%p0 bra TRY;
    sub.u32 %r2, %r0, 1; atom.global.cas.b32 %r3, [%l60], %r0, %r2; setp.ne.u32 %p0, %r3, %r0; @%p0 bra TRY;
    membar.gl; activemask.b32 %r10;
    )" + count_company("A") + "membar.gl; red.global.add.u32 [%l60], 1;");
    CHECK(counts.calls == threads);
    CHECK(counts.wrong == 0);
}

TEST_CASE("who asks with a place of a semaphore, and counts for all before they talk, goes on", "[kernels][flow][spin]") {
    // As ptxas joins atomic operations of the lanes that are together: one of them adds, then all are told.
    const Counts counts = counts_of(R"(
    mov.u32 %r5, 0; setp.ne.u32 %p1, %r60, 0; @%p1 bra TRY; st.volatile.global.u32 [%l60], 3;
    TRY: ld.volatile.global.u32 %r0, [%l60]; setp.ne.u32 %p0, %r0, 0; @%p0 bra TAKE; nanosleep.u32 100; bra TRY;
    TAKE: sub.u32 %r2, %r0, 1; atom.global.cas.b32 %r3, [%l60], %r0, %r2; setp.ne.u32 %p0, %r3, %r0; @%p0 bra TRY;
    activemask.b32 %r10; popc.b32 %r20, %r10; bfind.u32 %r24, %r10; setp.eq.u32 %p5, %r24, %r1;
    @%p5 atom.global.add.u32 %r22, [%l61], %r20; @%p5 red.global.add.u32 [%l62], %r20;
    shfl.sync.idx.b32 %r25, %r5, %r24, 31, %r10; setp.ne.u32 %p6, %r25, %r5; @%p6 red.global.add.u32 [%l63], 1;
    membar.gl; @%p5 red.global.add.u32 [%l60], %r20;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 2; @%p1 bra TRY;
    )");
    CHECK(counts.calls == 2 * threads);
    CHECK(counts.counted == 2 * threads);
}

TEST_CASE("members that match has named under a spin lock go on", "[kernels][flow][spin]") {
    const Counts counts = counts_of("mov.u64 %l10, %l60;\n" + guarded("A", "activemask.b32 %r9; match.any.sync.b32 %r10, %r11, %r9;\n" + count_company("A")), 2);
    CHECK(counts.calls == 2 * threads);
    CHECK(counts.counted == 2 * threads);
    CHECK(counts.wrong == 0);
}

TEST_CASE("members that a ballot has named with places of a semaphore go on", "[kernels][flow][spin]") {
    const Counts counts = counts_of(R"(
    setp.ne.u32 %p1, %r60, 0; @%p1 bra TRY; st.volatile.global.u32 [%l60], 4;
    TRY: ld.volatile.global.u32 %r0, [%l60]; setp.eq.u32 %p0, %r0, 0; @%p0 bra TRY;
    sub.u32 %r2, %r0, 1; atom.global.cas.b32 %r3, [%l60], %r0, %r2; setp.ne.u32 %p0, %r3, %r0; @%p0 bra TRY;
    membar.gl; activemask.b32 %r9; and.b32 %r11, %r1, 1; setp.eq.u32 %p2, %r11, 0; vote.sync.ballot.b32 %r10, %p2, %r9;
    @%p2 bra EVEN; not.b32 %r10, %r10; and.b32 %r10, %r10, %r9;
    EVEN: add.u32 %r11, %r11, 0;
    )" + count_company("A") + "membar.gl; red.global.add.u32 [%l60], 1;");
    CHECK(counts.calls == threads);
    CHECK(counts.counted == threads);
    CHECK(counts.wrong == 0);
}

TEST_CASE("members of which one waits for a lane that is no member go on", "[kernels][flow][spin]") {
    // Lanes 0 and 16 meet; before that 16 waits for lane 5, which has much to do.
    const Counts counts = counts_of(R"(
    shr.u32 %r2, %r60, 5; mad.wide.u32 %l10, %r2, 4, %l60; and.b32 %r2, %r1, 15; setp.eq.u32 %p2, %r2, 0;
    vote.sync.ballot.b32 %r10, %p2, 0xffffffff; @!%p2 bra WORK; setp.ne.u32 %p1, %r1, 16; @%p1 bra MEET;
    SPIN: ld.volatile.global.u32 %r0, [%l10]; setp.eq.u32 %p0, %r0, 0; @%p0 bra SPIN;
    MEET: shfl.sync.idx.b32 %r25, %r1, 0, 31, %r10;
    red.global.add.u32 [%l61], 1; setp.ne.u32 %p3, %r25, 0; @%p3 red.global.add.u32 [%l63], 1; bra DONE;
    WORK: setp.ne.u32 %p1, %r1, 5; @%p1 bra DONE; mov.u32 %r3, 0;
    ROUND: ld.volatile.global.u32 %r4, [%l62]; add.u32 %r5, %r5, %r4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 20000; @%p1 bra ROUND;
    st.volatile.global.u32 [%l10], 1;
    DONE:
    )");
    CHECK(counts.counted == threads / 16);
    CHECK(counts.wrong == 0);
}

TEST_CASE("lanes of different rounds of a loop are not in company", "[kernels][flow]") {
    // In an arm that lanes come to in rounds of their own, of a loop that they leave at different times.
    const Counts counts = counts_of(
        "mov.u32 %r3, 0;\nROUND: mad.lo.u32 %r4, %r3, 5, %r1; and.b32 %r4, %r4, 3; setp.ne.u32 %p1, %r4, 0; @%p1 bra NEXT;\n"
        "activemask.b32 %r10; mov.u32 %r11, %r3;\n" + count_company("A") +
        "NEXT: add.u32 %r3, %r3, 1; and.b32 %r4, %r1, 7; add.u32 %r4, %r4, 3; setp.lt.u32 %p1, %r3, %r4; @%p1 bra ROUND;");
    CHECK(counts.wrong == 0);
    CHECK(counts.counted == counts.calls);
    CHECK(counts.calls > threads);
}

TEST_CASE("lanes of different rounds of two loops are not in company", "[kernels][flow]") {
    const Counts counts = counts_of(
        "mov.u32 %r3, 0;\nOUTER: mov.u32 %r5, 0;\n"
        "INNER: mad.lo.u32 %r4, %r3, 3, %r1; add.u32 %r4, %r4, %r5; and.b32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra NEXT;\n"
        "activemask.b32 %r10; mad.lo.u32 %r11, %r3, 100, %r5;\n" + count_company("A") +
        "NEXT: add.u32 %r5, %r5, 1; add.u32 %r4, %r1, %r3; and.b32 %r4, %r4, 3; setp.lt.u32 %p1, %r5, %r4; @%p1 bra INNER;\n"
        "add.u32 %r3, %r3, 1; shr.u32 %r4, %r1, 3; add.u32 %r4, %r4, 2; setp.lt.u32 %p1, %r3, %r4; @%p1 bra OUTER;");
    CHECK(counts.wrong == 0);
    CHECK(counts.counted == counts.calls);
}

TEST_CASE("lanes that come to a question behind a lock's section and others that come by it", "[kernels][flow][spin]") {
    const Counts counts = counts_of(
        "mov.u64 %l10, %l60; mov.u32 %r3, 0;\nROUND: add.u32 %r4, %r3, %r1; and.b32 %r4, %r4, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra OVER;\n" +
        guarded("A", "ld.volatile.global.u32 %r5, [%l60 + 8]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%l60 + 8], %r5;\n") +
        "OVER: activemask.b32 %r10; mov.u32 %r11, %r3;\n" + count_company("B") +
        "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 3; @%p1 bra ROUND;");
    CHECK(counts.calls == 3 * threads);
    CHECK(counts.counted == 3 * threads);
    CHECK(counts.wrong == 0);
}
