// SPDX-License-Identifier: Apache-2.0
// Values that live across barriers, where they are kept in the step's frame and share places.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {
constexpr unsigned threads = 72; ///< not a multiple of the warp
} // namespace

TEST_CASE("values of every size change places across barriers", "[kernels][barriers]") {
    Array<std::uint32_t> out(threads * 8);
    run(R"(
        cvt.u16.u32 %h0, %r62;
        add.u16 %h1, %h0, 1000;
        mov.u32 %r0, %r62;
        add.u32 %r1, %r62, 5000;
        mul.lo.u32 %r2, %r62, %r62;
        cvt.u64.u32 %l0, %r2;
        shl.b64 %l0, %l0, 30;
        not.b64 %l1, %l0;
        and.b32 %r3, %r2, 4;
        setp.ne.u32 %p0, %r3, 0;
        setp.eq.u32 %p1, %r3, 0;
        cvt.rn.f64.u32 %d0, %r2;
        neg.f64 %d1, %d0;
        mov.u32 %r10, 0;
    loop:
        bar.sync 0;
        mov.b16 %h2, %h0; mov.b16 %h0, %h1; mov.b16 %h1, %h2;
        mov.b32 %r4, %r0; mov.b32 %r0, %r1; mov.b32 %r1, %r4;
        mov.b64 %l2, %l0; mov.b64 %l0, %l1; mov.b64 %l1, %l2;
        mov.pred %p2, %p0; mov.pred %p0, %p1; mov.pred %p1, %p2;
        bar.sync 0;
        mov.f64 %d2, %d0; mov.f64 %d0, %d1; mov.f64 %d1, %d2;
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p3, %r10, 5;
        @%p3 bra loop;
        mul.wide.u32 %l10, %r62, 32;
        add.u64 %l10, %l60, %l10;
        cvt.u32.u16 %r20, %h0;
        cvt.u32.u16 %r21, %h1;
        selp.u32 %r22, 1, 0, %p0;
        selp.u32 %r23, 1, 0, %p1;
        st.global.v4.b32 [%l10], {%r20, %r21, %r0, %r1};
        cvt.rzi.s32.f64 %r24, %d0;
        shr.u64 %l0, %l0, 30;
        cvt.u32.u64 %r25, %l0;
        st.global.v4.b32 [%l10+16], {%r22, %r23, %r24, %r25};
    )", {1}, {threads}, {out.address()});
    const auto results = out.values();
    for (std::uint32_t i = 0; i < threads; ++i) {
        INFO(i);
        const std::uint32_t* got = &results[8 * i];
        CHECK(got[0] == i + 1000);
        CHECK(got[1] == i);
        CHECK(got[2] == i + 5000);
        CHECK(got[3] == i);
        CHECK(got[4] == ((i * i & 4) ? 0 : 1));
        CHECK(got[5] == ((i * i & 4) ? 1 : 0));
        CHECK(std::int32_t(got[6]) == -std::int32_t(i * i));
        CHECK(got[7] == std::uint32_t(~(std::uint64_t(i) * i << 30) >> 30));
    }
}

TEST_CASE("a barrier leaves the bits of NaNs alone", "[kernels][barriers]") {
    // Loaded NaNs keep their payload, those of arithmetic are the hardware's, whichever way they were kept.
    std::vector<std::uint32_t> values(threads);
    for (unsigned i = 0; i < threads; ++i) values[i] = i % 3 == 0 ? 0x7f812345u + i : i % 3 == 1 ? 0xffc00000u | i : 0x3f800000u;
    Array<std::uint32_t> in(values), out(threads * 4);
    run(R"(
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l1, %l60, %l0;
        ld.global.f32 %f0, [%l1];
        mov.f32 %f1, 0f00000000;
        mov.f32 %f2, %f0;
        mov.f32 %f3, 0f00000000;
        mov.u32 %r10, 0;
    loop:
        bar.sync 0;
        fma.rn.f32 %f1, %f0, 0f40000000, %f1;
        and.b32 %r11, %r10, 1;
        setp.eq.u32 %p0, %r11, 0;
        @%p0 add.f32 %f2, %f0, 0f3F800000;
        @!%p0 mov.f32 %f2, %f0;
        sub.f32 %f3, %f3, %f1;
        bar.sync 0;
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p3, %r10, 4;
        @%p3 bra loop;
        bar.sync 0;
        mul.wide.u32 %l2, %r62, 16;
        add.u64 %l3, %l61, %l2;
        st.global.v4.f32 [%l3], {%f0, %f1, %f2, %f3};
    )", {1}, {threads}, {in.address(), out.address()});
    const auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        INFO(i);
        const bool is_nan = i % 3 != 2;
        CHECK(results[4 * i] == values[i]);
        CHECK(results[4 * i + 1] == (is_nan ? 0x7fffffffu : 0x41000000u)); // 4 * 2
        CHECK(results[4 * i + 2] == values[i]);                            // the last turn copied
        CHECK(results[4 * i + 3] == (is_nan ? 0x7fffffffu : 0xc1a00000u)); // -(2 + 4 + 6 + 8)
    }
}

