// SPDX-License-Identifier: Apache-2.0
// mbarrier objects in whole kernels: who waits for whom, over phases, warps and the lanes of one warp. What single operations do
// to an object is in tests/recordings/mbarriers.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Words = std::vector<std::uint32_t>;
const std::string object = ".shared .align 8 .b64 bar; .shared .align 8 .b64 bar2; .shared .align 16 .b32 data[1024];";

/// Thread 0 makes the object for `count` arrivals.
std::string init(unsigned count, const std::string& name = "bar") {
    return "setp.eq.u32 %p0, %r60, 0; @%p0 mbarrier.init.shared.b64 [" + name + "], " + std::to_string(count) +
           "; bar.sync 0;\n";
}

} // namespace

TEST_CASE("mbarrier: all arrive and wait by state, over several phases", "[kernels][mbarrier]") {
    constexpr unsigned threads = 96, rounds = 5;
    for (const std::string wait : {"mbarrier.try_wait.shared.b64 %p1, [bar], %l1;", "mbarrier.test_wait.shared.b64 %p1, [bar], %l1;",
                                   "mbarrier.try_wait.shared.b64 %p1, [bar], %l1, 20;"}) {
        Array<std::uint32_t> out(threads * rounds);
        run(init(threads) + R"(
            mov.u32 %r1, data;
            shl.b32 %r2, %r60, 2;
            add.u32 %r3, %r1, %r2;          // own place
            add.u32 %r4, %r60, 37;
            rem.u32 %r4, %r4, 96;
            shl.b32 %r4, %r4, 2;
            add.u32 %r4, %r1, %r4;          // another warp's
            mov.u32 %r5, 0;
        ROUND:
            mad.lo.u32 %r6, %r5, 1000, %r60;
            st.shared.u32 [%r3], %r6;
            mbarrier.arrive.shared.b64 %l1, [bar];
        WAIT: )" + wait + R"(
            @!%p1 bra WAIT;
            ld.shared.u32 %r7, [%r4];
            mad.lo.u32 %r8, %r5, 96, %r60;
            mul.wide.u32 %l2, %r8, 4;
            add.u64 %l2, %l2, %l60;
            st.global.u32 [%l2], %r7;
            mbarrier.arrive.shared.b64 %l1, [bar];
        WAIT2: mbarrier.try_wait.shared.b64 %p1, [bar], %l1;
            @!%p1 bra WAIT2;
            add.u32 %r5, %r5, 1;
            setp.lt.u32 %p2, %r5, 5;
            @%p2 bra ROUND;
        )", {1}, {threads}, {out.address()}, object);
        Words result = out.values();
        for (unsigned round = 0; round < rounds; ++round)
            for (unsigned t = 0; t < threads; ++t) REQUIRE(result[round * threads + t] == round * 1000 + (t + 37) % threads);
    }
}

TEST_CASE("mbarrier: no warp is two phases ahead of another's look", "[kernels][mbarrier]") {
    // The first thread completes each phase by itself, as where copies complete them; nothing but the waits keeps its
    // warp from the next one. On a GPU the others are there long before that (CUTLASS's tutorials count on it).
    constexpr unsigned threads = 160, rounds = 9;
    for (const std::string wait : {"mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r5, 20;", "mbarrier.test_wait.parity.shared.b64 %p1, [bar], %r5;"}) {
        Array<std::uint32_t> out(threads);
        run(init(1) + R"(
            mov.u32 %r1, 0;                 // round
            mov.u32 %r2, 0;                 // looks
        ROUND:
            @%p0 mbarrier.arrive.shared.b64 %l1, [bar];
            and.b32 %r5, %r1, 1;
        WAIT: )" + wait + R"(
            @%p1 bra NEXT;
            nanosleep.u32 20;
            add.u32 %r2, %r2, 1;
            setp.lt.u32 %p2, %r2, 2000;     // then it is lost
            @%p2 bra WAIT;
            bra END;
        NEXT:
            add.u32 %r1, %r1, 1;
            setp.lt.u32 %p2, %r1, 9;
            @%p2 bra ROUND;
        END:
            mul.wide.u32 %l2, %r60, 4;
            add.u64 %l2, %l2, %l60;
            st.global.u32 [%l2], %r1;
        )", {1}, {threads}, {out.address()}, object);
        REQUIRE(out.values() == Words(threads, rounds));
    }
}

