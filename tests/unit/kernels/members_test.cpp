// SPDX-License-Identifier: Apache-2.0
// Who takes part in a warp's collectives, beyond the manual: as recorded on an H100 (2026-11-25, 702 combinations).
// What is refused is among the cases of tests/recordings/divergence.
#include "kernel.h"

#include <catch2/catch.hpp>

namespace ptarmigan::test {
namespace {

using Words = std::vector<std::uint32_t>;

/// %r0: 100 + lane; %r10, stored for each thread that reaches the end; others keep 9.
Words results_of(const std::string& body) {
    Array<std::uint32_t> out(Words(32, 9));
    run("add.u32 %r0, %r60, 100; mov.u32 %r10, 55; and.b32 %r1, %r60, 3; setp.ne.u32 %p1, %r1, 0;\n" + body +
            "mad.wide.u32 %l0, %r60, 4, %l60; st.global.u32 [%l0], %r10;\n",
        {1}, {32}, {out.address()});
    return out.values();
}

/// The predicate that a shuffle writes is 1000 in the result.
const std::string with_predicate = "selp.u32 %r3, 1000, 0, %p2; add.u32 %r10, %r10, %r3;\n";

std::string every_fourth(const std::string& shuffle) {
    return "@%p1 bra JOIN;\n" + shuffle + with_predicate + "JOIN:\n";
}

Words fourths(std::uint32_t (*value)(std::uint32_t lane)) {
    Words words(32, 55);
    for (std::uint32_t lane = 0; lane < 32; lane += 4) words[lane] = value(lane);
    return words;
}

} // namespace

TEST_CASE("a shuffle from lanes that take no part gives 0, and its predicate as ever", "[members]") {
    for (const std::string mask : {"0xffffffff", "0x11111111"}) {
        INFO(mask);
        CHECK(results_of(every_fourth("shfl.sync.down.b32 %r10|%p2, %r0, 3, 31, " + mask + ";")) ==
              fourths([](std::uint32_t) { return 1000u; }));
        CHECK(results_of(every_fourth("shfl.sync.bfly.b32 %r10|%p2, %r0, 5, 31, " + mask + ";")) ==
              fourths([](std::uint32_t) { return 1000u; }));
        CHECK(results_of(every_fourth("shfl.sync.idx.b32 %r10|%p2, %r0, 9, 31, " + mask + ";")) ==
              fourths([](std::uint32_t) { return 1000u; }));
        CHECK(results_of(every_fourth("shfl.sync.up.b32 %r10|%p2, %r0, 3, 0, " + mask + ";")) ==
              fourths([](std::uint32_t lane) { return lane < 3 ? lane + 100 : 1000u; }));
        CHECK(results_of(every_fourth("shfl.sync.down.b32 %r10|%p2, %r0, 4, 31, " + mask + ";")) ==
              fourths([](std::uint32_t lane) { return lane < 28 ? lane + 1104 : lane + 100; }));
        // What all lanes hold alike is not there either.
        CHECK(results_of(every_fourth("mov.u32 %r4, 70; shfl.sync.idx.b32 %r10|%p2, %r4, %r60, 31, " + mask + ";" +
                                      "shfl.sync.down.b32 %r10|%p2, %r4, 1, 0x1c03, " + mask + ";")) ==
              fourths([](std::uint32_t) { return 1000u; }));
    }
    CHECK(results_of("@!%p1 shfl.sync.down.b32 %r10, %r0, 3, 31, 0xffffffff;\n") ==
          fourths([](std::uint32_t) { return 0u; }));
}

TEST_CASE("lanes that will do nothing but meet the others take no part before", "[members]") {
    // Lanes outside of the arm store nothing more, but they come to the last vote. In the arm all lanes that are there go one way.
    Array<std::uint32_t> out(Words(32, 9));
    run("and.b32 %r1, %r60, 3; setp.ne.u32 %p1, %r1, 0; vote.sync.ballot.b32 %r2, %p1, 0xffffffff; not.b32 %r3, %r2;\n"
        "@%p1 bra JOIN;\n"
        "ld.global.u32 %r6, [%l60]; setp.eq.u32 %p3, %r6, 8; @%p3 bra ON; st.global.u32 [%l60], 9;\n" // for whole warps
        "ON: mov.pred %p2, 1; vote.sync.ballot.b32 %r4, %p2, %r3;\n"
        "mad.wide.u32 %l0, %r60, 4, %l60; st.global.u32 [%l0], %r4;\n"
        "JOIN: vote.sync.ballot.b32 %r5, %p1, 0xffffffff;\n",
        {1}, {32}, {out.address()});
    const Words results = out.values();
    for (unsigned lane = 0; lane < 32; ++lane) CHECK(results[lane] == (lane % 4 == 0 ? 0x11111111 : 9));
}

TEST_CASE("a shuffle from lanes that have exited gives 0", "[members]") {
    Words expected(32, 9);
    for (std::uint32_t lane = 0; lane < 16; ++lane) expected[lane] = lane < 13 ? lane + 1103 : 1000;
    CHECK(results_of("setp.ge.u32 %p0, %r60, 16; @%p0 bra OUT; bra.uni STAY; OUT: exit; STAY:\n"
                     "shfl.sync.down.b32 %r10|%p2, %r0, 3, 31, 0xffffffff;\n" +
                     with_predicate) == expected);
}

TEST_CASE("votes one after the other give what each gives alone", "[members]") {
    // Lanes with one key find each other by its digits: more votes than are made together, all of which must be there.
    std::string digits = "and.b32 %r2, %r60, 0xfffffffb; mul.lo.u32 %r2, %r2, 0x12345; mov.u32 %r10, -1;\n";
    for (unsigned digit = 0; digit < 20; ++digit)
        digits += "shr.u32 %r4, %r2, " + std::to_string(digit) +
                  "; and.b32 %r4, %r4, 1; setp.ne.u32 %p3, %r4, 0; vote.sync.ballot.b32 %r5, %p3, 0xffffffff;\n"
                  "@!%p3 not.b32 %r5, %r5; and.b32 %r10, %r10, %r5;\n";
    const std::string exit_from_28 =
        "setp.ge.u32 %p0, %r60, 28; @%p0 bra OUT; bra.uni STAY; OUT: exit; STAY:\n";
    Words partners(32), of_those_left(32, 9);
    for (unsigned lane = 0; lane < 32; ++lane) partners[lane] = (1u << lane) | (1u << (lane ^ 4));
    for (unsigned lane = 0; lane < 28; ++lane) of_those_left[lane] = partners[lane] & 0x0fffffff;
    CHECK(results_of(digits) == partners);
    // Whoever has exited is among those that said no, until somebody else says yes.
    Words left = results_of(exit_from_28 + digits);
    for (unsigned lane = 0; lane < 28; ++lane) left[lane] &= 0x0fffffff;
    CHECK(left == of_those_left);
    // Of several kinds, with results that later ones vote on, and a store between.
    const std::string kinds = "setp.eq.u32 %p3, %r60, 5; setp.lt.u32 %p4, %r60, 20;\n"
                              "vote.sync.any.pred %p5, %p3, -1; vote.sync.all.pred %p6, !%p4, -1; "
                              "vote.sync.ballot.b32 %r3, !%p4, -1; vote.sync.all.pred %p7, %p5, -1;\n"
                              "vote.sync.uni.pred %p2, %p4, -1; vote.sync.ballot.b32 %r4, %p6, -1;\n"
                              "mad.wide.u32 %l0, %r60, 4, %l60; st.global.u32 [%l0], 3;\n"
                              "vote.sync.ballot.b32 %r5, %p3, -1; selp.u32 %r6, 1, 0, %p5; selp.u32 %r7, 2, 0, %p6;\n"
                              "vote.sync.ballot.b32 %r8, %p4, -1; selp.u32 %r9, 4, 0, %p7; selp.u32 %r10, 8, 0, %p2;\n"
                              "add.u32 %r10, %r10, %r9; add.u32 %r10, %r10, %r7; add.u32 %r10, %r10, %r6;\n"
                              "xor.b32 %r10, %r10, %r3; add.u32 %r10, %r10, %r4; xor.b32 %r10, %r10, %r5; "
                              "shr.u32 %r8, %r8, 1; xor.b32 %r10, %r10, %r8;\n";
    CHECK(results_of(kinds) == Words(32, ((5u ^ 0xfff00000u) ^ 0x20u) ^ 0x0007ffffu));
}

TEST_CASE("where the whole warp comes with one mask, the mask is not looked at", "[members]") {
    const std::string mask = "0x000000ff;\n";
    const auto all = [](std::uint32_t value) { return Words(32, value); };
    CHECK(results_of("vote.sync.ballot.b32 %r10, %p1, " + mask) == all(0xeeeeeeee));
    CHECK(results_of("vote.sync.all.pred %p2, %p1, " + mask + "selp.u32 %r10, 1, 0, %p2;\n") == all(0));
    CHECK(results_of("setp.eq.u32 %p3, %r60, 20; vote.sync.any.pred %p2, %p3, " + mask +
                     "selp.u32 %r10, 1, 0, %p2;\n") == all(1));
    CHECK(results_of("redux.sync.max.u32 %r10, %r0, " + mask) == all(131));
    CHECK(results_of("match.all.sync.b32 %r10|%p2, 7, " + mask) == all(~0u));
    CHECK(results_of("match.all.sync.b32 %r10|%p2, %r0, " + mask) == all(0));
    CHECK(results_of("match.all.sync.b32 %r10|%p2, 7, 0;\n") == all(~0u));
    CHECK(results_of("elect.sync %r10|%p2, 0xffffff00;\n") == all(0));
    CHECK(results_of("bar.warp.sync " + mask) == all(55));
    Words same(32), next(32);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        same[lane] = 0x11111111u << lane % 4;
        next[lane] = 100 + (lane ^ 16);
    }
    CHECK(results_of("match.any.sync.b32 %r10, %r1, " + mask) == same);
    CHECK(results_of("shfl.sync.bfly.b32 %r10, %r0, 16, 31, " + mask) == next);
}

} // namespace ptarmigan::test