TEST_CASE("lanes a constant distance apart load and store their own elements", "[kernels][memory]") {
    // Through shared memory of 33 words a row: columns are read and written.
    Array<std::uint32_t> out(32 * 32);
    run(R"(
        mul.lo.u32 %r0, %r60, 132;
        mov.u32 %r1, tile;
        add.u32 %r2, %r1, %r0;
        mov.u32 %r10, 0;
    fill:
        shl.b32 %r3, %r10, 2;
        add.u32 %r4, %r2, %r3;
        shl.b32 %r5, %r60, 8;
        or.b32 %r5, %r5, %r10;
        st.shared.b32 [%r4], %r5;
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p0, %r10, 32;
        @%p0 bra fill;
        bar.sync 0;
        mov.u32 %r10, 0;
    read:
        shl.b32 %r3, %r10, 2;
        add.u32 %r4, %r2, %r3;
        ld.shared.b32 %r6, [%r4];
        shl.b32 %r7, %r10, 5;
        add.u32 %r7, %r7, %r60;
        mul.wide.u32 %l0, %r7, 4;
        add.u64 %l1, %l60, %l0;
        st.global.b32 [%l1], %r6;
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p0, %r10, 32;
        @%p0 bra read;
    )", {1}, {32}, {out.address()}, ".shared .align 4 .b8 tile[4224];");
    const auto results = out.values();
    for (unsigned row = 0; row < 32; ++row)
        for (unsigned lane = 0; lane < 32; ++lane) CHECK(results[row * 32 + lane] == (lane << 8 | row));
}

TEST_CASE("scans upward and downward, whose steps may run in either order", "[kernels][barriers]") {
    // Each round reads words on one side of what it writes, with a barrier between.
    constexpr unsigned many = 200;
    Array<std::uint32_t> out(many * 2);
    std::string body = R"(
        mov.u32 %r1, words;
        mad.lo.u32 %r2, %r62, 4, %r1;
        add.u32 %r3, %r62, 1;
        st.shared.u32 [%r2], %r3;
        st.shared.u32 [%r2 + 800], %r3;
        bar.sync 0;
    )";
    for (unsigned distance = 1; distance < many; distance *= 2) {
        const std::string bytes = std::to_string(4 * distance), round = std::to_string(distance);
        body += "mov.u32 %r4, 0; setp.lt.u32 %p0, %r62, " + round + "; @%p0 bra below" + round + ";" +
                "ld.shared.u32 %r4, [%r2 + -" + bytes + "]; below" + round + ": bar.sync 0;" +
                "ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.shared.u32 [%r2], %r5; bar.sync 0;\n" +
                "mov.u32 %r4, 0; setp.ge.u32 %p0, %r62, " + std::to_string(many - distance) + "; @%p0 bra above" + round +
                "; ld.shared.u32 %r4, [%r2 + " + std::to_string(800 + 4 * distance) + "]; above" + round + ": bar.sync 0;" +
                "ld.shared.u32 %r5, [%r2 + 800]; add.u32 %r5, %r5, %r4; st.shared.u32 [%r2 + 800], %r5; bar.sync 0;\n";
    }
    body += R"(
        mul.wide.u32 %l0, %r62, 8;
        add.u64 %l0, %l60, %l0;
        ld.shared.u32 %r4, [%r2];
        ld.shared.u32 %r5, [%r2 + 800];
        st.global.v2.u32 [%l0], {%r4, %r5};
    )";
    run(body, {1}, {many}, {out.address()}, ".shared .align 4 .b8 words[1600];\n");
    const auto results = out.values();
    for (std::uint32_t i = 0; i < many; ++i) {
        INFO(i);
        CHECK(results[2 * i] == (i + 1) * (i + 2) / 2);
        CHECK(results[2 * i + 1] == many * (many + 1) / 2 - i * (i + 1) / 2);
    }
}

