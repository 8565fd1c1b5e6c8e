// SPDX-License-Identifier: Apache-2.0
// Rounds of loops that a launch counts from its parameters.
#include "graph_fixture.h"

#include "translator/analysis/loops/count_rounds.h"

#include <array>
#include <cstring>

using namespace ptarmigan;

namespace {

struct Launch {
    std::uint64_t p = 0, q = 0;
    std::uint32_t n = 0;
    std::array<std::uint32_t, 3> grid{1, 1, 1};
};

/// What the first loop adds for a launch, over what it costs where its rounds are not known.
std::uint64_t rounds(const std::string& body, const Launch& launch) {
    test::AnalysedKernel kernel(body);
    translator::LaunchWork work = translator::count_rounds(kernel.graph);
    REQUIRE(translator::is_consistent(work));
    REQUIRE(work.loops.size() >= 2);
    std::array<std::uint8_t, 20> bytes{};
    std::memcpy(bytes.data(), &launch.p, 8);
    std::memcpy(bytes.data() + 8, &launch.q, 8);
    std::memcpy(bytes.data() + 16, &launch.n, 4);
    for (translator::LaunchLoop& loop : work.loops) loop.cost = 0;
    work.loops.back().cost = 1;
    return translator::statements_of_thread(work, bytes, launch.grid);
}

/// A loop from %r2 on by %r3 up to %r1, which holds n at first.
std::string loop(const std::string& start, const std::string& test) {
    return "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r3, 1; mov.u32 %r2, 0;" + start +
           "L: ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1+4], %r2; add.s32 %r2, %r2, %r3;" + test +
           "@%p1 bra L; ret;";
}

const std::string up_to_n = "setp.lt.s32 %p1, %r2, %r1;";

} // namespace

TEST_CASE("rounds: counters up to a parameter, by what they gain", "[rounds]") {
    CHECK(rounds(loop("", up_to_n), {.n = 1000}) == 999); // from behind the first
    CHECK(rounds(loop("mov.u32 %r3, 4;", up_to_n), {.n = 1000}) == 249);
    CHECK(rounds(loop("add.s32 %r1, %r1, 15; shr.s32 %r1, %r1, 4;", up_to_n), {.n = 16000}) == 999);
    CHECK(rounds(loop("", "setp.ne.s32 %p1, %r2, 5000;"), {}) == 4999);
    CHECK(rounds(loop("neg.s32 %r2, %r1;", "setp.ne.s32 %p1, %r2, 0;"), {.n = 300}) == 299);
    CHECK(rounds(loop("mov.u32 %r2, %r1; mov.u32 %r3, -2;", "setp.gt.s32 %p1, %r2, 0;"), {.n = 300}) == 149);
    const std::string down = "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];"
                             "L: st.global.u32 [%rd1], %r1; add.u32 %r1, %r1, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret;";
    CHECK(rounds(down, {.n = 300}) == 299); // the immediate is 0xffffffff
}

TEST_CASE("rounds: a grid's threads share what they stride over", "[rounds]") {
    const std::string strided = "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, %tid.x; mad.lo.s32 %r2, "
                                "%r5, %r6, %r7; mov.u32 %r8, %nctaid.x; mul.lo.s32 %r3, %r8, %r6;";
    CHECK(rounds(loop(strided, up_to_n), {.n = 32 * 1000}) == 999);
    CHECK(rounds(loop(strided, up_to_n), {.n = 32 * 1000, .grid = {10, 1, 1}}) == 99);
}

TEST_CASE("rounds: what nobody can count is one round", "[rounds]") {
    CHECK(rounds(loop("", "setp.ne.s32 %p1, %r4, 0;"), {.n = 1000}) == 1);     // by what memory holds
    CHECK(rounds(loop("ld.global.u32 %r1, [%rd1+8];", up_to_n), {.n = 1000}) == 1);
    CHECK(rounds(loop("", up_to_n), {.n = 0xffffff00u}) == 1);                  // none, or it wraps
    CHECK(rounds(loop("mov.u32 %r3, -1;", up_to_n), {.n = 1000}) == 1);
}

TEST_CASE("rounds: loops in loops multiply", "[rounds]") {
    const std::string body = "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;"
                             "L: mov.u32 %r3, 0;"
                             "M: st.global.u32 [%rd1], %r3; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, 11; @%p1 bra M;"
                             "add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %r1; @%p2 bra L; ret;";
    CHECK(rounds(body, {.n = 101}) == 1000);
}

TEST_CASE("rounds: numbers of a launch do not overflow", "[rounds]") {
    using Kind = translator::LaunchNumber::Kind;
    translator::LaunchWork work;
    work.numbers = {{.kind = Kind::constant, .value = INT64_MIN},
                    {.kind = Kind::constant, .value = -1},
                    {.kind = Kind::divide, .a = 0, .b = 1},
                    {.kind = Kind::parameter, .bits = 64, .value = 4},
                    {.kind = Kind::shift_left, .a = 0, .b = 1}};
    work.loops = {{.cost = 1}, {.parent = 0, .cost = 1, .distance = 0, .gain = 4}, {.parent = 1, .cost = 9, .distance = 0, .gain = 1}};
    work.loops.push_back({.parent = 2, .cost = 0xffffffffu, .distance = 2, .gain = 3});
    REQUIRE(translator::is_consistent(work));
    const std::array<std::uint8_t, 8> parameters{};
    const std::array<std::uint32_t, 3> grid{1, 1, 1};
    CHECK(translator::statements_of_thread(work, parameters, grid) > 0);
    work.numbers[3].a = 3; // no source of it
    CHECK(translator::is_consistent(work));
    work.numbers[4].a = 4;
    CHECK_FALSE(translator::is_consistent(work));
}
