// SPDX-License-Identifier: Apache-2.0
// Kernels with barriers whose threads also wait for memory: between two barriers the steps of a CTA take turns where
// they wait, and each must find what it had. tests/unit/jit/waiting_forms_test.cpp says which run so.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

/// %r20 is the thread's warp, %r21 its lane, %p7 holds in lanes other than the first.
const std::string warp_and_lane = R"(
        shr.u32 %r20, %r60, 5;
        and.b32 %r21, %r60, 31;
        setp.ne.u32 %p7, %r21, 0;
    )";

/// A barrier of the grid, by its threads 0: the counter at `counter` goes up by as many as there are CTAs, `goal` is
/// what it has come to then.
std::string grid_barrier(const std::string& name, const std::string& counter, const std::string& goal) {
    return "    bar.sync 0;\n    setp.ne.u32 %p6, %r60, 0;\n    @%p6 bra met_" + name + ";\n    red.release.gpu.global.add.u32 [" +
           counter + "], 1;\nlook_" + name + ":\n    ld.acquire.gpu.global.u32 %r50, [" + counter + "];\n    setp.lt.u32 %p5, %r50, " +
           goal + ";\n    @%p5 bra look_" + name + ";\nmet_" + name + ":\n    bar.sync 0;\n";
}

} // namespace

TEST_CASE("a token goes from the last warp to the first between two barriers", "[kernels][waits]") {
    for (const std::uint32_t threads : {64u, 200u, 1024u}) {
        const std::uint32_t warps = (threads + 31) / 32;
        Array<std::uint32_t> order(3 * warps);
        run(warp_and_lane + R"(
            mov.u32 %r22, %ntid.x;
            add.u32 %r22, %r22, 31;
            shr.u32 %r22, %r22, 5;
            sub.u32 %r23, %r22, 1;
            sub.u32 %r23, %r23, %r20;
            setp.ne.u32 %p0, %r60, 0;
            @%p0 bra begun;
            st.shared.u32 [token], 0;
        begun:
            mov.u32 %r10, 0;
        round:
            bar.sync 0;
            @%p7 bra met;
        wait:
            ld.volatile.shared.u32 %r0, [token];
            setp.ne.u32 %p1, %r0, %r23;
            @%p1 bra wait;
            mad.wide.u32 %l0, %r0, 4, %l60;
            st.global.u32 [%l0], %r20;
            add.u32 %r0, %r0, 1;
            st.volatile.shared.u32 [token], %r0;
        met:
            bar.sync 0;
            add.u32 %r23, %r23, %r22;
            add.u32 %r10, %r10, 1;
            setp.lt.u32 %p2, %r10, 3;
            @%p2 bra round;
        )", {1}, {threads}, {order.address()}, ".shared .align 4 .b32 token;\n");
        std::vector<std::uint32_t> expected;
        for (std::uint32_t i = 0; i < 3 * warps; ++i) expected.push_back(warps - 1 - i % warps);
        CHECK(order.values() == expected);
    }
}

