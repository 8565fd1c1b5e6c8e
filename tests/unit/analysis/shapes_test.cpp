// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analysis/graph_fixture.h"

namespace ptarmigan::test {
namespace {

using Level = translator::Shape::Level;

TEST_CASE("thread index of a one-dimensional block is affine") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;", {256, 1, 1});
    REQUIRE(k.shape_of("%r1").is_affine());
    CHECK(k.shape_of("%r1").offsets->at(31) == 31);
}

TEST_CASE("two rows of a block in one step have an offset pattern, the row itself too") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; st.global.u32 [%rd1], %r1; st.global.u32 [%rd1], %r2; ret;", {16, 16, 1});
    REQUIRE(k.shape_of("%r1").is_affine());
    CHECK(k.shape_of("%r1").offsets->at(17) == 1);
    REQUIRE(k.shape_of("%r2").is_affine());
    CHECK(k.shape_of("%r2").offsets->at(15) == 0);
    CHECK(k.shape_of("%r2").offsets->at(16) == 1);
}

TEST_CASE("a block whose rows straddle steps unevenly has varying indices") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;", {24, 4, 1});
    CHECK(k.shape_of("%r1").is_varying());
}

TEST_CASE("products by constants scale offsets, by run-time numbers make a stride") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; mul.lo.s32 %r3, %r1, 12; mul.lo.s32 %r4, %r1, %r2;"
                     "add.s32 %r5, %r3, %r4; mul.lo.s32 %r6, %r4, %r1; st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6}; ret;", {64, 1, 1});
    CHECK(k.shape_of("%r3").offsets->at(5) == 60);
    CHECK(k.shape_of("%r3").steps == nullptr);
    REQUIRE(k.shape_of("%r4").steps);
    CHECK(k.shape_of("%r4").offsets->at(5) == 0);
    CHECK(k.shape_of("%r4").steps->at(5) == 5);
    CHECK(k.shape_of("%r5").offsets->at(5) == 60);
    CHECK(k.shape_of("%r5").steps->at(5) == 5);
    CHECK(k.shape_of("%r6").is_varying());
}

TEST_CASE("widening is plain where the range is known and guarded where lanes may wrap") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; add.s32 %r3, %r1, %r2; mul.wide.s32 %rd1, %r1, 4;"
                     "mul.wide.s32 %rd2, %r3, 4; shl.b64 %rd3, %rd2, 1; cvt.u32.u64 %r4, %rd3; st.global.v2.u64 [%rd9], {%rd1, %rd3}; st.global.u32 [%rd9], %r4; ret;", {64, 1, 1});
    CHECK(k.shape_of("%rd1").is_affine());
    CHECK(k.shape_of("%rd1").guard == translator::no_value);
    REQUIRE(k.shape_of("%rd2").is_affine());
    CHECK(&k.graph.values[k.shape_of("%rd2").guard] == &k.value("%rd2"));
    CHECK(k.shape_of("%rd3").guard_scale == 2);
    CHECK(k.shape_of("%r4").guard == translator::no_value);
}

TEST_CASE("uniform levels") {
    AnalysedKernel k("mov.u32 %r1, %ctaid.x; ld.param.u64 %rd1, [p]; ld.global.u32 %r2, [%rd1]; ld.global.nc.u32 %r3, [%rd1];"
                     "mov.u32 %r4, %tid.x; div.u32 %r5, %r4, 3; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r5}; ret;", {64, 1, 1});
    CHECK(k.shape_of("%r1").level == Level::cta_uniform);
    CHECK(k.shape_of("%r2").level == Level::step_uniform);
    CHECK(k.shape_of("%r3").level == Level::cta_uniform);
    CHECK(k.shape_of("%r5").is_varying());
}

TEST_CASE("floats have no distances, although an integer register holds them") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.eq.u32 %p1, %r2, 0; add.u32 %r5, %r1, %r2; selp.f32 %r3, %r1, %r5, %p1;"
                     "selp.b32 %r4, %r1, %r5, %p1; st.global.v2.u32 [%rd1], {%r3, %r4}; ret;", {64, 1, 1});
    CHECK(k.shape_of("%r3").is_varying());
    CHECK(k.shape_of("%r4").is_affine());
}

TEST_CASE("one lane per step has no varying values") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r1; st.global.u32 [%rd1], %r2; ret;", {64, 1, 1}, 1);
    CHECK(k.shape_of("%r2").level == Level::step_uniform);
}

TEST_CASE("a join behind a divergent branch is varying, behind a uniform one not") {
    const char* join = "mov.u32 %r3, 1; @%p1 bra A; mov.u32 %r3, 2; A: st.global.u32 [%rd1], %r3; ret;";
    AnalysedKernel divergent(std::string("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;") + join);
    AnalysedKernel uniform(std::string("ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 5;") + join);
    CHECK(divergent.shape_of("%r3").is_varying());
    CHECK(uniform.shape_of("%r3").level == Level::cta_uniform);
}

