// SPDX-License-Identifier: Apache-2.0
// CTAs that run in rows, a row of threads of each before the next of the first: every thread has its own %ctaid and
// reads its own places, wherever a row ends.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

/// Of a matrix of `width` x `height` numbers each thread adds the one above its own and writes it with its place:
/// whether all have been there, and where from. With a guard, so that the last CTAs are not whole.
void check(Extents grid, Extents block, std::uint32_t width, std::uint32_t height) {
    std::vector<std::uint32_t> input(std::size_t(width) * height);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::uint32_t(i * 2654435761u);
    Array<std::uint32_t> in(input), out(input.size() * 2);
    run(R"(
        cvt.u32.u64 %r1, %l62;
        cvt.u32.u64 %r2, %l63;
        mov.u32 %r3, %ntid.x;
        mad.lo.s32 %r4, %r61, %r3, %r60;
        mov.u32 %r5, %ctaid.y;
        mov.u32 %r6, %ntid.y;
        mov.u32 %r7, %tid.y;
        mad.lo.s32 %r8, %r5, %r6, %r7;
        setp.ge.s32 %p0, %r4, %r1;
        setp.ge.s32 %p1, %r8, %r2;
        or.pred %p2, %p0, %p1;
        setp.lt.s32 %p3, %r8, 1;
        or.pred %p2, %p2, %p3;
        @%p2 bra done;
        mad.lo.s32 %r9, %r8, %r1, %r4;
        mul.wide.s32 %l0, %r9, 4;
        add.s64 %l1, %l60, %l0;
        ld.global.u32 %r10, [%l1];
        sub.s32 %r11, %r9, %r1;
        mul.wide.s32 %l2, %r11, 4;
        add.s64 %l3, %l60, %l2;
        ld.global.u32 %r12, [%l3];
        add.u32 %r13, %r10, %r12;
        mul.wide.s32 %l4, %r9, 8;
        add.s64 %l5, %l61, %l4;
        st.global.u32 [%l5], %r13;
        shl.b32 %r14, %r61, 16;
        add.u32 %r15, %r14, %r5;
        st.global.u32 [%l5+4], %r15;
    done:
        ret;
    )",
        grid, block, {in.address(), out.address(), width, height});
    const std::vector<std::uint32_t> result = out.values();
    std::size_t wrong = 0;
    for (std::uint32_t y = 0; y < height; ++y)
        for (std::uint32_t x = 0; x < width; ++x) {
            const std::size_t i = std::size_t(y) * width + x;
            const bool inside = y > 0 && x < grid.x * block.x && y < grid.y * block.y;
            wrong += result[2 * i] != (inside ? input[i] + input[i - width] : 0);
            wrong += result[2 * i + 1] != (inside ? (x / block.x << 16) + y / block.y : 0);
        }
    CHECK(wrong == 0);
}

} // namespace

TEST_CASE("CTAs in rows: a row of the grid, less and more", "[kernels][cta_rows]") {
    check({1, 1, 1}, {32, 8, 1}, 32, 8);
    check({5, 3, 1}, {32, 8, 1}, 150, 23);
    check({129, 4, 1}, {32, 4, 1}, 129 * 32 - 7, 16);
    check({300, 2, 1}, {32, 2, 1}, 9600, 4);
}

TEST_CASE("CTAs in rows: blocks of other shapes", "[kernels][cta_rows]") {
    check({7, 3, 1}, {16, 16, 1}, 110, 45);
    check({9, 5, 1}, {8, 8, 1}, 72, 40);
    check({3, 9, 1}, {64, 4, 1}, 190, 36);
    check({4, 2, 1}, {20, 6, 1}, 77, 12);
}
