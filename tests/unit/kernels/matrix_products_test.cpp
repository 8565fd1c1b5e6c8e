// SPDX-License-Identifier: Apache-2.0
// Products of matrices in kernels of any width: who takes part, guards, loops, blocks that end in the middle of a warp. What the
// instructions compute is compared with recordings (tests/recordings/tensor_core).
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned lanes = 32;

/// A of ones and threes, B of twos (s8): each product of 16 x 8 x 32 adds 32 * 2 * (row < 8 ? 1 : 3).
const std::string operands = "mov.b32 %r10, 0x01010101; mov.b32 %r11, 0x03030303; mov.b32 %r14, 0x02020202;\n"
                             "mov.u32 %r20, %r60; add.u32 %r21, %r60, 1000; add.u32 %r22, %r60, 2000; add.u32 %r23, %r60, 3000;\n";
const std::string product = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r20, %r21, %r22, %r23}, {%r10, %r11, %r10, %r11}, "
                            "{%r14, %r14}, {%r20, %r21, %r22, %r23};\n";
const std::string results = "mul.wide.u32 %l1, %r60, 16; add.u64 %l1, %l1, %l60; st.global.v4.u32 [%l1], {%r20, %r21, %r22, %r23};\n";

/// What thread `thread` has after `times` products.
std::uint32_t expected(unsigned thread, unsigned element, unsigned times) {
    return thread + element * 1000 + times * 64 * (element < 2 ? 1 : 3);
}

Words run_products(const std::string& body, unsigned block) {
    const Array<std::uint32_t> out(std::size_t(block) * 4);
    run(body, {1}, {block}, {out.address()});
    return out.values();
}

} // namespace

TEST_CASE("mma: in a loop whose warps go round different times") {
    const Words out = run_products(operands + "shr.u32 %r30, %r60, 5; mov.u32 %r31, 0;\nROUND: " + product +
                                       "add.u32 %r31, %r31, 1; setp.le.u32 %p1, %r31, %r30; @%p1 bra ROUND;\n" + results,
                                   3 * lanes);
    for (unsigned thread = 0; thread < 3 * lanes; ++thread)
        for (unsigned i = 0; i < 4; ++i) REQUIRE(out[4 * thread + i] == expected(thread, i, thread / lanes + 1));
}

TEST_CASE("mma: a guard that is alike in each warp") {
    const Words out = run_products(operands + "and.b32 %r30, %r60, 32; setp.ne.u32 %p1, %r30, 0;\n@%p1 " + product + results, 3 * lanes);
    for (unsigned thread = 0; thread < 3 * lanes; ++thread)
        for (unsigned i = 0; i < 4; ++i) REQUIRE(out[4 * thread + i] == expected(thread, i, thread / lanes % 2));
}

TEST_CASE("mma: roles of warps") {
    const Words out = run_products(operands + "shr.u32 %r30, %r60, 5; setp.eq.u32 %p1, %r30, 1; @%p1 bra OTHER;\n" + product + product +
                                       "bra DONE;\nOTHER: " + product + "DONE:\n" + results,
                                   3 * lanes);
    for (unsigned thread = 0; thread < 3 * lanes; ++thread)
        for (unsigned i = 0; i < 4; ++i) REQUIRE(out[4 * thread + i] == expected(thread, i, thread / lanes == 1 ? 1 : 2));
}

// The manual leaves it open; an H100 does nothing (2026-11-25), whichever lanes are missing.
TEST_CASE("mma: nothing is done where lanes of the warp are missing") {
    const std::string ways[] = {
        "setp.ge.u32 %p1, %r60, 40; @%p1 bra OUT;\n" + product + "OUT:\n", // the second warp's first eight
        "setp.lt.u32 %p1, %r60, 33; @%p1 bra OUT;\n" + product + "OUT:\n", // all but one of it
        "setp.eq.u32 %p1, %r60, 7; @!%p1 " + product,                      // a guard
    };
    for (unsigned way = 0; way < 3; ++way) {
        const Words out = run_products(operands + ways[way] + results, 2 * lanes);
        for (unsigned thread = 0; thread < 2 * lanes; ++thread)
            for (unsigned i = 0; i < 4; ++i) {
                INFO(way << " " << thread);
                const bool whole = way == 0 ? thread < lanes : way == 2 && thread >= lanes;
                REQUIRE(out[4 * thread + i] == expected(thread, i, whole ? 1 : 0));
            }
    }
}