TEST_CASE("a counter keeps its shape inside a loop that lanes leave one by one, and loses it outside") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; mov.u32 %r2, 0; L: add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;"
                     "st.global.u32 [%rd1], %r2; ret;");
    REQUIRE(k.graph.forest.loops.size() == 1);
    CHECK(k.graph.forest.loops[0].divergent_exit);
    unsigned uniform = 0, varying = 0;
    for (const auto& value : k.graph.values)
        if (value.name == "%r2" && value.block != translator::no_block) ++(value.shape.is_uniform() ? uniform : varying);
    CHECK(uniform == 2); // the phi at the header and the sum
    CHECK(varying == 1); // the phi at the exit
}

TEST_CASE("a guarded load whose old value nobody reads may be uniform") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; ld.param.u64 %rd1, [p]; @%p1 ld.global.u32 %r2, [%rd1];"
                     "@%p1 st.global.u32 [%rd1+4], %r2; ret;");
    CHECK(k.shape_of("%r2").is_uniform());
}

TEST_CASE("what only instructions with its guard read, or what they alone read, is uniform with the result") {
    // %r3 is the square of a lane's number before, and goes round the loop; only the chain of %p1 looks at it.
    const auto shape = [](const std::string& guard) {
        AnalysedKernel k("mov.u32 %r1, %tid.x; mul.lo.u32 %r3, %r1, %r1; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r2, 5; mov.u32 %r6, 0;"
                         "LOOP: @%p1 ld.global.u32 %r3, [%rd1]; add.u32 %r4, %r3, 1; @%p1 add.u32 %r5, %r4, %r6;" +
                         guard + " st.global.u32 [%rd1+4], %r5; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, %r2; @%p2 bra LOOP; ret;");
        return k.shape_of("%r4");
    };
    CHECK(shape("@%p1").is_uniform());
    CHECK(shape("").is_uniform()); // %r5 keeps another value, not that one
    AnalysedKernel seen("mov.u32 %r1, %tid.x; mul.lo.u32 %r3, %r1, %r1; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r2, 5;"
                        "@%p1 ld.global.u32 %r3, [%rd1]; add.u32 %r4, %r3, 1; @!%p1 st.global.u32 [%rd1+4], %r4; ret;");
    CHECK_FALSE(seen.shape_of("%r4").is_uniform());
}

TEST_CASE("what only one side of a predicate reads is that side of what the predicate chose") {
    // Machine code's way of `if (p) load(base + 4 * i)`: the base and the number are what the registers held before, or these.
    const auto shape = [](const std::string& inverse, const std::string& guard) {
        AnalysedKernel k("mov.u32 %r1, %tid.x; mul.lo.u32 %r3, %r1, %r1; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r2, 5; setp.lt.u32 %p3, %r1, 5;" + inverse +
                         "ld.param.u64 %rd3, [p]; mul.wide.u32 %rd5, %r1, 8; add.s64 %rd5, %rd5, %rd3; ld.global.u64 %rd2, [%rd5]; selp.b64 %rd2, %rd3, %rd2, %p2; @%p1 mov.b32 %r3, %r1;"
                         "mul.wide.u32 %rd4, %r3, 4; add.s64 %rd2, %rd2, %rd4; " + guard + " st.global.u32 [%rd2], %r2; ret;");
        return k.shape_of("%rd2");
    };
    const std::string copied = "mov.pred %p2, %p1;", inverted = "not.pred %p2, %p1; not.pred %p2, %p2;";
    CHECK(shape(copied, "@%p1").is_affine());
    CHECK(shape(inverted, "@%p1").is_affine());
    CHECK(shape(copied, "@!%p1").is_varying()); // the other side
    CHECK(shape(copied, "@%p3").is_varying());  // another predicate
    CHECK(shape(copied, "").is_varying());
}

TEST_CASE("shuffles are uniform where all lanes of the warp get one lane's value") {
    const auto shape = [](const char* lane, const char* segment, const char* mask) {
        AnalysedKernel k(std::string("mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r1; ld.param.u32 %r3, [n]; shfl.sync.idx.b32 %r4, %r2, ") +
                         lane + ", " + segment + ", " + mask + "; st.global.u32 [%rd1], %r4; ret;");
        return k.shape_of("%r4");
    };
    CHECK(shape("%r3", "31", "-1").is_uniform());
    CHECK(shape("0", "0x1f", "0xffff").is_uniform());
    CHECK(shape("%r3", "15", "-1").is_varying());     // lanes from 16 on may get their own
    CHECK(shape("%r3", "0x101f", "-1").is_varying()); // each half of the warp has one of its own
    CHECK(shape("%r3", "%r3", "-1").is_varying());
    CHECK(shape("%r1", "31", "-1").is_varying());
    CHECK(shape("%r3", "31", "%r1").is_varying());
}

