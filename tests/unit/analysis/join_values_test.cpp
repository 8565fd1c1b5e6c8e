// SPDX-License-Identifier: Apache-2.0
// What machine code keeps in several registers, or computes several times, is one value (analysis/arithmetic/join_halves, join_equal_values).
#include "graph_fixture.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

TEST_CASE("machine code's pairs of registers and repeated parameters are one value each") {
    // A `debug` target's: what the lifter writes.
    const auto kernel = [](const std::string& text) {
        auto loader = ptx::ModuleLoader::load(".version 8.0\n.target sm_90, debug\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                                              ".reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;\n" + text + "\n}\n", "test");
        REQUIRE(loader->ok());
        translator::GraphOptions options;
        options.shape.ntid = {32, 1, 1};
        return std::pair(std::move(loader), options);
    };
    const auto count = [&](const std::string& text, ptx::FormId form) {
        auto [loader, options] = kernel(text);
        const translator::FunctionGraph graph = translator::build_graph(*loader, *loader->module().find_function("k"), options);
        translator::verify_graph(graph);
        std::size_t found = 0;
        for (const auto& block : graph.blocks)
            for (const auto& instruction : block.instructions) found += instruction.inst.form == form;
        return found;
    };
    const std::string walk = "ld.param.b64 %rd1, [p]; mov.b64 {%r1, %r4}, %rd1; mov.b32 %r3, 8;"
                             "L: mov.b64 %rd2, {%r1, %r4}; st.global.b32 [%rd2], %r3; mov.b64 %rd3, {%r1, %r4}; add.s64 %rd4, %rd3, 512;";
    const std::string round = "add.s32 %r3, %r3, -1; setp.ne.s32 %p1, %r3, 0; @%p1 bra L; ret;";
    CHECK(count(walk + "cvt.u32.u64 %r1, %rd4; mov.b64 {%r5, %r4}, %rd4;" + round, ptx::FormId::mov_pack) == 0);
    CHECK(count(walk + "cvt.u32.u64 %r1, %rd3; mov.b64 {%r5, %r4}, %rd4;" + round, ptx::FormId::mov_pack) == 1); // halves of two numbers
    CHECK(count(walk + "mov.b64 {%r4, %r1}, %rd4;" + round, ptx::FormId::mov_pack) == 1);                        // the wrong way round
    const std::string word = "ld.param.b64 %rd1, [p]; ld.global.b32 %r1, [%rd1];", pack = "mov.b64 %rd2, {%r1, %r2}; st.global.b64 [%rd1+8], %rd2; ret;";
    CHECK(count(word + "shr.s32 %r2, %r1, 31;" + pack, ptx::FormId::cvt_widen_64) == 1);
    CHECK(count(word + "mov.b32 %r2, 0;" + pack, ptx::FormId::cvt_widen_64) == 1);
    CHECK(count(word + "shr.s32 %r2, %r1, 30;" + pack, ptx::FormId::cvt_widen_64) == 0);
    CHECK(count(word + "shr.u32 %r2, %r1, 31;" + pack, ptx::FormId::cvt_widen_64) == 0);
    CHECK(count(word + "mov.b32 %r2, 1;" + pack, ptx::FormId::cvt_widen_64) == 0);
    const std::string again = "ld.param.b64 %rd1, [p]; ld.param.b32 %r1, [n]; mul.lo.s32 %r2, %r1, %r1; st.global.b32 [%rd1], %r2;"
                              "ld.param.b32 %r3, [n]; mul.lo.s32 %r4, %r3, %r3; st.global.b32 [%rd1+4], %r4;";
    CHECK(count(again + "ret;", ptx::FormId::mul_lo) == 1);
    CHECK(count(again + "ld.global.b32 %r5, [%rd1]; ld.global.b32 %r6, [%rd1]; st.global.v2.b32 [%rd1+8], {%r5, %r6}; ret;", ptx::FormId::ld) == 4); // memory may change
    CHECK(count(again + "mov.u32 %r5, %clock; mov.u32 %r6, %clock; st.global.v2.b32 [%rd1+8], {%r5, %r6}; ret;", ptx::FormId::mov) == 2);
    CHECK(count(again + "mul.lo.u32 %r5, %r1, 3; mul.hi.u32 %r6, %r1, 3; st.global.v2.b32 [%rd1+8], {%r5, %r6}; ret;", ptx::FormId::mul_hi) == 1);
}

