// SPDX-License-Identifier: Apache-2.0
// Loops between barriers in which each lane walks through shared memory by itself run lane by lane, rounds whose
// numbers are known are written out: nobody may see that.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64, pitch = 65, columns = 2;

/// Lower triangle, column after column: row t, element j in (k, t]: a[t][j] += a[t][k] * a[j][k] + own, or that
/// exclusive-or column if `flips`. `own` and `flips` are each thread's, kept over the barriers.
std::vector<std::uint32_t> triangle(std::vector<std::uint32_t> own) {
    std::vector<std::uint32_t> a(threads * pitch);
    for (unsigned i = 0; i < a.size(); ++i) a[i] = i * 2654435761u >> 7;
    for (unsigned k = 0; k < columns; ++k) {
        const std::vector<std::uint32_t> before = a;
        for (unsigned t = k + 1; t < threads; ++t)
            for (unsigned j = k + 1; j <= t; ++j) {
                std::uint32_t sum = before[t * pitch + k] * before[j * pitch + k] + own[t];
                if (own[t] & 4) sum ^= k;
                a[t * pitch + j] += sum;
            }
    }
    return a;
}

/// Element %r9 of the thread's row, whose place in column %r6 is %r8; then the next one.
const std::string element = R"(
        ld.shared.u32 %r11, [%r8];
        mad.lo.u32 %r12, %r9, 260, %r10;
        mad.lo.u32 %r12, %r6, 4, %r12;
        ld.shared.u32 %r13, [%r12];
        mad.lo.u32 %r14, %r11, %r13, %r1;
        xor.b32 %r15, %r14, %r6;
        selp.b32 %r14, %r15, %r14, %p1;
        mad.lo.u32 %r16, %r9, 4, %r7;
        ld.shared.u32 %r17, [%r16];
        add.u32 %r17, %r17, %r14;
        st.shared.u32 [%r16], %r17;
        add.u32 %r9, %r9, 1;
    )";

} // namespace

TEST_CASE("rows of a triangle, each lane its own number of rounds", "[kernels][barriers][lanes]") {
    std::vector<std::uint32_t> own(threads);
    for (unsigned t = 0; t < threads; ++t) own[t] = t * 40503u >> 3;
    Array<std::uint32_t> given(own), out(threads * pitch);
    run(R"(
        mad.wide.u32 %l1, %r60, 4, %l61;
        ld.global.u32 %r1, [%l1];
        and.b32 %r2, %r1, 4;
        setp.ne.u32 %p1, %r2, 0;
        mov.u32 %r10, a;
        mov.u32 %r3, %r60;
    fill:
        mul.lo.u32 %r4, %r3, -1640531535;
        shr.u32 %r4, %r4, 7;
        mad.lo.u32 %r5, %r3, 4, %r10;
        st.shared.u32 [%r5], %r4;
        add.u32 %r3, %r3, 64;
        setp.lt.u32 %p2, %r3, 4160;
        @%p2 bra fill;
        mov.u32 %r6, 0;
        mad.lo.u32 %r7, %r60, 260, %r10;
    column:
        bar.sync 0;
        setp.le.u32 %p2, %r60, %r6;
        @%p2 bra meet;
        mad.lo.u32 %r8, %r6, 4, %r7;
        add.u32 %r9, %r6, 1;
        sub.u32 %r18, %r60, %r6;
        and.b32 %r18, %r18, 1;
        setp.eq.u32 %p3, %r18, 0;
        @%p3 bra even;
    )" + element + R"(
    even:
        setp.gt.u32 %p3, %r9, %r60;
        @%p3 bra meet;
    again:
    )" + element + element + R"(
        setp.le.u32 %p3, %r9, %r60;
        @%p3 bra again;
    meet:
        add.u32 %r6, %r6, 1;
        setp.lt.u32 %p4, %r6, 2;
        @%p4 bra column;
        bar.sync 0;
        mov.u32 %r3, %r60;
    drain:
        mad.lo.u32 %r5, %r3, 4, %r10;
        ld.shared.u32 %r4, [%r5];
        mad.wide.u32 %l1, %r3, 4, %l60;
        st.global.u32 [%l1], %r4;
        add.u32 %r3, %r3, 64;
        setp.lt.u32 %p2, %r3, 4160;
        @%p2 bra drain;
    )", {1}, {threads}, {out.address(), given.address()}, ".shared .align 4 .b8 a[16640];\n");
    CHECK(out.values() == triangle(own));
}

