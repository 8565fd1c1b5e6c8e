// SPDX-License-Identifier: Apache-2.0
// Loops by the block's size, `for (i = thread; i < 1024; i += 256)`, as compilers unroll them: how often they go round
// is known with the block, and a loop that goes round once is none.
#include "graph_fixture.h"

using namespace ptarmigan;

namespace {

/// %r1 is the thread's number. Rounds one by one up to a multiple of four, then four at a time.
std::string walk(const std::string& limit, unsigned step) {
    const std::string last = std::to_string(std::stoi(limit) - 1), by = std::to_string(step);
    std::string shift;
    for (unsigned n = 0; n < 16; ++n)
        if (1u << n == step) shift = std::to_string(n);
    const std::string one = "mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r4; add.s32 %r4, %r4, " + by + ";\n";
    return "ld.param.u64 %rd1, [p]; mov.u32 %r8, %tid.x; mov.u32 %r9, %tid.y; mov.u32 %r7, %ntid.x; mad.lo.s32 %r1, %r9, %r7, %r8;\n"
           "sub.s32 %r2, " + last + ", %r1; shr.u32 %r3, %r2, " + shift + "; add.s32 %r3, %r3, 1; and.b32 %r5, %r3, 3; mov.u32 %r4, %r1;\n"
           "setp.eq.s32 %p1, %r5, 0; @%p1 bra MORE;\n"
           "ONE: " + one + "sub.s32 %r5, %r5, 1; setp.ne.s32 %p2, %r5, 0; @%p2 bra ONE;\n"
           "MORE: setp.lt.u32 %p3, %r2, " + std::to_string(3 * step) + "; @%p3 bra DONE;\n"
           "FOUR: " + one + one + one + one + "setp.lt.s32 %p4, %r4, " + limit + "; @%p4 bra FOUR;\nDONE: ret;";
}

std::size_t loops(const std::string& body, std::array<std::uint32_t, 3> ntid) {
    return test::AnalysedKernel(body, ntid).graph.forest.loops.size();
}

} // namespace

TEST_CASE("loops by the block's size that go round once are none", "[graph][ranges]") {
    CHECK(loops(walk("1024", 256), {256, 1, 1}) == 0);
    CHECK(loops(walk("1024", 256), {16, 16, 1}) == 0);
    CHECK(loops(walk("512", 128), {128, 1, 1}) == 0);
    test::AnalysedKernel once(walk("1024", 256), {16, 16, 1});
    CHECK(once.count("st") == 4);
    // twice, of which the last rounds are the loop's; a limit that not all threads come to as often
    CHECK(loops(walk("2048", 256), {256, 1, 1}) == 1);
    CHECK(loops(walk("1000", 256), {256, 1, 1}) >= 1);
    // a larger block: some threads go round once, some not at all
    CHECK(loops(walk("1024", 256), {512, 1, 1}) >= 1);
}

TEST_CASE("a loop inside of another starts anew each time", "[graph][ranges]") {
    // the inner one begins where the outer one has come to: 0, 8, 16, ...
    const std::string inner = "mov.u32 %r4, %r2;\nL: add.s32 %r4, %r4, 8; add.s32 %r6, %r6, %r4; setp.lt.s32 %p2, %r4, 16; @%p2 bra L;\n";
    const std::string begin = "ld.param.u64 %rd1, [p]; mov.u32 %r2, 0; mov.u32 %r6, 0;\n";
    const std::string end = "add.s32 %r2, %r2, 8; setp.lt.s32 %p1, %r2, 24; @%p1 bra O;\nst.global.u32 [%rd1], %r6; ret;";
    CHECK(loops(begin + "O: " + inner + end, {32, 1, 1}) == 2);
    // and this one at 16
    CHECK(loops(begin + "O: mov.u32 %r4, 16;\nL: add.s32 %r4, %r4, 8; add.s32 %r6, %r6, %r4; setp.lt.s32 %p2, %r4, 16; @%p2 bra L;\n" + end, {32, 1, 1}) == 1);
}