TEST_CASE("two warps answer each other in a loop without barriers", "[kernels][waits]") {
    Array<std::uint32_t> out(96), heard(20);
    // The wait is inside of the loop that counts; the third warp has nothing to do with it.
    run(warp_and_lane + R"(
            setp.ne.u32 %p0, %r60, 0;
            @%p0 bra begun;
            st.shared.v2.u32 [word], {%r20, %r20};
        begun:
            mov.u32 %r30, word;
            mov.u32 %r11, 17;
            bar.sync 0;
            setp.gt.u32 %p1, %r20, 1;
            or.pred %p1, %p1, %p7;
            @%p1 bra met;
            xor.b32 %r1, %r20, 1;
            shl.b32 %r2, %r20, 2;
            shl.b32 %r3, %r1, 2;
            add.u32 %r2, %r2, %r30;
            add.u32 %r3, %r3, %r30;
            mov.u32 %r10, 0;
        round:
            add.u32 %r12, %r10, %r1;
        wait:
            ld.volatile.shared.u32 %r4, [%r3];
            setp.lt.u32 %p2, %r4, %r12;
            @%p2 bra wait;
            add.u32 %r10, %r10, 1;
            mul.lo.u32 %r11, %r11, 5;
            add.u32 %r11, %r11, %r4;
            st.volatile.shared.u32 [%r2], %r10;
            setp.lt.u32 %p3, %r10, 10;
            @%p3 bra round;
        met:
            bar.sync 0;
            mad.wide.u32 %l0, %r60, 4, %l60;
            st.global.u32 [%l0], %r11;
    )", {1}, {96}, {out.address()}, ".shared .align 8 .b32 word[2];\n");
    std::vector<std::uint32_t> expected(96, 17);
    // Warp 0 goes on when the other has said as many as it, plus one; so warp 1 is always ahead.
    std::uint32_t first = 17, second = 17;
    for (std::uint32_t i = 0; i < 10; ++i) {
        second = second * 5 + i;
        first = first * 5 + i + 1;
    }
    expected[0] = first;
    expected[32] = second;
    CHECK(out.values() == expected);
}

TEST_CASE("what a step has when it stops to wait it has when it goes on", "[kernels][waits]") {
    constexpr std::uint32_t threads = 200;
    Array<std::uint32_t> out(4 * threads);
    // The last warp says go, in each of three rounds; values of every kind cross the wait.
    run(warp_and_lane + R"(
            setp.ne.u32 %p0, %r60, 0;
            @%p0 bra begun;
            st.shared.u32 [go], 0;
        begun:
            mov.u32 %r10, 0;
            mov.u32 %r3, %r60;
            cvt.rn.f64.u32 %d0, %r60;
            cvt.u16.u32 %h0, %r60;
            setp.gt.u32 %p4, %r21, 11;
            mov.u32 %r40, 5;
            mul.lo.u32 %r41, %r60, 12;
            mul.lo.u32 %r42, %r60, %r60;
        round:
            bar.sync 0;
            add.u32 %r10, %r10, 1;
            add.rn.f64 %d0, %d0, 0d3FE0000000000000;
            setp.eq.u32 %p1, %r20, 6;
            @!%p1 bra wait;
            st.volatile.shared.u32 [go], %r10;
        wait:
            ld.volatile.shared.u32 %r0, [go];
            setp.lt.u32 %p2, %r0, %r10;
            xor.b32 %r42, %r42, %r0;
            xor.b32 %r42, %r42, %r0;
            @%p2 bra wait;
            add.u16 %h0, %h0, 3;
            not.pred %p4, %p4;
            add.u32 %r40, %r40, %r10;
            add.u32 %r41, %r41, %r40;
            mad.lo.u32 %r42, %r42, 3, %r41;
            bar.sync 0;
            setp.lt.u32 %p3, %r10, 3;
            @%p3 bra round;
            selp.u32 %r12, 1, 0, %p4;
            cvt.u32.u16 %r13, %h0;
            mad.lo.u32 %r12, %r13, 2, %r12;
            add.rn.f64 %d0, %d0, %d0;
            cvt.rzi.u32.f64 %r14, %d0;
            mad.wide.u32 %l0, %r60, 16, %l60;
            st.global.v4.u32 [%l0], {%r12, %r14, %r41, %r42};
    )", {2}, {threads}, {out.address()}, ".shared .align 4 .b32 go;\n");
    const auto results = out.values();
    for (std::uint32_t t = 0; t < threads; ++t) {
        std::uint32_t sum = 5, affine = 12 * t, square = t * t;
        for (std::uint32_t round = 1; round <= 3; ++round) {
            sum += round;
            affine += sum;
            square = square * 3 + affine;
        }
        INFO(t);
        CHECK(results[4 * t] == ((t + 9) * 2 + !(t % 32 > 11)));
        CHECK(results[4 * t + 1] == 2 * t + 3);
        CHECK(results[4 * t + 2] == affine);
        CHECK(results[4 * t + 3] == square);
    }
}