// A round is one step of all lanes that are left: each reads its neighbour's word before that one writes it.
TEST_CASE("lanes that leave a loop one by one read what others have written the round before", "[kernels][talk][lanes]") {
    Array<std::uint32_t> out(32);
    run(R"(
        mov.u32 %r10, words;
        mad.lo.u32 %r1, %r60, 4, %r10;
        st.shared.u32 [%r1], %r60;
        xor.b32 %r2, %r60, 1;
        mad.lo.u32 %r2, %r2, 4, %r10;
        bar.sync 0;
        mov.u32 %r3, 0;
    again:
        ld.shared.u32 %r4, [%r2];
        mad.lo.u32 %r4, %r4, 3, %r3;
        st.shared.u32 [%r1], %r4;
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p1, %r3, %r60;
        @%p1 bra again;
        bar.sync 0;
        ld.shared.u32 %r5, [%r1];
        mad.wide.u32 %l1, %r60, 4, %l60;
        st.global.u32 [%l1], %r5;
    )", {1}, {32}, {out.address()}, ".shared .align 4 .b8 words[128];\n");
    std::vector<std::uint32_t> expected(32);
    for (std::uint32_t t = 0; t < 32; ++t) expected[t] = t;
    for (std::uint32_t round = 0; round < 31; ++round) {
        const std::vector<std::uint32_t> before = expected;
        for (std::uint32_t t = 0; t < 32; ++t)
            if (round == 0 || round < t) expected[t] = before[t ^ 1] * 3 + round;
    }
    CHECK(out.values() == expected);
}

TEST_CASE("butterflies: the last round's values are read behind the loop", "[kernels][barriers][lanes]") {
    constexpr unsigned count = 256;
    Array<std::uint32_t> out(2 * count);
    run(R"(
        mov.u32 %r10, words;
        mad.lo.u32 %r1, %r60, 4, %r10;
        mul.lo.u32 %r2, %r60, 40503;
        mov.u32 %r3, 1;
        mov.u32 %r9, 0;
    round:
        st.shared.u32 [%r1], %r2;
        bar.sync 0;
        xor.b32 %r4, %r60, %r3;
        mad.lo.u32 %r4, %r4, 4, %r10;
        ld.shared.u32 %r5, [%r4];
        sub.u32 %r6, %r3, 1;
        and.b32 %r6, %r60, %r6;
        mad.lo.u32 %r9, %r9, 7, %r6;
        mad.lo.u32 %r2, %r2, 3, %r5;
        setp.gt.u32 %p1, %r60, %r3;
        @%p1 add.u32 %r2, %r2, %r9;
        bar.sync 0;
        shl.b32 %r3, %r3, 1;
        setp.lt.u32 %p2, %r3, 256;
        @%p2 bra round;
        mad.wide.u32 %l1, %r60, 8, %l60;
        st.global.u32 [%l1], %r2;
        add.u32 %r9, %r9, %r3;
        st.global.u32 [%l1 + 4], %r9;
    )", {1}, {count}, {out.address()}, ".shared .align 4 .b8 words[1024];\n");
    std::vector<std::uint32_t> value(count), sum(count), expected;
    for (std::uint32_t t = 0; t < count; ++t) value[t] = t * 40503;
    for (std::uint32_t reach = 1; reach < count; reach *= 2) {
        const std::vector<std::uint32_t> before = value;
        for (std::uint32_t t = 0; t < count; ++t) {
            sum[t] = sum[t] * 7 + (t & (reach - 1));
            value[t] = before[t] * 3 + before[t ^ reach];
            if (t > reach) value[t] += sum[t];
        }
    }
    for (std::uint32_t t = 0; t < count; ++t) {
        expected.push_back(value[t]);
        expected.push_back(sum[t] + count);
    }
    CHECK(out.values() == expected);
}