TEST_CASE("mbarrier: a producer warp and consumer warps with full and empty barriers", "[kernels][mbarrier]") {
    // Warp 0's lane 0 fills a two-stage ring, warps 1 to 3 add up; parities as pipelines count them.
    constexpr unsigned items = 40;
    Array<std::uint32_t> out(96);
    run(R"(
        setp.ne.u32 %p0, %r60, 0;
        @%p0 bra MADE;
        mbarrier.init.shared.b64 [full], 1;
        mbarrier.init.shared.b64 [full+8], 1;
        mbarrier.init.shared.b64 [empty], 96;
        mbarrier.init.shared.b64 [empty+8], 96;
    MADE:
        bar.sync 0;
        mov.u32 %r10, full; mov.u32 %r11, empty; mov.u32 %r12, data;
        mov.u32 %r1, 0;                    // item
        mov.u32 %r9, 0;                    // sum
        setp.ge.u32 %p1, %r60, 32;
        @%p1 bra CONSUME;
        @%p0 bra DONE;                     // only lane 0 of warp 0
    PRODUCE:
        and.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 3;
        add.u32 %r3, %r10, %r2; add.u32 %r4, %r11, %r2; add.u32 %r5, %r12, %r2;
        shr.u32 %r6, %r1, 1; and.b32 %r6, %r6, 1; xor.b32 %r7, %r6, 1;
    PW: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r7;
        @!%p2 bra PW;
        mad.lo.u32 %r8, %r1, 3, 1;
        st.shared.u32 [%r5], %r8;
        mbarrier.arrive.shared.b64 _, [%r3];
        add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 40; @%p3 bra PRODUCE;
        bra DONE;
    CONSUME:
        and.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 3;
        add.u32 %r3, %r10, %r2; add.u32 %r4, %r11, %r2; add.u32 %r5, %r12, %r2;
        shr.u32 %r6, %r1, 1; and.b32 %r6, %r6, 1;
    CW: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r6;
        @!%p2 bra CW;
        ld.shared.u32 %r8, [%r5];
        add.u32 %r9, %r9, %r8;
        mbarrier.arrive.shared.b64 _, [%r4];
        add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 40; @%p3 bra CONSUME;
        sub.u32 %r2, %r60, 32; mul.wide.u32 %l1, %r2, 4; add.u64 %l1, %l1, %l60;
        st.global.u32 [%l1], %r9;
    DONE:
    )", {1}, {128}, {out.address()}, ".shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2]; .shared .align 8 .b64 data[2];");
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < items; ++i) sum += i * 3 + 1;
    CHECK(out.values() == Words(96, sum));
}

TEST_CASE("mbarrier: lanes of one warp wait for each other in different arms", "[kernels][mbarrier]") {
    // Lane 0 waits for the 31 others, who then wait for lane 0.
    for (const std::string wait : {"mbarrier.try_wait.parity.shared.b64 %p1, ", "mbarrier.test_wait.parity.shared.b64 %p1, "}) {
        Array<std::uint32_t> out(32);
        run(init(31) + init(1, "bar2") + R"(
            setp.ne.u32 %p2, %r60, 0;
            mov.u32 %r9, 7;
            @%p2 bra OTHERS;
        W1: )" + wait + R"([bar], 0;
            @!%p1 bra W1;
            mov.u32 %r1, 55;
            st.shared.u32 [data], %r1;
            mbarrier.arrive.shared.b64 %l5, [bar2];
            bra JOIN;
        OTHERS:
            mbarrier.arrive.shared.b64 %l5, [bar];
        W2: )" + wait + R"([bar2], 0;
            @!%p1 bra W2;
            ld.shared.u32 %r9, [data];
        JOIN:
            mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;
            st.global.u32 [%l1], %r9;
        )", {1}, {32}, {out.address()}, object);
        Words expected(32, 55);
        expected[0] = 7;
        CHECK(out.values() == expected);
    }
}

TEST_CASE("mbarrier: transactions hold a phase back", "[kernels][mbarrier]") {
    Array<std::uint32_t> out(64);
    run(init(1) + R"(
        setp.ge.u32 %p1, %r60, 32;
        @%p1 bra WAIT;
        @!%p0 bra DONE;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
        nanosleep.u32 1000;
        mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 32;
        mov.u32 %r1, 9;
        st.shared.u32 [data], %r1;
        nanosleep.u32 1000;
        mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 32;
        bra DONE;
    WAIT:
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [bar], 0;
        @!%p2 bra WAIT;
        ld.shared.u32 %r2, [data];
        mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;
        st.global.u32 [%l1], %r2;
    DONE:
    )", {1}, {64}, {out.address()}, object);
    Words expected(32, 0);
    expected.resize(64, 9);
    CHECK(out.values() == expected);
}

