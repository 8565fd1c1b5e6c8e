// SPDX-License-Identifier: Apache-2.0
// Loops that a compiler has made two of, and some that look like it.
#include "graph_fixture.h"
#include "translator/analysis/loops/reroll_loops.h"

#include <string>

using namespace ptarmigan;

namespace {

struct Parts {
    std::string guard = "setp.ge.s32 %p2, %r2, %r3; @%p2 bra DONE;"; // first < last
    std::string first = "mul.wide.s32 %rd4, %r2, 4; add.s64 %rd5, %rd1, %rd4; mov.f32 %f1, 0f00000000; mov.u32 %r7, %r2;";
    std::string single = "ld.global.f32 %f2, [%rd5]; add.f32 %f1, %f1, %f2; add.s32 %r7, %r7, 1; add.s64 %rd5, %rd5, 4;";
    std::string enough = "not.b32 %r8, %r2; add.s32 %r9, %r4, %r8; setp.lt.u32 %p5, %r9, 3;";
    std::string second = "mul.wide.s32 %rd6, %r7, 4; add.s64 %rd7, %rd6, 8; add.s64 %rd8, %rd1, %rd7;";
    std::string several = "ld.global.f32 %f3, [%rd8+-8]; add.f32 %f1, %f1, %f3; ld.global.f32 %f4, [%rd8+-4]; add.f32 %f1, %f1, %f4;"
                          "ld.global.f32 %f5, [%rd8]; add.f32 %f1, %f1, %f5; ld.global.f32 %f6, [%rd8+4]; add.f32 %f1, %f1, %f6;";
    std::string step = "add.s64 %rd8, %rd8, 16; add.s32 %r7, %r7, 4;";
    std::string behind; // of %rd2, where the result goes

    /// How many loops are made one again.
    unsigned rerolled() const {
        test::AnalysedKernel kernel(
            "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.global.u32 %r2, [%rd2]; ld.global.u32 %r3, [%rd2+4]; mov.f32 %f1, 0f00000000;" + guard +
                "add.s32 %r10, %r2, 1; max.s32 %r4, %r3, %r10; sub.s32 %r5, %r4, %r2; and.b32 %r6, %r5, 3; setp.eq.s32 %p3, %r6, 0;"
                "mov.f32 %f1, 0f00000000; mov.u32 %r7, %r2; @%p3 bra BETWEEN;" + first +
                "\nSINGLE: " + single + "add.s32 %r6, %r6, -1; setp.ne.s32 %p4, %r6, 0; @%p4 bra SINGLE;"
                "\nBETWEEN: " + enough + "@%p5 bra DONE;" + second +
                "\nSEVERAL: " + several + step + "setp.lt.s32 %p6, %r7, %r3; @%p6 bra SEVERAL;"
                "\nDONE: st.global.f32 [%rd2], %f1;" + behind + "ret;",
            {32, 1, 1}, 1);
        const unsigned count = translator::reroll_loops(kernel.graph);
        translator::verify_graph(kernel.graph);
        return count;
    }
};

unsigned with(std::string Parts::*part, const std::string& text) {
    Parts parts;
    parts.*part = text;
    return parts.rerolled();
}

unsigned replaced(std::string Parts::*part, const std::string& before, const std::string& after) {
    Parts parts;
    std::string& text = parts.*part;
    const std::size_t at = text.find(before);
    REQUIRE(at != std::string::npos);
    text.replace(at, before.size(), after);
    return parts.rerolled();
}

} // namespace

TEST_CASE("reroll: single rounds before rounds of four", "[reroll]") {
    CHECK(Parts().rerolled() == 1);
    // the same by other instructions
    CHECK(replaced(&Parts::enough, "not.b32 %r8, %r2; add.s32 %r9, %r4, %r8;", "sub.s32 %r8, %r4, %r2; add.s32 %r9, %r8, -1;") == 1);
    CHECK(replaced(&Parts::second, "mul.wide.s32 %rd6, %r7, 4;", "cvt.s64.s32 %rd6, %r7; shl.b64 %rd6, %rd6, 2;") == 1);
    // by way of an index that was loaded, as in sparse matrices
    Parts indexed;
    indexed.single = "ld.global.u32 %r11, [%rd5]; mul.wide.s32 %rd9, %r11, 4; add.s64 %rd10, %rd1, %rd9; ld.global.f32 %f2, [%rd10]; add.f32 %f1, %f1, %f2;"
                     "add.s32 %r7, %r7, 1; add.s64 %rd5, %rd5, 4;";
    indexed.several.clear();
    for (const char* place : {"[%rd8+-8]", "[%rd8+-4]", "[%rd8]", "[%rd8+4]"})
        indexed.several += std::string("ld.global.u32 %r11, ") + place + "; mul.wide.s32 %rd9, %r11, 4; add.s64 %rd10, %rd1, %rd9; ld.global.f32 %f2, [%rd10]; add.f32 %f1, %f1, %f2;";
    CHECK(indexed.rerolled() == 1);
}

