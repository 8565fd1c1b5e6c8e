// SPDX-License-Identifier: Apache-2.0
// Atomics, barriers and calls of the runtime in whole kernels.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace ptarmigan;
using namespace ptarmigan::test;

TEST_CASE("every lane draws its own ticket", "[kernels][atomics]") {
    Array<std::uint32_t> counter(1), out(1000);
    run(R"(
        setp.ge.u32 %p0, %r62, 1000;
        @%p0 bra DONE;
        atom.global.add.u32 %r0, [%l60], 1;
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l0, %l0, %l61;
        st.global.u32 [%l0], %r0;
    DONE:
    )", {8}, {128}, {counter.address(), out.address()});
    auto tickets = out.values();
    CHECK(std::set<std::uint32_t>(tickets.begin(), tickets.end()).size() == 1000);
    CHECK(*std::max_element(tickets.begin(), tickets.end()) == 999);
    CHECK(counter.values()[0] == 1000);
}

TEST_CASE("atomics of every type on global and shared memory add up", "[kernels][atomics]") {
    Array<std::uint64_t> out(16);
    run(R"(
        shl.b32 %r1, %r60, 1;
        cvt.u64.u32 %l1, %r60;
        red.global.add.u64 [%l60], %l1;
        red.global.max.u32 [%l60+8], %r60;
        red.relaxed.gpu.global.add.f64 [%l60+16], 0d3FF0000000000000;
        mov.f32 %f0, 0f3F000000;
        red.global.add.f32 [%l60+24], %f0;
        red.global.or.b32 [%l60+32], %r1;
        atom.global.inc.u32 %r2, [%l60+40], 6;
        mov.u32 %r3, 0x3c003800;
        red.global.add.noftz.f16x2 [%l60+48], %r3;
        red.global.add.v2.f32 [%l60+56], {%f0, %f0};
        mov.u32 %r4, cell;
        setp.ne.u32 %p0, %r60, 0;
        @!%p0 st.shared.u64 [cell], 0;
        bar.sync 0;
        atom.shared.add.u64 %l2, [%r4], 3;
        bar.sync 0;
        ld.shared.u64 %l3, [cell];
        @!%p0 red.global.add.u64 [%l60+64], %l3;
        and.b32 %r5, %r60, 1;
        cvt.u16.u32 %h0, %r5;
        mov.b16 %h1, 77;
        atom.global.cas.b16 %h2, [%l60+72], %h0, %h1;
        atom.global.exch.b64 %l4, [%l60+80], %l1;
        cvt.u64.u32 %l5, %r5;
        mov.b128 %q0, {%l5, %l5};
        mov.u64 %l6, 9;
        mov.b128 %q1, {%l6, %l6};
        atom.global.cas.b128 %q2, [%l60+96], %q0, %q1;
    )", {4}, {64}, {out.address()}, ".shared .u64 cell;");
    auto results = out.values();
    CHECK(results[0] == 4 * 64 * 63 / 2);
    CHECK(results[1] == 63);
    CHECK(results[2] == 0x4070000000000000); // 256.0
    CHECK(results[3] == 0x43000000);         // 128.0f
    CHECK(results[4] == 126);
    CHECK(results[5] == 256 % 7);
    CHECK(results[6] == 0x5c005800);         // 256.0 and 128.0
    CHECK(results[7] == 0x4300000043000000);
    CHECK(results[8] == 4 * 64 * 3);
    CHECK(results[9] == 77);
    CHECK(results[10] < 64);
    CHECK(results[12] == 9);
    CHECK(results[13] == 9);
}

TEST_CASE("barriers count and combine predicates", "[kernels][barriers]") {
    Array<std::uint32_t> out(96 * 3);
    run(R"(
        rem.u32 %r0, %r60, 3;
        setp.eq.u32 %p0, %r0, 0;
        bar.red.popc.u32 %r1, 0, %p0;
        setp.lt.u32 %p1, %r60, 200;
        barrier.cta.red.and.pred %p2, 1, %p1;
        bar.red.or.pred %p3, 0, !%p1;
        selp.u32 %r2, 1, 0, %p2;
        selp.u32 %r3, 1, 0, %p3;
        mul.wide.u32 %l0, %r60, 12;
        add.u64 %l0, %l0, %l60;
        st.global.u32 [%l0], %r1;
        st.global.u32 [%l0+4], %r2;
        st.global.u32 [%l0+8], %r3;
    )", {1}, {96}, {out.address()});
    auto results = out.values();
    for (unsigned i = 0; i < 96; ++i) {
        CHECK(results[3 * i] == 32);
        CHECK(results[3 * i + 1] == 1);
        CHECK(results[3 * i + 2] == 0);
    }
}