TEST_CASE("what is computed anew in front of a wait, and used behind the barrier before", "[kernels][waits]") {
    constexpr std::uint32_t threads = 128;
    Array<std::uint32_t> out(threads);
    // From the barrier on the round's end, the next one's begin and its wait are one region.
    run(warp_and_lane + R"(
            setp.ne.u32 %p0, %r60, 0;
            @%p0 bra begun;
            st.shared.u32 [go], 0;
        begun:
            mov.u32 %r10, 0;
            mov.u32 %r6, 1;
            setp.eq.u32 %p1, %r20, 3;
            bar.sync 0;
        round:
            add.u32 %r10, %r10, 1;
            mul.lo.u32 %r5, %r60, %r10;
            xor.b32 %r5, %r5, %r10;
            @!%p1 bra wait;
            st.volatile.shared.u32 [go], %r10;
        wait:
            ld.volatile.shared.u32 %r0, [go];
            setp.lt.u32 %p2, %r0, %r10;
            @%p2 bra wait;
            mad.lo.u32 %r6, %r6, 3, %r5;
            bar.sync 0;
            xor.b32 %r6, %r6, %r5;
            setp.lt.u32 %p3, %r10, 4;
            @%p3 bra round;
            mad.wide.u32 %l0, %r60, 4, %l60;
            st.global.u32 [%l0], %r6;
    )", {2}, {threads}, {out.address()}, ".shared .align 4 .b32 go;\n");
    const auto results = out.values();
    for (std::uint32_t t = 0; t < threads; ++t) {
        std::uint32_t sum = 1;
        for (std::uint32_t round = 1; round <= 4; ++round) sum = (sum * 3 + (t * round ^ round)) ^ (t * round ^ round);
        INFO(t);
        CHECK(results[t] == sum);
    }
}

TEST_CASE("lanes leave a wait at different rounds, and some never come to it", "[kernels][waits]") {
    constexpr std::uint32_t threads = 160, ctas = 3;
    Array<std::uint32_t> out(ctas * threads), flags(ctas * (threads + 32));
    // Each thread sets the flag of the one a warp and a few lanes before it, then waits for its own; the last warp's are
    // set at once. Every seventh thread exits first, and its flags' threads don't wait.
    run(R"(
            rem.u32 %r1, %r60, 7;
            setp.eq.u32 %p0, %r1, 6;
            @%p0 ret;
            mov.u32 %r40, %r62;
            mul.lo.u32 %r2, %r61, 192;
            add.u32 %r3, %r2, %r60;
            mad.wide.u32 %l0, %r3, 4, %l61;
            bar.sync 0;
            setp.lt.u32 %p1, %r60, 35;
            @%p1 bra said;
            st.volatile.global.u32 [%l0+-140], 1;
        said:
            setp.gt.u32 %p2, %r60, 124;
            setp.eq.or.u32 %p2, %r1, 6, %p2;
            mov.u32 %r5, 100;
            @%p2 bra met;
        wait:
            ld.volatile.global.u32 %r4, [%l0];
            add.u32 %r5, %r4, 1;
            setp.eq.u32 %p3, %r4, 0;
            @%p3 bra wait;
        met:
            bar.sync 0;
            mad.wide.u32 %l1, %r62, 4, %l60;
            st.global.u32 [%l1], %r5;
    )", {ctas}, {threads}, {out.address(), flags.address()});
    std::vector<std::uint32_t> expected(ctas * threads, 0);
    for (std::uint32_t i = 0; i < ctas * threads; ++i) {
        const std::uint32_t t = i % threads;
        if (t % 7 != 6) expected[i] = t > 124 ? 100 : 2;
    }
    CHECK(out.values() == expected);
}

