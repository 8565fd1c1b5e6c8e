// SPDX-License-Identifier: Apache-2.0
// Loops in which steps take turns: what a step knows when it stops must be there when it goes on. Run with PTARMIGAN_BARRIERS=turns
// every loop stops at each round.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 200; ///< the last warp is not whole
constexpr unsigned stride = 2048; ///< elements from one round to the next: further than a page

} // namespace

TEST_CASE("sums over rounds that lie far apart", "[kernels][turns]") {
    // 20 rounds are two turns and a half; threads have different numbers of rounds, some none.
    constexpr unsigned rounds = 20;
    std::vector<std::uint32_t> input(rounds * stride);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::uint32_t(i * 2654435761u);
    Array<std::uint32_t> in(input), out(threads);
    run(R"(
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l1, %l60, %l0;
        rem.u32 %r1, %r60, 21;
        mov.u32 %r2, 0;
        mov.u32 %r3, 0;
        setp.eq.u32 %p0, %r1, 0;
        @%p0 bra done;
    loop:
        ld.global.u32 %r4, [%l1];
        add.u32 %r3, %r3, %r4;
        add.u64 %l1, %l1, 8192;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, %r1;
        @%p1 bra loop;
    done:
        add.u64 %l2, %l61, %l0;
        st.global.u32 [%l2], %r3;
    )", {1}, {threads}, {in.address(), out.address()});
    const auto results = out.values();
    for (std::uint32_t t = 0; t < threads; ++t) {
        std::uint32_t sum = 0;
        for (unsigned round = 0; round < t % 21; ++round) sum += input[round * stride + t];
        CHECK(results[t] == sum);
    }
}

TEST_CASE("lanes wait behind a loop with values of every kind, and leave it by two ways", "[kernels][turns]") {
    constexpr unsigned rounds = 30;
    std::vector<std::uint32_t> input(rounds * stride);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::uint32_t(i * 40503u + 7) % 97;
    Array<std::uint32_t> in(input), out(4 * threads);
    // Every fifth thread goes round the loop; others leave when they find a multiple of 31, or after 30 rounds.
    run(R"(
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l1, %l60, %l0;
        mov.u32 %r2, 0;
        mov.u32 %r3, 0;
        cvt.rn.f64.u32 %d0, %r60;
        cvt.u16.u32 %h0, %r60;
        rem.u32 %r10, %r60, 5;
        setp.eq.u32 %p0, %r10, 0;
        setp.gt.u32 %p3, %r10, 2;
        mov.u32 %r11, 77;
        @%p0 bra behind;
    loop:
        ld.global.u32 %r4, [%l1];
        rem.u32 %r5, %r4, 31;
        setp.eq.u32 %p1, %r5, 0;
        @%p1 bra found;
        xor.b32 %r3, %r3, %r4;
        add.rn.f64 %d0, %d0, 0d3FE0000000000000;
        add.u16 %h0, %h0, 3;
        not.pred %p3, %p3;
        add.u64 %l1, %l1, 8192;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 30;
        @%p2 bra loop;
        mov.u32 %r11, 11;
        bra behind;
    found:
        add.u32 %r11, %r2, 1000;
    behind:
        selp.u32 %r12, 1, 0, %p3;
        cvt.u32.u16 %r13, %h0;
        shl.b32 %r13, %r13, 1;
        or.b32 %r12, %r12, %r13;
        add.rn.f64 %d0, %d0, %d0;
        cvt.rzi.u32.f64 %r14, %d0;
        mul.wide.u32 %l2, %r60, 16;
        add.u64 %l3, %l61, %l2;
        st.global.v4.u32 [%l3], {%r3, %r11, %r12, %r14};
    )", {1}, {threads}, {in.address(), out.address()});
    const auto results = out.values();
    for (std::uint32_t t = 0; t < threads; ++t) {
        std::uint32_t mix = 0, how = 77, halves = 2 * t;
        std::uint16_t h = std::uint16_t(t);
        bool flag = t % 5 > 2;
        if (t % 5 != 0) {
            how = 11;
            for (unsigned round = 0; round < rounds; ++round) {
                const std::uint32_t value = input[round * stride + t];
                if (value % 31 == 0) {
                    how = 1000 + round;
                    break;
                }
                mix ^= value, halves += 1, h = std::uint16_t(h + 3), flag = !flag;
            }
        }
        INFO(t);
        CHECK(results[4 * t] == mix);
        CHECK(results[4 * t + 1] == how);
        CHECK(results[4 * t + 2] == (std::uint32_t(h) << 1 | (flag ? 1u : 0u)));
        CHECK(results[4 * t + 3] == halves);
    }
}