TEST_CASE("mma: a block that ends in the middle of a warp") {
    const unsigned block = lanes + 8;
    const Words out = run_products(operands + product + results, block);
    for (unsigned thread = 0; thread < block; ++thread)
        for (unsigned i = 0; i < 4; ++i) REQUIRE(out[4 * thread + i] == expected(thread, i, thread < lanes ? 1 : 0));
}

TEST_CASE("mma: lanes that have exited are missing") {
    const Array<std::uint32_t> out(std::size_t(2 * lanes) * 4);
    run(operands + "setp.eq.u32 %p1, %r60, 33; @%p1 exit;\n" + product + results, {1}, {2 * lanes}, {out.address()});
    const Words values = out.values();
    for (unsigned thread = 0; thread < 2 * lanes; ++thread)
        for (unsigned i = 0; i < 4 && thread != 33; ++i) REQUIRE(values[4 * thread + i] == expected(thread, i, thread < lanes ? 1 : 0));
}

TEST_CASE("mma: accumulators of a loop") {
    // Two accumulators of which one begins with other numbers, with and without barriers between products of a round, between all of them, too; a
    // warp and a half, and one that has lost a lane before. The same again with what the first loop has made.
    const std::string second = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r24, %r25, %r26, %r27}, {%r10, %r11, %r10, %r11}, {%r14, %r14}, "
                               "{%r24, %r25, %r26, %r27};\n";
    const unsigned block = 3 * lanes + 16;
    const std::string barrier = "bar.sync 0;\n";
    for (const unsigned barriers : {0, 1, 2}) {
        const std::string between = barriers != 0 ? barrier : "", inside = barriers == 2 ? barrier : "";
        const Array<std::uint32_t> out(std::size_t(block) * 8);
        std::string body = operands + "setp.eq.u32 %p1, %r60, 70; @%p1 exit;\n";
        for (unsigned i = 0; i < 4; ++i) body += "add.u32 %r" + std::to_string(24 + i) + ", %r" + std::to_string(20 + i) + ", 50000;\n";
        for (const std::string loop : {"FIRST", "SECOND"})
            body += "mov.u32 %r31, 5;\n" + loop + ": " + between + product + inside + second + between + product + inside + second +
                    "add.u32 %r31, %r31, -1; setp.ne.u32 %p1, %r31, 0; @%p1 bra " + loop + ";\n";
        run(body + "mul.wide.u32 %l1, %r60, 32; add.u64 %l1, %l1, %l60; st.global.v4.u32 [%l1], {%r20, %r21, %r22, %r23};\n"
                   "st.global.v4.u32 [%l1+16], {%r24, %r25, %r26, %r27};\n",
            {1}, {block}, {out.address()});
        const Words values = out.values();
        for (unsigned thread = 0; thread < block; ++thread) {
            const unsigned times = thread < 2 * lanes ? 20 : 0; // the others' warps are not whole
            for (unsigned i = 0; i < 4 && thread != 70; ++i) {
                INFO(thread << " " << i << " " << barriers);
                REQUIRE(values[8 * thread + i] == expected(thread, i, times));
                REQUIRE(values[8 * thread + 4 + i] == expected(thread, i, times) + 50000);
            }
        }
    }
}

TEST_CASE("wmma: strides, spaces and layouts of loads and stores") {
    // D = A * I + 0 copies A: rows of 24 halves in shared or global memory to columns of 20 floats.
    for (const bool shared : {false, true}) {
        Words halves(16 * 12), identity(128);
        const auto half_of = [](unsigned number) { return number == 0 ? 0u : 0x6400u + number; }; // 1024 + number
        for (unsigned row = 0; row < 16; ++row)
            for (unsigned i = 0; i < 12; ++i)
                halves[12 * row + i] = half_of(24 * row + 2 * i) | half_of(24 * row + 2 * i + 1) << 16;
        for (unsigned i = 0; i < 16; ++i) identity[8 * i + i / 2] |= 0x3c00u << 16 * (i % 2);
        const Array<std::uint32_t> a(halves), b(identity), d(16 * 20);
        const std::string copy = "mul.wide.u32 %l1, %r60, 24; add.u64 %l2, %l1, %l60; mov.u32 %r1, memory; cvt.u32.u64 %r2, %l1; add.u32 %r1, %r1, %r2;\n"
                                 "ld.global.v2.u32 {%r3, %r4}, [%l2]; st.shared.v2.u32 [%r1], {%r3, %r4}; ld.global.v2.u32 {%r3, %r4}, [%l2+8];\n"
                                 "st.shared.v2.u32 [%r1+8], {%r3, %r4}; ld.global.v2.u32 {%r3, %r4}, [%l2+16]; st.shared.v2.u32 [%r1+16], {%r3, %r4};\n"
                                 "mov.u32 %r1, memory; bar.sync 0;\n";
        const std::string fragment = "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}";
        const std::string load = std::string("wmma.load.a.sync.aligned.row.m16n16k16") + (shared ? ".shared.f16 " : ".f16 ") + fragment +
                                 (shared ? ", [%r1], 24;\n" : ", [%l60], %r30;\n");
        run(copy + "mov.u32 %r30, 24; mov.u32 %r31, 20;\n" + load +
                "wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, [%l61];\n"
                "mov.f32 %f0, 0f00000000;\n"
                "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, " +
                fragment +
                ", {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, {%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0};\n"
                "wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%l62], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %r31;\n",
            {1}, {lanes}, {a.address(), b.address(), d.address()}, ".shared .align 32 .b8 memory[1024];\n");
        const Words out = d.values();
        for (unsigned column = 0; column < 16; ++column)
            for (unsigned row = 0; row < 20; ++row) {
                float value;
                std::memcpy(&value, &out[20 * column + row], sizeof value);
                const unsigned number = 24 * row + column;
                INFO(shared << " " << row << " " << column);
                REQUIRE(value == (row >= 16 || number == 0 ? 0.0f : float(1024 + number)));
            }
    }
}