TEST_CASE("blocks take a lock for what they do between barriers", "[kernels][waits]") {
    Array<std::uint32_t> lock(1), counts(96);
    run(R"(
            setp.ne.u32 %p0, %r60, 0;
            mad.wide.u32 %l0, %r60, 4, %l61;
            mov.u32 %r10, 0;
        round:
            @%p0 bra taken;
        wait:
            atom.acquire.gpu.global.cas.b32 %r0, [%l60], 0, 1;
            setp.ne.u32 %p1, %r0, 0;
            @%p1 bra wait;
        taken:
            bar.sync 0;
            ld.volatile.global.u32 %r1, [%l0];
            add.u32 %r1, %r1, 1;
            st.volatile.global.u32 [%l0], %r1;
            membar.gl;
            bar.sync 0;
            @%p0 bra given;
            atom.release.gpu.global.exch.b32 %r2, [%l60], 0;
        given:
            add.u32 %r10, %r10, 1;
            setp.lt.u32 %p2, %r10, 5;
            @%p2 bra round;
    )", {12}, {96}, {lock.address(), counts.address()});
    CHECK(counts.values() == std::vector<std::uint32_t>(96, 60));
}

TEST_CASE("lanes of a warp wait for each other between barriers", "[kernels][waits]") {
    // The next lane's flag, then the own one: masks would hold back who is waited for.
    Array<std::uint32_t> flags(2 * 97);
    run(R"(
            mad.lo.u32 %r1, %r61, 97, %r60;
            mad.wide.u32 %l0, %r1, 4, %l60;
            bar.sync 0;
            mov.u32 %r0, 0;
            setp.eq.u32 %p0, %r60, 95;
            @%p0 bra go;
        wait:
            ld.volatile.global.u32 %r0, [%l0+4];
            setp.eq.u32 %p1, %r0, 0;
            @%p1 bra wait;
        go:
            add.u32 %r0, %r0, 1;
            st.volatile.global.u32 [%l0], %r0;
            bar.sync 0;
    )", {2}, {96}, {flags.address()});
    std::vector<std::uint32_t> expected;
    for (unsigned cta = 0; cta < 2; ++cta) {
        for (std::uint32_t i = 0; i < 96; ++i) expected.push_back(96 - i);
        expected.push_back(0);
    }
    CHECK(flags.values() == expected);
}

TEST_CASE("all CTAs meet, some warps and lanes of which have exited", "[kernels][waits]") {
    for (const auto& [ctas, threads] : {std::pair{20u, 100u}, std::pair{40u, 32u}, std::pair{7u, 1024u}}) {
        Array<std::uint32_t> counters(4), sums(ctas);
        std::string body = R"(
            setp.gt.u32 %p0, %r60, 70;
            @%p0 ret;
            and.b32 %r1, %r60, 31;
            setp.eq.u32 %p0, %r1, 13;
            @%p0 ret;
            mov.u32 %r10, %nctaid.x;
            mad.wide.u32 %l0, %r61, 4, %l61;
        )";
        for (int round = 1; round <= 3; ++round) {
            const std::string counter = "%l60+" + std::to_string(4 * round);
            body += "    red.global.add.u32 [%l0], %r60;\n    red.global.add.u32 [%l60], 1;\n";
            body += grid_barrier(std::to_string(round), counter, "%r10");
        }
        run(body, {ctas}, {threads}, {counters.address(), sums.address()});
        std::uint32_t live = 0, sum = 0;
        for (std::uint32_t t = 0; t < threads && t <= 70; ++t)
            if (t % 32 != 13) ++live, sum += t;
        CHECK(counters.values() == std::vector<std::uint32_t>{3 * live * ctas, ctas, ctas, ctas});
        CHECK(sums.values() == std::vector<std::uint32_t>(ctas, 3 * sum));
    }
}

