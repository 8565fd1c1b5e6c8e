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