TEST_CASE("machine code's loads and stores under one predicate become a branch around them") {
    // Whether any instruction keeps its guard.
    const auto is_left = [](const std::string& text) {
        auto loader = ptx::ModuleLoader::load(".version 8.0\n.target sm_90, debug\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                                              ".reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;\nld.param.b64 %rd1, [p]; mov.u32 %r0, %tid.x; "
                                              "setp.lt.u32 %p1, %r0, 5; setp.lt.u32 %p2, %r0, 7;" + text + "ret;\n}\n", "test");
        REQUIRE(loader->ok());
        translator::GraphOptions options;
        options.shape.ntid = {32, 1, 1};
        const translator::FunctionGraph graph = translator::build_graph(*loader, *loader->module().find_function("k"), options);
        translator::verify_graph(graph);
        for (const auto& block : graph.blocks)
            for (const auto& instruction : block.instructions)
                if (instruction.inst.guard != ptx::no_id) return true;
        return false;
    };
    const std::string loads = "@%p1 ld.global.b32 %r1, [%rd1]; @%p1 ld.global.b32 %r2, [%rd1+4]; add.s32 %r3, %r1, %r2;";
    CHECK_FALSE(is_left(loads + "@%p1 st.global.b32 [%rd1], %r3;"));
    CHECK_FALSE(is_left(loads + "not.pred %p3, %p1; @!%p3 st.global.b32 [%rd1], %r3;"));
    CHECK_FALSE(is_left("mov.b32 %r4, 1; @%p1 mov.b32 %r4, %r0;" + loads + "@%p1 st.global.b32 [%rd1], %r3; st.global.b32 [%rd1+8], %r4;"));
    CHECK(is_left("@%p1 ld.global.b32 %r1, [%rd1]; @%p1 st.global.b32 [%rd1+4], %r1;"));               // not worth it
    CHECK(is_left(loads + "@%p2 st.global.b32 [%rd1], %r3;"));                                         // two predicates
    CHECK(is_left("@%p1 ld.global.b32 %r1, [%rd1]; @%p1 ld.global.b32 %r2, [%rd1+4]; st.global.b32 [%rd1], %r0; @%p1 st.global.b32 [%rd1+4], %r1; @%p1 st.global.b32 [%rd1+8], %r2;")); // a store between
}

TEST_CASE("machine code's parameters leave loops") {
    auto loader = ptx::ModuleLoader::load(".version 8.0\n.target sm_90, debug\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n"
                                          ".reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;\nmov.u32 %r0, %tid.x; bar.sync 0;\n"
                                          "L: ld.param.b64 %rd1, [p]; mul.wide.s32 %rd2, %r0, 4; add.s64 %rd2, %rd2, %rd1; ld.global.b32 %r1, [%rd2]; ld.param.b64 %rd3, [q];"
                                          "add.s64 %rd4, %rd3, 64; st.global.b32 [%rd4], %r1; mov.u32 %r2, %nctaid.x; mad.lo.s32 %r0, %r2, 256, %r0; ld.param.b32 %r3, [n];"
                                          "mov.u32 %r5, %clock; st.global.b32 [%rd4+4], %r5; setp.lt.s32 %p1, %r0, %r3; @%p1 bra L; ret;\n}\n", "test");
    REQUIRE(loader->ok());
    translator::GraphOptions options;
    options.shape.ntid = {32, 1, 1};
    const translator::FunctionGraph graph = translator::build_graph(*loader, *loader->module().find_function("k"), options);
    translator::verify_graph(graph);
    REQUIRE(graph.forest.loops.size() == 1);
    std::size_t parameters = 0, sums = 0, measures = 0;
    for (const translator::BlockId block : graph.forest.loops[0].blocks)
        for (const auto& instruction : graph.blocks[block].instructions) {
            parameters += instruction.inst.space == ptx::StateSpace::param;
            sums += instruction.inst.form == ptx::FormId::add_int;
            measures += instruction.inst.form == ptx::FormId::mov;
        }
    CHECK(parameters == 0);
    CHECK(sums == 1);     // the place that is another one in each round
    CHECK(measures == 1); // the clock
}