TEST_CASE("reroll: not if the rounds of four do anything else", "[reroll]") {
    CHECK(replaced(&Parts::several, "add.f32 %f1, %f1, %f4;", "sub.f32 %f1, %f1, %f4;") == 0);
    CHECK(replaced(&Parts::several, "[%rd8+-4]", "[%rd8+-8]") == 0);
    CHECK(replaced(&Parts::several, "add.f32 %f1, %f1, %f6;", "") == 0);
    CHECK(replaced(&Parts::several, "add.f32 %f1, %f1, %f4;", "add.rz.f32 %f1, %f1, %f4;") == 0);
    CHECK(replaced(&Parts::several, "ld.global.f32 %f4", "ld.volatile.global.f32 %f4") == 0);
    // in another order: floats don't add up to the same
    CHECK(with(&Parts::several, "ld.global.f32 %f3, [%rd8+-4]; add.f32 %f1, %f1, %f3; ld.global.f32 %f4, [%rd8+-8]; add.f32 %f1, %f1, %f4;"
                                "ld.global.f32 %f5, [%rd8]; add.f32 %f1, %f1, %f5; ld.global.f32 %f6, [%rd8+4]; add.f32 %f1, %f1, %f6;") == 0);
    CHECK(replaced(&Parts::step, "16", "12") == 0);
    CHECK(replaced(&Parts::step, "%r7, 4", "%r7, 5") == 0);
    CHECK(replaced(&Parts::second, "%rd6, 8", "%rd6, 12") == 0);
    CHECK(replaced(&Parts::second, "mul.wide.s32 %rd6, %r7, 4", "mul.wide.u32 %rd6, %r7, 4") == 0);
    CHECK(replaced(&Parts::first, "mul.wide.s32 %rd4, %r2, 4", "mul.wide.s32 %rd4, %r3, 4") == 0);
    CHECK(replaced(&Parts::single, "add.s64 %rd5, %rd5, 4", "add.s64 %rd5, %rd5, 8") == 0);
    CHECK(replaced(&Parts::single, "add.s32 %r7, %r7, 1", "add.s32 %r7, %r7, 2") == 0);
}

TEST_CASE("reroll: numbers beside the index must not wrap where it may be", "[reroll]") {
    const auto beside = [](int ahead) {
        Parts parts;
        parts.single = "add.s32 %r12, %r7, " + std::to_string(ahead) + "; mul.wide.s32 %rd9, %r12, 4; add.s64 %rd10, %rd1, %rd9; ld.global.f32 %f2, [%rd10];"
                       "add.f32 %f1, %f1, %f2; add.s32 %r7, %r7, 1; add.s64 %rd5, %rd5, 4;";
        parts.several.clear();
        for (int i = 0; i < 4; ++i)
            parts.several += "ld.global.f32 %f3, [%rd8+" + std::to_string(4 * (ahead + i) - 8) + "]; add.f32 %f1, %f1, %f3;";
        return parts.rerolled();
    };
    CHECK(beside(0) == 1);
    CHECK(beside(1) == 1); // at most the last one's end
    CHECK(beside(2) == 0);
    CHECK(beside(-1) == 0);
}

TEST_CASE("reroll: not if it is not known that the rounds are as many", "[reroll]") {
    CHECK(with(&Parts::guard, "") == 0);
    CHECK(replaced(&Parts::guard, "setp.ge.s32", "setp.gt.s32") == 0);
    CHECK(replaced(&Parts::guard, "setp.ge.s32", "setp.ge.u32") == 0);
    CHECK(replaced(&Parts::guard, "%r2, %r3", "%r3, %r2") == 0);
    CHECK(replaced(&Parts::enough, "%r9, 3", "%r9, 4") == 0);
    CHECK(replaced(&Parts::enough, "setp.lt.u32", "setp.lt.s32") == 0);
    CHECK(replaced(&Parts::enough, "add.s32 %r9, %r4, %r8", "add.s32 %r9, %r3, %r4") == 0);
}

TEST_CASE("reroll: not if somebody looks at what lies between, or at memory that is written", "[reroll]") {
    CHECK(with(&Parts::behind, "st.global.u32 [%rd2+8], %r7;") == 1); // the index is the same whichever loop has moved it
    CHECK(with(&Parts::behind, "st.global.u32 [%rd2+8], %r6;") == 0); // the counter is not
    CHECK(replaced(&Parts::second, "mul.wide", "st.global.u32 [%rd2+12], %r7; mul.wide") == 0);
    CHECK(replaced(&Parts::enough, "not.b32", "st.global.u32 [%rd2+12], %r7; not.b32") == 0);
    CHECK(replaced(&Parts::single, "add.f32", "st.global.f32 [%rd2+16], %f2; add.f32") == 0);
    CHECK(replaced(&Parts::several, "add.f32 %f1, %f1, %f4;", "add.f32 %f1, %f1, %f4; st.global.f32 [%rd2+16], %f1;") == 0);
    CHECK(replaced(&Parts::single, "add.f32 %f1, %f1, %f2;", "add.f32 %f1, %f1, %f2; cvt.rn.f32.u32 %f8, %r6; add.f32 %f1, %f1, %f8;") == 0); // the counter
}