TEST_CASE("barriers wait for threads that exit without them, which are done with memory then", "[kernels][barriers]") {
    for (const unsigned many : {16u, 32u, 128u})
    for (const std::string barrier : {"bar.sync 0;", "bar.sync 1;", "barrier.red.popc.u32 %r9, 0, %p1;"})
        for (const std::string leave : {"and.b32 %r4, %r62, 1; setp.eq.u32 %p0, %r4, 1;", "setp.ge.u32 %p0, %r62, %r7;"}) {
            const bool odd = leave.starts_with("and");
            Array<std::uint32_t> out(many);
            run(R"(
                mov.u32 %r1, words;
                mad.lo.u32 %r2, %r62, 4, %r1;
                mul.wide.u32 %l0, %r62, 4;
                add.u64 %l0, %l60, %l0;
                add.u32 %r3, %r62, 100;
                mov.u32 %r7, %ntid.x;
                shr.u32 %r7, %r7, 1;
                setp.eq.u32 %p1, %r62, 0;
                st.shared.u32 [%r2], %r3;
                bar.sync 0;
            )" + leave + "@!%p0 bra stay; ld.shared.u32 %r5, [%r2 + " + (odd ? "-4" : "-" + std::to_string(2 * many)) + R"(];
                st.global.u32 [%l0], %r5;
                ret;
            stay:
                ld.shared.u32 %r5, [%r2];
            )" + barrier + "st.shared.u32 [%r2], 7;" + barrier + R"(
                ld.shared.u32 %r6, [%r2];
                add.u32 %r5, %r5, %r6;
                st.global.u32 [%l0], %r5;
            )",
                {1}, {many}, {out.address()}, ".shared .align 4 .b8 words[512];\n");
            const auto results = out.values();
            for (std::uint32_t i = 0; i < many; ++i) {
                INFO(barrier << " " << leave << " " << i);
                const bool exits = odd ? i % 2 == 1 : i >= many / 2;
                CHECK(results[i] == (exits ? i + 100 - (odd ? 1 : many / 2) : i + 107));
            }
        }
}

TEST_CASE("a chain of branches that may come to any of many barriers", "[kernels][barriers]") {
    // Bit by bit of a number: where it is set, each thread adds what its neighbour has.
    constexpr unsigned bits = 60;
    constexpr std::uint64_t number = 0x9e3779b97f4a7c15;
    std::string body = R"(
        mov.u32 %r1, words;
        mov.u32 %r5, %ntid.x;
        mad.lo.u32 %r2, %r62, 4, %r1;
        add.u32 %r3, %r62, 1;
        rem.u32 %r4, %r3, %r5;
        mad.lo.u32 %r4, %r4, 4, %r1;
    )";
    for (unsigned bit = 0; bit < bits; ++bit) {
        const std::string n = std::to_string(bit);
        body += "shr.u64 %l1, %l61, " + n + "; and.b64 %l1, %l1, 1; setp.eq.u64 %p0, %l1, 0; @%p0 bra behind" + n +
                "; bar.sync 0; st.shared.u32 [%r2], %r3; bar.sync 0; ld.shared.u32 %r6, [%r4];"
                "mad.lo.u32 %r3, %r3, 3, %r6; xor.b32 %r3, %r3, " + n + "; behind" + n + ":\n";
    }
    body += "mul.wide.u32 %l0, %r62, 4; add.u64 %l0, %l60, %l0; st.global.u32 [%l0], %r3;";
    for (const unsigned many : {1u, 8u, 32u, 80u}) {
        Array<std::uint32_t> out(many);
        run(body, {1}, {many}, {out.address(), number}, ".shared .align 4 .b8 words[512];\n");
        std::vector<std::uint32_t> expected(many);
        for (std::uint32_t i = 0; i < many; ++i) expected[i] = i + 1;
        for (unsigned bit = 0; bit < bits; ++bit) {
            if ((number >> bit & 1) == 0) continue;
            const std::vector<std::uint32_t> before = expected;
            for (std::uint32_t i = 0; i < many; ++i) expected[i] = (before[i] * 3 + before[(i + 1) % many]) ^ bit;
        }
        INFO(many);
        CHECK(out.values() == expected);
    }
}