TEST_CASE("behind a branch on its guard a value is the result or what was before") {
    // %r3 is the number of a lane until a uniform guard lets it be something else: so it is uniform where the branch on
    // that guard, or on one that implies it, has been taken.
    const auto uniform_stores = [](const std::string& branch) {
        AnalysedKernel k("mov.u32 %r1, %tid.x; mul.lo.u32 %r3, %r1, %r1; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r2, 5; setp.gt.u32 %p2, %r2, 2;"
                         "not.pred %p3, %p1; and.pred %p4, %p1, %p2; or.pred %p5, %p3, %p2; @%p1 mov.u32 %r3, %r2;" + branch +
                         " bra END; st.global.u32 [%rd1], %r3; END: ret;");
        unsigned stores = 0;
        for (const auto& block : k.graph.blocks)
            for (const auto& instruction : block.instructions)
                if (instruction.inst.form == ptx::FormId::st)
                    stores += k.graph.values[instruction.inst.operands[1].index].shape.is_uniform();
        return stores;
    };
    CHECK(uniform_stores("@!%p1") == 1);
    CHECK(uniform_stores("@%p3") == 1);
    CHECK(uniform_stores("@!%p4") == 1);
    CHECK(uniform_stores("@%p5") == 1);
    CHECK(uniform_stores("@%p1") == 0); // what was before
    CHECK(uniform_stores("@%p4") == 0); // not known
    CHECK(uniform_stores("@%p2") == 0);
}

TEST_CASE("what only instructions under a guard want is computed of what a choice by that guard takes") {
    // %r4 is a lane's own number or a parameter; the sum is uniform where it is wanted for the parameter only.
    const auto shape = [](const std::string& choice, const std::string& use) {
        AnalysedKernel k("mov.u32 %r1, %tid.x; mul.lo.u32 %r3, %r1, %r1; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r2, 5; setp.gt.u32 %p2, %r2, 2;"
                         "not.pred %p3, %p1; and.pred %p4, %p1, %p2; mov.u32 %r7, 0;" +
                         choice + "add.u32 %r5, %r4, 1;" + use + " ret;");
        return k.shape_of("%r5");
    };
    const std::string choice = "selp.u32 %r4, %r2, %r3, %p1;", copy = "mov.u32 %r4, %r3; @%p1 mov.u32 %r4, %r2;";
    for (const std::string& c : {choice, copy}) {
        CHECK(shape(c, "@%p1 st.global.u32 [%rd1], %r5;").is_uniform());
        CHECK(shape(c, "@!%p3 st.global.u32 [%rd1], %r5;").is_uniform());
        CHECK(shape(c, "@%p4 st.global.u32 [%rd1], %r5;").is_uniform());
        CHECK(shape(c, "@!%p1 bra END; st.global.u32 [%rd1], %r5; END:").is_uniform());
        CHECK(shape(c, "selp.u32 %r6, %r5, 3, %p1; st.global.u32 [%rd1], %r6;").is_uniform());
        CHECK(shape(c, "mov.u32 %r6, 7; @%p1 add.u32 %r6, %r5, 1; st.global.u32 [%rd1], %r6;").is_uniform());
        CHECK(shape(c, "@%p2 bra JOIN; mov.u32 %r5, 9; JOIN: @%p1 st.global.u32 [%rd1], %r5;").is_uniform());
        CHECK(!shape(c, "@!%p1 st.global.u32 [%rd1], %r5;").is_uniform()); // the other one
        CHECK(shape(c, "@%p2 st.global.u32 [%rd1], %r5;").is_varying());
        CHECK(shape(c, "@%p1 st.global.u32 [%rd1], %r5; st.global.u32 [%rd1+4], %r5;").is_varying());
        // Another round's predicate is another one.
        CHECK(shape("LOOP: " + c, "@%p1 st.global.u32 [%rd1], %r7; mov.u32 %r7, %r5; setp.lt.u32 %p1, %r7, 9; @%p2 bra LOOP;").is_varying());
    }
}

TEST_CASE("a guarded copy of what was there, or a choice of one value, is that value") {
    AnalysedKernel copied("mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r1, 5; mov.u32 %r3, %r2; @%p1 mov.u32 %r3, %r2; st.global.u32 [%rd1], %r3; ret;");
    CHECK(copied.count("mov") == 0);
    AnalysedKernel chosen("mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r1, 5; selp.u32 %r3, %r2, %r2, %p1; st.global.u32 [%rd1], %r3; ret;");
    CHECK(chosen.count("selp") == 0);
}