TEST_CASE("a producer warp arrives where a consumer warp waits", "[kernels][barriers]") {
    Array<std::uint32_t> out(32);
    run(R"(
        mov.u32 %r1, tile;
        and.b32 %r2, %r60, 31;
        shl.b32 %r3, %r2, 2;
        add.u32 %r1, %r1, %r3;
        setp.ge.u32 %p0, %r60, 32;
        @%p0 bra CONSUME;
        mul.lo.u32 %r4, %r2, 5;
        st.shared.u32 [%r1], %r4;
        bar.arrive 1, 64;
        bra DONE;
    CONSUME:
        bar.sync 1, 64;
        ld.shared.u32 %r5, [%r1];
        mul.wide.u32 %l0, %r2, 4;
        add.u64 %l0, %l0, %l60;
        st.global.u32 [%l0], %r5;
    DONE:
    )", {1}, {64}, {out.address()}, ".shared .u32 tile[32];");
    auto results = out.values();
    for (unsigned i = 0; i < 32; ++i) CHECK(results[i] == i * 5);
}

TEST_CASE("arrivals that a block ends with are not the next block's", "[kernels][barriers]") {
    constexpr unsigned blocks = 24;
    Array<std::uint32_t> out(blocks * 32);
    run(R"(
        mov.u32 %r1, tile;
        and.b32 %r2, %r60, 31;
        shl.b32 %r3, %r2, 2;
        add.u32 %r1, %r1, %r3;
        mov.u32 %r6, %ctaid.x;
        setp.ge.u32 %p0, %r60, 32;
        @%p0 bra CONSUME;
        mad.lo.u32 %r4, %r6, 100, %r2;
        st.shared.u32 [%r1], %r4;
        bar.arrive 1, 64;
        bra DONE;
    CONSUME:
        bar.sync 1, 64;
        ld.shared.u32 %r5, [%r1];
        bar.arrive 1, 64;
        mad.lo.u32 %r6, %r6, 32, %r2;
        mul.wide.u32 %l0, %r6, 4;
        add.u64 %l0, %l0, %l60;
        st.global.u32 [%l0], %r5;
    DONE:
    )", {blocks}, {64}, {out.address()}, ".shared .u32 tile[32];");
    const auto results = out.values();
    for (unsigned i = 0; i < blocks * 32; ++i) CHECK(results[i] == i / 32 * 100 + i % 32);
}

TEST_CASE("device malloc gives each lane its own block", "[kernels][calls]") {
    Array<std::uint32_t> out(64);
    run(R"(
        .reg .b64 %block;
        {
            .param .b64 size;
            .param .b64 result;
            st.param.b64 [size], 64;
            call.uni (result), malloc, (size);
            ld.param.b64 %block, [result];
        }
        st.u32 [%block+60], %r60;
        ld.u32 %r0, [%block+60];
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l0, %l0, %l60;
        st.global.u32 [%l0], %r0;
        {
            .param .b64 freed;
            st.param.b64 [freed], %block;
            call.uni free, (freed);
        }
    )", {1}, {64}, {out.address()},
        ".extern .func (.param .b64 r) malloc(.param .b64 s);\n.extern .func free(.param .b64 p);");
    auto results = out.values();
    for (unsigned i = 0; i < 64; ++i) CHECK(results[i] == i);
}

TEST_CASE("a call without a body is refused by name", "[kernels][calls]") {
    std::string text = kernel_text("    call.uni missing_function;", ".extern .func missing_function;");
    Module module(text, "test.ptx");
    std::uint64_t zero = 0;
    CHECK_THROWS_WITH(module.launch("k", {1}, {32}, {zero, zero, zero, zero}), Catch::Contains("missing_function"));
}

TEST_CASE("of two NaNs that an atomic sum of doubles meets the old one survives in shared memory", "[kernels][atomics]") {
    // As ptxas adds there: DADD of the operand and the old value, of which the hardware keeps the second. In all lanes,
    // whatever becomes of the addition where it is one of many (found by tests/tools/fuzz: LLVM swaps its operands).
    Array<std::uint64_t> out(3 * 64);
    run(R"(
        mov.u32 %r0, cells;
        mad.lo.u32 %r0, %r60, 8, %r0;
        cvt.u64.u32 %l0, %r60;
        or.b64 %l1, %l0, 0x7ff0000000100000;
        or.b64 %l2, %l0, 0xfff8000000200000;
        st.shared.b64 [%r0], %l1;
        red.shared.add.f64 [%r0], %l2;
        ld.shared.b64 %l3, [%r0];
        mad.wide.u32 %l4, %r60, 24, %l60;
        st.global.b64 [%l4], %l3;
        st.shared.b64 [%r0], 0;
        atom.shared.add.f64 %l5, [%r0], %l1;
        atom.shared.add.f64 %l5, [%r0], %l2;
        st.global.b64 [%l4+8], %l5;
        ld.shared.b64 %l3, [%r0];
        st.global.b64 [%l4+16], %l3;
    )", {1}, {64}, {out.address()}, ".shared .align 8 .b8 cells[512];");
    const auto results = out.values();
    for (std::uint64_t thread = 0; thread < 64; ++thread) {
        const std::uint64_t quiet = 0x7ff8000000100000 | thread;
        CHECK(results[3 * thread] == quiet);
        CHECK(results[3 * thread + 1] == quiet);
        CHECK(results[3 * thread + 2] == quiet);
    }
}