TEST_CASE("machine code's 64-bit numbers of two halves are one number each") {
    // How many are still put together of halves.
    const auto packs = [](const std::string& text) {
        auto loader = ptx::ModuleLoader::load(".version 8.0\n.target sm_90, debug\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
                                              ".reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .pred %p<4>;\nld.param.b64 %rd1, [p]; ld.param.b64 %rd2, [q];"
                                              "mov.b64 {%r1, %r2}, %rd1; mov.b64 {%r3, %r4}, %rd2; mov.u32 %r0, %tid.x; mul.wide.s32 %rd3, %r0, 16; mov.b64 {%r5, %r6}, %rd3;" +
                                                  text + "mov.b64 %rd9, {%r10, %r11}; st.global.b32 [%rd9], %r0; ret;\n}\n",
                                              "test");
        REQUIRE(loader->ok());
        translator::GraphOptions options;
        options.shape.ntid = {32, 1, 1};
        const translator::FunctionGraph graph = translator::build_graph(*loader, *loader->module().find_function("k"), options);
        translator::verify_graph(graph);
        std::size_t found = 0;
        for (const auto& block : graph.blocks)
            for (const auto& instruction : block.instructions) found += instruction.inst.form == ptx::FormId::mov_pack;
        return found;
    };
    const std::string sum = "add.s32 %r10, %r5, %r1; setp.lt.u32 %p1, %r10, %r5; selp.b32 %r12, 1, 0, %p1; add.s32 %r13, %r6, %r2;";
    CHECK(packs(sum + "add.s32 %r11, %r13, %r12;") == 0);
    CHECK(packs(sum + "mov.b32 %r11, %r13;") == 1);                                                   // without its carry
    CHECK(packs(sum + "setp.lt.u32 %p2, %r10, %r6; selp.b32 %r14, 1, 0, %p2; add.s32 %r11, %r13, %r14;") == 1); // another one
    CHECK(packs(sum + "selp.b32 %r14, 0, 1, %p1; add.s32 %r11, %r13, %r14;") == 1);
    CHECK(packs("add.s32 %r10, %r5, %r1; add.s32 %r13, %r6, %r2; cvt.u64.u32 %rd4, %r5; cvt.u64.u32 %rd5, %r1; add.u64 %rd6, %rd4, %rd5; mov.b64 {%r14, %r15}, %rd6;"
                "setp.ge.u32 %p1, %r15, 1; selp.b32 %r12, 1, 0, %p1; add.s32 %r11, %r13, %r12;") == 0);
    const std::string shifted = "shl.b64 %rd4, %rd3, 2; mov.b64 {%r14, %r11}, %rd4;";
    CHECK(packs(shifted + "shl.b32 %r10, %r5, 2;") == 0);
    CHECK(packs(shifted + "shl.b32 %r10, %r5, 3;") == 1);
    CHECK(packs(shifted + "shl.b32 %r10, %r6, 2;") == 1);
    CHECK(packs("or.b32 %r10, %r5, 8; mov.b32 %r11, %r6;") == 0);
    CHECK(packs("or.b32 %r10, %r5, 8; mov.b32 %r11, %r4;") == 1);
    CHECK(packs("mov.b32 %r10, %r5; mad.lo.s32 %r11, %r1, %r3, %r6;") == 1); // above the lower half
}
