// SPDX-License-Identifier: Apache-2.0
// Block reductions used twice without a barrier between: all warps read the result of the first before one writes that
// of the second, as on a GPU.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {
constexpr unsigned threads = 200; ///< seven warps, the last one in part
}

TEST_CASE("all threads read a word before the next round writes it", "[kernels][barriers]") {
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
        setp.ne.u32 %p0, %r60, 0;
    round:
        mad.lo.u32 %r3, %r1, 100, 7;
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [words + 16];
        mad.lo.u32 %r2, %r2, 31, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r2;
    )", {1}, {threads}, {out.address()}, ".shared .align 4 .b8 words[32];\n");
    std::uint32_t expected = 0;
    for (std::uint32_t round = 0; round < 4; ++round) expected = expected * 31 + round * 100 + 7;
    CHECK(out.values() == std::vector<std::uint32_t>(threads, expected));
}

TEST_CASE("all warps read the warps' parts before the next round writes them", "[kernels][barriers]") {
    constexpr unsigned warps = (threads + 31) / 32;
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r10, words;
        and.b32 %r5, %r60, 31;
        shr.u32 %r6, %r60, 5;
        shl.b32 %r7, %r6, 2;
        add.u32 %r7, %r10, %r7;
        shl.b32 %r8, %r5, 2;
        add.u32 %r8, %r10, %r8;
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
        setp.ne.u32 %p0, %r5, 0;
        st.shared.u32 [%r8], 0;
        bar.sync 0;
    round:
        mad.lo.u32 %r3, %r1, 100, %r6;
        @%p0 bra meet;
        st.shared.u32 [%r7], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [%r8];
        mad.lo.u32 %r2, %r2, 31, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r2;
    )", {1}, {threads}, {out.address()}, ".shared .align 4 .b8 words[128];\n");
    const auto results = out.values();
    for (std::uint32_t i = 0; i < threads; ++i) {
        INFO(i);
        std::uint32_t expected = 0;
        for (std::uint32_t round = 0; round < 4; ++round)
            expected = expected * 31 + (i % 32 < warps ? round * 100 + i % 32 : 0);
        CHECK(results[i] == expected);
    }
}
