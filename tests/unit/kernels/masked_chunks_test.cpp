// SPDX-License-Identifier: Apache-2.0
// Accesses at known distances, with gaps or with two words a lane, under masks of lanes that nobody foresees: words of
// other lanes stay as they were.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 128, words = 1024;

/// What is in memory at first.
std::uint32_t before(std::uint32_t word) {
    return word * 2654435761u;
}

bool takes_part(std::uint32_t thread, std::uint32_t salt) {
    return ((thread * 40503u + salt) >> 5 & 3) != 0;
}

/// `place`: of %r2 bytes from the thread's number %r60 (with %r3 to %r9). Threads that take part double the word there
/// and add their number to the one `distance` bytes behind it, in shared memory and in global memory.
void check(const std::string& place, unsigned distance, const std::function<unsigned(unsigned)>& word_of) {
    for (std::uint32_t salt : {0u, 77u, 4000u}) {
        std::vector<std::uint32_t> given(words), expected(words);
        for (unsigned i = 0; i < words; ++i) given[i] = expected[i] = before(i);
        for (unsigned t = 0; t < threads; ++t) {
            if (!takes_part(t, salt)) continue;
            const std::uint32_t first = expected[word_of(t)], second = expected[word_of(t) + distance / 4];
            expected[word_of(t)] = first * 2;
            expected[word_of(t) + distance / 4] = second + t;
        }
        Array<std::uint32_t> global(given), shared(given);
        const std::string d = std::to_string(distance);
        run(R"(
            mov.u32 %r10, tile;
            mov.u32 %r11, %r60;
        fill:
            mul.wide.u32 %l1, %r11, 4;
            add.u64 %l1, %l1, %l61;
            ld.global.u32 %r12, [%l1];
            mad.lo.u32 %r13, %r11, 4, %r10;
            st.shared.u32 [%r13], %r12;
            add.u32 %r11, %r11, 128;
            setp.lt.u32 %p1, %r11, 1024;
            @%p1 bra fill;
            bar.sync 0;
            cvt.u32.u64 %r14, %l62;
            mad.lo.u32 %r14, %r60, 40503, %r14;
            and.b32 %r14, %r14, 96;
            setp.eq.u32 %p2, %r14, 0;
        )" + place + R"(
            @%p2 bra meet;
            add.u32 %r15, %r10, %r2;
            ld.shared.u32 %r16, [%r15];
            ld.shared.u32 %r17, [%r15 + )" + d + R"(];
            add.u32 %r16, %r16, %r16;
            add.u32 %r17, %r17, %r60;
            st.shared.u32 [%r15], %r16;
            st.shared.u32 [%r15 + )" + d + R"(], %r17;
            cvt.u64.u32 %l2, %r2;
            add.u64 %l2, %l2, %l60;
            ld.global.u32 %r18, [%l2];
            ld.global.u32 %r19, [%l2 + )" + d + R"(];
            add.u32 %r18, %r18, %r18;
            add.u32 %r19, %r19, %r60;
            st.global.u32 [%l2], %r18;
            st.global.u32 [%l2 + )" + d + R"(], %r19;
        meet:
            bar.sync 0;
            mov.u32 %r11, %r60;
        drain:
            mad.lo.u32 %r13, %r11, 4, %r10;
            ld.shared.u32 %r12, [%r13];
            mul.wide.u32 %l1, %r11, 4;
            add.u64 %l1, %l1, %l61;
            st.global.u32 [%l1], %r12;
            add.u32 %r11, %r11, 128;
            setp.lt.u32 %p1, %r11, 1024;
            @%p1 bra drain;
        )", {1}, {threads}, {global.address(), shared.address(), salt}, ".shared .align 8 .b8 tile[4096];\n");
        INFO("distance " << distance << ", salt " << salt);
        CHECK(global.values() == expected);
        CHECK(shared.values() == expected);
    }
}

} // namespace

TEST_CASE("pairs of words under masks", "[kernels][memory][lanes]") {
    check("shl.b32 %r2, %r60, 3;", 4, [](unsigned t) { return 2 * t; });
    check("shl.b32 %r2, %r60, 4; add.u32 %r2, %r2, 4;", 4, [](unsigned t) { return 4 * t + 1; });
}

TEST_CASE("words with gaps under masks", "[kernels][memory][lanes]") {
    check("shl.b32 %r2, %r60, 3;", 2048, [](unsigned t) { return 2 * t; });
    check("mul.lo.u32 %r2, %r60, 12;", 8, [](unsigned t) { return 3 * t; });
    check("mul.lo.u32 %r2, %r60, 16;", 2048, [](unsigned t) { return 4 * t; });
    // Halves of butterflies: 2, 4, 8 words apart.
    for (unsigned reach : {2u, 4u, 8u})
        check("and.b32 %r3, %r60, " + std::to_string(reach - 1) + "; shl.b32 %r2, %r60, 1; sub.u32 %r2, %r2, %r3; shl.b32 %r2, %r2, 2;",
              4 * reach, [reach](unsigned t) { return 2 * t - (t & (reach - 1)); });
    // Backwards: no order that bits are dealt out in.
    check("sub.u32 %r2, 127, %r60; shl.b32 %r2, %r2, 3;", 4, [](unsigned t) { return 2 * (127 - t); });
}