TEST_CASE("mma.sp: metadata of every nibble") {
    // A holds ones, B k + 1 in all columns: each stored element adds what its two bits select, also if both of a pair are alike or descend (as
    // golden.tsv's blocks 48 to 63 have it).
    const std::string halves = "and.b32 %r1, %r60, 3; shl.b32 %r1, %r1, 1;\n"
                               "add.u32 %r2, %r1, 1; cvt.rn.f16.u32 %h1, %r2; add.u32 %r2, %r1, 2; cvt.rn.f16.u32 %h2, %r2; mov.b32 %r10, {%h1, %h2};\n"
                               "add.u32 %r2, %r1, 9; cvt.rn.f16.u32 %h1, %r2; add.u32 %r2, %r1, 10; cvt.rn.f16.u32 %h2, %r2; mov.b32 %r11, {%h1, %h2};\n"
                               "mov.b32 %r12, 0x3c003c00; mov.f32 %f0, 0f00000000; mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;\n";
    std::string body = halves;
    for (unsigned nibble = 0; nibble < 16; ++nibble)
        body += "mov.b32 %r13, " + std::to_string(nibble * 0x11111111u) +
                "; mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r12, %r12}, {%r10, %r11}, {%f0, %f0, %f0, %f0}, %r13, 0x0;\n"
                "st.global.f32 [%l1+" + std::to_string(nibble * 128) + "], %f" + std::to_string(1 + nibble % 4) + ";\n";
    const Array<std::uint32_t> out(16 * lanes);
    run(body, {1}, {lanes}, {out.address()});
    const Words values = out.values();
    for (unsigned nibble = 0; nibble < 16; ++nibble) {
        unsigned sum = 0;
        for (unsigned chunk = 0; chunk < 4; ++chunk) sum += 2 * (4 * chunk + 1) + nibble % 4 + nibble / 4;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            float value;
            std::memcpy(&value, &values[nibble * lanes + lane], sizeof value);
            INFO(nibble << " " << lane);
            REQUIRE(value == float(sum));
        }
    }
}