TEST_CASE("votes are uniform only under a uniform mask") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.ballot.b32 %r3, %p1, %r1;"
                     "st.global.v2.u32 [%rd1], {%r2, %r3}; ret;");
    CHECK(k.shape_of("%r2").is_uniform());
    CHECK(k.shape_of("%r3").is_varying());
}

TEST_CASE("index arithmetic of the thread index keeps a shape: quotients, remainders, swizzles") {
    // 16 x 16 threads in steps of 32: two rows, linear index t = 16 y + x.
    AnalysedKernel k("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; shl.b32 %r3, %r2, 4; add.s32 %r4, %r3, %r1;"
                     "shr.s32 %r5, %r4, 31; shr.u32 %r6, %r5, 28; add.s32 %r7, %r4, %r6; and.b32 %r8, %r7, -16; sub.s32 %r9, %r4, %r8;"
                     "shr.s32 %r10, %r7, 4; shr.u32 %r11, %r4, 5; xor.b32 %r12, %r9, 3; div.u32 %r13, %r4, 3; setp.lt.u32 %p1, %r4, 64;"
                     "selp.u32 %r14, 1, 2, %p1; st.global.v4.u32 [%rd1], {%r9, %r10, %r11, %r12}; st.global.v2.u32 [%rd1], {%r13, %r14}; ret;",
                     {16, 16, 1});
    CHECK(k.shape_of("%r5").is_uniform());
    REQUIRE(k.shape_of("%r9").is_affine());
    CHECK(k.shape_of("%r9").offsets->at(15) == 15);
    CHECK(k.shape_of("%r9").offsets->at(16) == 0);
    REQUIRE(k.shape_of("%r10").is_affine());
    CHECK(k.shape_of("%r10").offsets->at(15) == 0);
    CHECK(k.shape_of("%r10").offsets->at(31) == 1);
    CHECK(k.shape_of("%r11").is_uniform());
    REQUIRE(k.shape_of("%r12").is_affine());
    CHECK(k.shape_of("%r12").offsets->at(1) == -1);
    CHECK(k.shape_of("%r12").offsets->at(4) == 4);
    CHECK(k.shape_of("%r13").is_varying()); // 32 / 3 leaves a remainder: steps differ
    CHECK(k.shape_of("%p1").is_uniform());
    CHECK(k.shape_of("%r14").is_uniform());
}

TEST_CASE("the low bits of a global thread index are those of the thread index") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;"
                     "and.b32 %r5, %r4, 31; shr.u32 %r6, %r4, 5; and.b32 %r7, %r4, -32; ld.param.u32 %r8, [n]; add.s32 %r9, %r4, %r8;"
                     "and.b32 %r10, %r9, 31; shl.b32 %r11, %r8, 5; add.s32 %r12, %r1, %r11; rem.u32 %r13, %r12, 16;"
                     "st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r10}; st.global.v2.u32 [%rd1], {%r12, %r13}; ret;",
                     {64, 1, 1});
    REQUIRE(k.shape_of("%r5").is_affine());
    CHECK(k.shape_of("%r5").offsets->at(31) == 31);
    CHECK(k.shape_of("%r6").is_uniform());
    CHECK(k.shape_of("%r7").is_uniform());
    CHECK(k.shape_of("%r10").is_varying()); // n may be odd
    REQUIRE(k.shape_of("%r13").is_affine());
    CHECK(k.shape_of("%r13").offsets->at(17) == 1);
}

TEST_CASE("what is only assumed to be uniform must be so where it is used") {
    AnalysedKernel k("mov.u32 %r1, %tid.x; ld.global.u32 %r2, [%rd1]; add.u64 %rd2, %rd1, 4; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3;"
                     "ld.global.u32 %r3, [%rd4]; shl.b32 %r4, %r2, 8; or.b32 %r5, %r4, 1; shl.b32 %r6, %r3, 8; add.u32 %r7, %r4, %r1; add.u32 %r8, %r6, %r1;"
                     "shr.u32 %r9, %r7, 8; shr.u32 %r10, %r8, 8; st.global.v4.u32 [%rd1], {%r5, %r9, %r10, %r7}; ret;",
                     {256, 1, 1});
    CHECK(k.shape_of("%r9").is_uniform());
    CHECK(k.shape_of("%r10").is_varying());
}

TEST_CASE("shapes: a thread's number that is moved as a float under a condition is bits") {
    AnalysedKernel k("mov.u32 %r0, %tid.x; ld.param.u32 %r3, [n]; setp.eq.u32 %p0, %r3, 1; add.u32 %r1, %r0, 100;\n"
                     "@%p0 mov.f32 %r1, %r0; ld.param.u64 %rd0, [p]; st.global.u32 [%rd0], %r1;");
    CHECK(k.shape_of("%r1").is_varying());
}

} // namespace
} // namespace ptarmigan::test