TEST_CASE("a wait that sleeps, between barriers", "[kernels][waits]") {
    Array<std::uint32_t> flag(1), out(128);
    run(warp_and_lane + R"(
            bar.sync 0;
            setp.eq.u32 %p0, %r20, 3;
            @!%p0 bra wait;
            st.volatile.global.u32 [%l60], 9;
        wait:
            ld.volatile.global.u32 %r0, [%l60];
            nanosleep.u32 100;
            setp.eq.u32 %p1, %r0, 0;
            @%p1 bra wait;
            bar.sync 0;
            mad.wide.u32 %l0, %r60, 4, %l61;
            st.global.u32 [%l0], %r0;
    )", {1}, {128}, {flag.address(), out.address()});
    CHECK(out.values() == std::vector<std::uint32_t>(128, 9));
}

// Hidden, as those of resident_ctas_test.cpp: with a limit of time.
TEST_CASE("two blocks of 1,024 threads for each multiprocessor meet three times", "[.][resident][meet]") {
    constexpr std::uint32_t ctas = 264, threads = 1024;
    Array<std::uint32_t> counters(4), cells(ctas);
    std::string body = "    mov.u32 %r10, %nctaid.x;\n    mad.wide.u32 %l0, %r61, 4, %l61;\n";
    for (int round = 1; round <= 3; ++round)
        body += "    red.global.add.u32 [%l0], 1;\n" +
                grid_barrier(std::to_string(round), "%l60+" + std::to_string(4 * round), "%r10");
    run(body, {ctas}, {threads}, {counters.address(), cells.address()});
    CHECK(counters.values() == std::vector<std::uint32_t>{0, ctas, ctas, ctas});
    CHECK(cells.values() == std::vector<std::uint32_t>(ctas, 3 * threads));
}

TEST_CASE("CTAs go one after the other, between barriers that a word in memory leads to", "[kernels][waits]") {
    // As cuBLAS' split-k products: who knows whether all warps read the same word? Odd CTAs take the other arm.
    const auto turn = [](const std::string& name, const std::string& factor) {
        return name + R"(:
            bar.sync 0;
            @%p0 bra mine_)" + name + R"(;
        look_)" + name + R"(:
            ld.relaxed.gpu.global.u32 %r1, [%l61];
            fence.acq_rel.gpu;
            setp.ne.u32 %p1, %r1, %r61;
            @%p1 bra look_)" + name + R"(;
        mine_)" + name + R"(:
            bar.sync 0;
            ld.global.u32 %r2, [%l0];
            mad.lo.u32 %r2, %r2, )" + factor + R"(, %r61;
            add.u32 %r2, %r2, %r60;
            st.global.u32 [%l0], %r2;
            bar.sync 0;
            @%p0 bra end;
            fence.acq_rel.gpu;
            red.relaxed.gpu.global.add.u32 [%l61], 1;
            bra end;
        )";
    };
    const std::uint32_t ctas = 24, threads = 96;
    std::vector<std::uint32_t> parity;
    for (std::uint32_t i = 0; i < ctas; ++i) parity.push_back(i % 2);
    Array<std::uint32_t> sums(threads), semaphore(1), arms(parity);
    run(R"(
            mov.u32 %r61, %ctaid.x;
            setp.ne.u32 %p0, %r60, 0;
            mad.wide.u32 %l0, %r60, 4, %l60;
            mad.wide.u32 %l1, %r61, 4, %l62;
            ld.global.u32 %r0, [%l1];
            setp.ne.u32 %p2, %r0, 0;
            @%p2 bra odd;
    )" + turn("even", "3") + turn("odd", "5") + "end:\n",
        {ctas}, {threads}, {sums.address(), semaphore.address(), arms.address()});
    std::vector<std::uint32_t> expected(threads, 0);
    for (std::uint32_t cta = 0; cta < ctas; ++cta)
        for (std::uint32_t i = 0; i < threads; ++i) expected[i] = expected[i] * (cta % 2 ? 5 : 3) + cta + i;
    CHECK(sums.values() == expected);
}