TEST_CASE("mma: products that stand together") {
    // Chains over tiles of two rows and two columns, whose first results are read too, one C for two chains, and a loop.
    const std::string mma = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ", a0 = "{%r10, %r10, %r10, %r10}", a1 = "{%r11, %r11, %r11, %r11}",
                      b0 = "{%r14, %r14}", b1 = "{%r15, %r15}";
    const auto d = [](unsigned first) {
        std::string text = "{";
        for (unsigned i = 0; i < 4; ++i) text += (i ? ", %r" : "%r") + std::to_string(first + i);
        return text + "}";
    };
    std::string body = "mov.b32 %r10, 0x01010101; mov.b32 %r11, 0x03030303; mov.b32 %r14, 0x02020202; mov.b32 %r15, 0xffffffff; mov.u32 %r1, 0;\n"
                       "mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;\n";
    for (unsigned i = 16; i < 48; ++i) body += "mov.u32 %r" + std::to_string(i) + ", %r60;\n";
    body += "ROUND:\n";
    body += mma + d(16) + ", " + a0 + ", " + b0 + ", " + d(16) + ";\n";                // + 64 a round
    body += mma + d(20) + ", " + a0 + ", " + b1 + ", " + d(20) + ";\n";                // - 32
    body += "add.u32 %r1, %r1, 1;\n";
    body += mma + d(24) + ", " + a1 + ", " + b0 + ", " + d(24) + ";\n";                // + 192
    body += mma + d(16) + ", " + a1 + ", " + b1 + ", " + d(16) + ";\n";                // - 96
    body += mma + d(28) + ", " + a1 + ", " + b1 + ", " + d(16) + ";\n";                // of that, - 96
    body += mma + d(32) + ", " + a0 + ", " + b0 + ", " + d(16) + ";\n";                // of that, + 64
    body += mma + d(36) + ", " + a0 + ", " + b0 + ", " + d(28) + ";\n";                // of that, + 64
    body += "add.u32 %r40, %r40, %r28;\nsetp.lt.u32 %p1, %r1, 3; @%p1 bra ROUND;\n";
    const unsigned registers_out[] = {16, 20, 24, 28, 32, 36, 39, 40};
    for (unsigned i = 0; i < 8; ++i) body += "st.global.u32 [%l1+" + std::to_string(i * 128) + "], %r" + std::to_string(registers_out[i]) + ";\n";
    const Array<std::uint32_t> out(8 * lanes);
    run(body, {1}, {lanes}, {out.address()});
    const Words values = out.values();
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const auto at = [&](unsigned i) { return static_cast<int>(values[i * lanes + lane] - lane); };
        INFO(lane);
        REQUIRE(at(0) == 3 * (64 - 96));
        REQUIRE(at(1) == -3 * 32);
        REQUIRE(at(2) == 3 * 192);
        REQUIRE(at(3) == 3 * (64 - 96) - 96);
        REQUIRE(at(4) == 3 * (64 - 96) + 64);
        REQUIRE(at(5) == 3 * (64 - 96) - 96 + 64);
        REQUIRE(at(6) == at(5));
        int sum = 0;
        for (int round = 1; round <= 3; ++round) sum += round * (64 - 96) - 96 + static_cast<int>(lane);
        REQUIRE(at(7) == sum);
    }
}

TEST_CASE("wmma.mma: .satfinite of halves rounds toward zero where C is f32 (PTX 6.4)") {
    // D = A * I + C with A of one number and C of another, as an H100 gives it (2026-11-26).
    struct Case {
        std::uint32_t a;
        float c;
        std::uint32_t plain, satfinite;
    };
    const Case cases[] = {{0x7bff, 0, 0x7bff, 0x7bff},         {0x7bff, 65504, 0x7c00, 0x7bff}, {0xfbff, -65504, 0xfc00, 0xfbff}, {0x7c00, 0, 0x7c00, 0x7c00},
                          {0x7e00, 0, 0x7fff, 0x7fff},         {0x7bff, 16, 0x7c00, 0x7bff},    {0xfbff, -16, 0xfc00, 0xfbff},    {0x3c00, 70000, 0x7c00, 0x7bff},
                          {0xfc00, 1, 0xfc00, 0xfc00}};
    for (const bool satfinite : {false, true})
        for (const Case& given : cases) {
            std::uint32_t c;
            std::memcpy(&c, &given.c, sizeof c);
            const std::string a = std::to_string(given.a | given.a << 16);
            std::string registers_c = "{%f1";
            for (unsigned i = 1; i < 8; ++i) registers_c += ", %f1";
            // One k has A's number, in all rows: lanes with t = 0 hold k 0, 1, 8 and 9; B is 1 there.
            const std::string body = "and.b32 %r1, %r60, 3; setp.eq.u32 %p1, %r1, 0; mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %f1, " + std::to_string(c) +
                                     "; mov.b32 %r12, " + a + ";\n@%p1 and.b32 %r10, %r12, 0xffff; @%p1 mov.b32 %r11, 0x3c00;\n"
                                     "mov.b32 %r13, 0;\nwmma.mma.sync.aligned.row.col.m16n16k16.f16.f32" + (satfinite ? ".satfinite " : " ") +
                                     "{%r20, %r21, %r22, %r23}, {%r10, %r10, %r13, %r13, %r10, %r10, %r13, %r13}, {%r11, %r13, %r11, %r13, %r11, %r13, %r11, %r13}, " +
                                     registers_c + "};\nmul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; st.global.u32 [%l1], %r20;\n";
            const Array<std::uint32_t> out(lanes);
            Frame frame;
            frame.target = "sm_70";
            frame.version = "6.4";
            run(body, {1}, {lanes}, {out.address()}, "", 0, frame);
            INFO(satfinite << " " << given.a << " " << given.c);
            const std::uint32_t half = satfinite ? given.satfinite : given.plain;
            for (const std::uint32_t value : out.values()) REQUIRE(value == (half | half << 16));
        }
}