TEST_CASE("turns before and behind barriers, and with warps that have exited", "[kernels][turns]") {
    constexpr unsigned rounds = 12;
    std::vector<std::uint32_t> input(rounds * stride);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::uint32_t(i ^ i >> 7);
    Array<std::uint32_t> in(input), out(threads);
    // Two loops that take turns in one region, a barrier, exits, and one more loop whose bound the first one's neighbours have stored.
    run(R"(
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l1, %l60, %l0;
        mov.u64 %l5, %l1;
        mov.u32 %r2, 0;
        mov.u32 %r3, 0;
    first:
        ld.global.u32 %r4, [%l1];
        add.u32 %r3, %r3, %r4;
        add.u64 %l1, %l1, 8192;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, 12;
        @%p1 bra first;
        mov.u64 %l1, %l5;
        mov.u32 %r2, 0;
    second:
        ld.global.u32 %r4, [%l1];
        mad.lo.u32 %r3, %r4, 3, %r3;
        add.u64 %l1, %l1, 16384;
        add.u32 %r2, %r2, 2;
        setp.lt.u32 %p1, %r2, 12;
        @%p1 bra second;
        mov.u32 %r20, s;
        cvt.u32.u64 %r21, %l0;
        add.u32 %r20, %r20, %r21;
        st.shared.u32 [%r20], %r3;
        setp.lt.u32 %p4, %r60, 64;
        @%p4 bra out;
        bar.sync 0;
        ld.shared.u32 %r22, [%r20+-256];
        rem.u32 %r22, %r22, 13;
        mov.u32 %r2, 0;
        mov.u64 %l1, %l5;
        setp.eq.u32 %p2, %r22, 0;
        @%p2 bra out;
    third:
        ld.global.u32 %r4, [%l1];
        add.u32 %r3, %r3, %r4;
        add.u64 %l1, %l1, 8192;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, %r22;
        @%p1 bra third;
    out:
        add.u64 %l2, %l61, %l0;
        st.global.u32 [%l2], %r3;
    )", {1}, {threads}, {in.address(), out.address()}, ".shared .b32 s[200];");
    const auto results = out.values();
    std::vector<std::uint32_t> sums(threads, 0);
    for (std::uint32_t t = 0; t < threads; ++t) {
        for (unsigned round = 0; round < rounds; ++round) sums[t] += input[round * stride + t];
        for (unsigned round = 0; round < rounds; round += 2) sums[t] += 3 * input[round * stride + t];
    }
    for (std::uint32_t t = 0; t < threads; ++t) {
        std::uint32_t sum = sums[t];
        if (t >= 64)
            for (unsigned round = 0; round < sums[t - 64] % 13; ++round) sum += input[round * stride + t];
        INFO(t);
        CHECK(results[t] == sum);
    }
}

TEST_CASE("warps wait for each other in the middle of a loop of turns", "[kernels][turns]") {
    // A loop with a barrier around one without: the outer is cut, the inner takes turns.
    std::vector<std::uint32_t> input(16 * stride);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::uint32_t(i % 1009);
    Array<std::uint32_t> in(input), out(threads);
    run(R"(
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l1, %l60, %l0;
        mov.u32 %r3, 0;
        mov.u32 %r6, 0;
        mov.u32 %r20, s;
        cvt.u32.u64 %r21, %l0;
        add.u32 %r23, %r20, %r21;
    outer:
        mov.u32 %r2, 0;
    inner:
        ld.global.u32 %r4, [%l1];
        add.u32 %r3, %r3, %r4;
        add.u64 %l1, %l1, 8192;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, 4;
        @%p1 bra inner;
        st.shared.u32 [%r23], %r3;
        bar.sync 0;
        mov.u32 %r24, 796;
        sub.u32 %r24, %r24, %r21;
        add.u32 %r24, %r24, %r20;
        ld.shared.u32 %r25, [%r24];
        bar.sync 0;
        xor.b32 %r3, %r3, %r25;
        add.u32 %r6, %r6, 1;
        setp.lt.u32 %p2, %r6, 4;
        @%p2 bra outer;
        add.u64 %l2, %l61, %l0;
        st.global.u32 [%l2], %r3;
    )", {1}, {threads}, {in.address(), out.address()}, ".shared .b32 s[200];");
    std::vector<std::uint32_t> sums(threads, 0), expected;
    for (unsigned outer = 0; outer < 4; ++outer) {
        for (std::uint32_t t = 0; t < threads; ++t)
            for (unsigned round = 0; round < 4; ++round) sums[t] += input[(outer * 4 + round) * stride + t];
        expected = sums;
        for (std::uint32_t t = 0; t < threads; ++t) sums[t] = expected[t] ^ expected[threads - 1 - t];
    }
    CHECK(out.values() == sums);
}