TEST_CASE("mbarrier: threads that drop out are not waited for", "[kernels][mbarrier]") {
    constexpr unsigned threads = 128;
    Array<std::uint32_t> out(threads);
    run(init(threads) + R"(
        setp.lt.u32 %p1, %r60, 50;
        mov.u32 %r5, 0;
    ROUND:
        setp.eq.u32 %p3, %r5, 3;
        and.pred %p3, %p3, %p1;
        @%p3 bra DROP;
        mbarrier.arrive.shared.b64 %l1, [bar];
    WAIT: mbarrier.try_wait.shared.b64 %p2, [bar], %l1;
        @!%p2 bra WAIT;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p2, %r5, 6;
        @%p2 bra ROUND;
        bra DONE;
    DROP:
        mbarrier.arrive_drop.shared.b64 %l1, [bar];
    DONE:
        mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;
        st.global.u32 [%l1], %r5;
    )", {1}, {threads}, {out.address()}, object);
    Words expected(threads, 6);
    for (unsigned t = 0; t < 50; ++t) expected[t] = 3;
    CHECK(out.values() == expected);
}

TEST_CASE("mbarrier: lanes that arrive for the last time right before a barrier are not held back by it", "[kernels][mbarrier]") {
    // cuda::barrier::arrive_and_drop() and __syncthreads(), behind different numbers of rounds.
    constexpr unsigned threads = 96;
    for (const std::string last : {"mbarrier.arrive_drop.shared.b64 _, [bar]; barrier.sync 0;", "mbarrier.arrive_drop.shared.b64 _, [bar]; vote.sync.ballot.b32 %r9, 1, 0xffffffff;"}) {
        Array<std::uint32_t> out(threads);
        run(init(threads) + R"(
            rem.u32 %r1, %r60, 5;
            mov.u32 %r5, 0;
            mov.u32 %r9, 0;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra DROP;
        ROUND:
            mbarrier.arrive.shared.b64 %l1, [bar];
        WAIT: mbarrier.try_wait.shared.b64 %p2, [bar], %l1;
            @!%p2 bra WAIT;
            add.u32 %r5, %r5, 1;
            setp.lt.u32 %p2, %r5, %r1;
            @%p2 bra ROUND;
        DROP: )" + last + R"(
            mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;
            st.global.u32 [%l1], %r5;
        )", {1}, {threads}, {out.address()}, object);
        const Words result = out.values();
        for (unsigned t = 0; t < threads; ++t) CHECK(result[t] == t % 5);
    }
}

TEST_CASE("mbarrier: try_wait gives up when its time is over", "[kernels][mbarrier]") {
    Array<std::uint32_t> out(32);
    run(init(1) + R"(
        mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0, 2000000;
        selp.u32 %r1, 1, 2, %p1;
        mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;
        selp.u32 %r2, 10, 20, %p1;
        mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        selp.u32 %r3, 100, 200, %p1;
        add.u32 %r1, %r1, %r2;
        add.u32 %r1, %r1, %r3;
        mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;
        st.global.u32 [%l1], %r1;
    )", {1}, {32}, {out.address()}, object);
    CHECK(out.values() == Words(32, 212));
}

TEST_CASE("mbarrier: generic addresses, and objects that differ by lane", "[kernels][mbarrier]") {
    // Each thread has an object of its own and waits for its neighbour's to be arrived at twice.
    constexpr unsigned threads = 64;
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u64 %l1, objects;
        cvta.shared.u64 %l1, %l1;
        mul.wide.u32 %l2, %r60, 8; add.u64 %l3, %l1, %l2;
        mbarrier.init.b64 [%l3], 2;
        bar.sync 0;
        xor.b32 %r1, %r60, 33;
        mul.wide.u32 %l4, %r1, 8; add.u64 %l4, %l1, %l4;
        mbarrier.arrive.b64 %l5, [%l3];
        mbarrier.arrive.b64 %l6, [%l4];
    W1: mbarrier.try_wait.b64 %p1, [%l3], %l5;
        @!%p1 bra W1;
    W2: mbarrier.test_wait.b64 %p1, [%l4], %l6;
        @!%p1 bra W2;
        mbarrier.test_wait.parity.b64 %p1, [%l3], 1;
        selp.u32 %r2, 1, 3, %p1;
        mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;
        st.global.u32 [%l1], %r2;
    )", {1}, {threads}, {out.address()}, ".shared .align 8 .b64 objects[64];");
    CHECK(out.values() == Words(threads, 3));
}
