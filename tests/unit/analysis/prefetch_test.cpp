// SPDX-License-Identifier: Apache-2.0
// What a value gains by a round of its loop, and which loads are worth a prefetch.
#include "graph_fixture.h"

#include "translator/analysis/loops/loop_strides.h"
#include "translator/analysis/loops/plan_prefetch.h"
#include "translator/analysis/loops/plan_turns.h"

using namespace ptarmigan;

namespace {

/// A loop over %r1 rounds; %rd1 and %rd2 hold the pointers p and q, %rd3 the one that the loop moves.
std::string loop(const std::string& body) {
    return "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u64 %rd3, %rd1; mov.u32 %r2, 0; mov.f32 %f1, 0f00000000;\n"
           "L: " + body + " add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;\n"
           "st.global.f32 [%rd2], %f1; ret;";
}

std::optional<std::int64_t> stride_of(const std::string& body, const std::string& name) {
    test::AnalysedKernel kernel(loop(body), {32, 1, 1}, 1);
    const translator::SsaValue& value = kernel.value(name);
    return translator::LoopStrides(kernel.graph).of(translator::ValueId(&value - kernel.graph.values.data()), 0);
}

std::vector<int> planned(const std::string& body, std::array<std::uint32_t, 3> ntid, unsigned width) {
    test::AnalysedKernel kernel(body, ntid, width);
    translator::plan_prefetch(kernel.graph, kernel.shape, width);
    std::vector<int> result;
    for (const auto& block : kernel.graph.blocks)
        for (const auto& instruction : block.instructions)
            if (instruction.prefetch) result.push_back(instruction.prefetch.ahead);
    return result;
}

/// All of them at W = 32, as constant+factor*register.
using Places = std::vector<std::string>;
Places places(const std::string& body) {
    test::AnalysedKernel kernel(body, {256, 1, 1}, 32);
    translator::plan_prefetch(kernel.graph, kernel.shape, 32);
    Places result;
    for (const auto& block : kernel.graph.blocks)
        for (const auto& instruction : block.instructions)
            for (const translator::Prefetch& place : {instruction.prefetch, instruction.second_prefetch})
                if (place)
                    result.push_back(std::to_string(place.ahead) + "+" + std::to_string(place.factor) + "*" +
                                     (place.factor != 0 ? kernel.graph.values[place.stride].name : std::string()));
    return result;
}

std::vector<int> prefetches(const std::string& body) { return planned(loop(body), {32, 1, 1}, 1); }

const std::string use = "add.f32 %f1, %f1, %f2;";
/// f2 = q[*rd3]
const std::string indexed = "ld.global.u32 %r4, [%rd3]; mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd2, %rd4; ld.global.f32 %f2, [%rd5];" + use;

} // namespace

TEST_CASE("loop strides: pointers, counters and what is computed from them", "[prefetch]") {
    const std::string load = "ld.global.f32 %f2, [%rd6];" + use;
    CHECK(stride_of("add.s64 %rd6, %rd3, 8;" + load + "add.s64 %rd3, %rd3, 12;", "%rd6") == 12);
    CHECK(stride_of("mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd2, %rd5;" + load, "%rd6") == 4);
    CHECK(stride_of("mad.lo.s32 %r5, %r2, -3, %r1; mul.wide.s32 %rd5, %r5, 4; sub.s64 %rd6, %rd2, %rd5;" + load, "%rd6") == 12);
    CHECK(stride_of("shl.b32 %r5, %r2, 3; cvt.u64.u32 %rd5, %r5; add.s64 %rd6, %rd2, %rd5;" + load, "%rd6") == 8);
    CHECK(stride_of("add.s64 %rd6, %rd2, 8;" + load, "%rd6") == 0);
}

TEST_CASE("loop strides: what is not a constant is none", "[prefetch]") {
    const std::string load = "ld.global.f32 %f2, [%rd6];" + use;
    // by a value, by a product, by what was read, now and then
    CHECK_FALSE(stride_of("mad.lo.u32 %r5, %r2, %r1, 0; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5;" + load, "%rd6"));
    CHECK_FALSE(stride_of("mul.lo.u32 %r5, %r2, %r2; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5;" + load, "%rd6"));
    CHECK_FALSE(stride_of("add.s64 %rd6, %rd3, 8;" + load + "ld.global.u64 %rd3, [%rd3];", "%rd6"));
    CHECK_FALSE(stride_of("add.s64 %rd6, %rd3, 8;" + load + "setp.eq.u32 %p2, %r2, 3; @%p2 add.s64 %rd3, %rd3, 4;", "%rd6"));
}

TEST_CASE("prefetch: streams beside indexed loads", "[prefetch]") {
    CHECK(prefetches(indexed + "add.s64 %rd3, %rd3, 4;") == std::vector<int>{512});
    CHECK(prefetches(indexed + "add.s64 %rd3, %rd3, -4;") == std::vector<int>{-512});
    // one for the four loads of a line, another for the line after next
    CHECK(prefetches("ld.global.f32 %f3, [%rd3+4]; ld.global.f32 %f4, [%rd3+8]; ld.global.f32 %f5, [%rd3+128]; add.f32 %f1, %f1, %f3;"
                     "add.f32 %f1, %f1, %f4; add.f32 %f1, %f1, %f5;" + indexed +
                     "add.s64 %rd3, %rd3, 16;") == std::vector<int>{512, 512});
}

TEST_CASE("prefetch: not without an index, not for large or unknown steps, not for shared memory", "[prefetch]") {
    CHECK(prefetches("ld.global.f32 %f2, [%rd3];" + use + "add.s64 %rd3, %rd3, 4;").empty());
    CHECK(prefetches(indexed + "add.s64 %rd3, %rd3, 64;").empty());
    CHECK(prefetches(indexed + "mul.wide.u32 %rd7, %r1, 4; add.s64 %rd3, %rd3, %rd7;").empty());
    CHECK(prefetches("ld.shared.u32 %r4, [%rd3]; mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd2, %rd4; ld.global.f32 %f2, [%rd5];" +
                     use + "add.s64 %rd3, %rd3, 4;").empty());
}

TEST_CASE("prefetch: a far stride asks for the next warp's piece", "[prefetch]") {
    const std::string begin = "mov.u32 %r5, %tid.x; mul.wide.u32 %rd6, %r5, 4; ";
    auto grid_stride = [&](const std::string& step, const std::string& more = "") {
        return planned(begin + loop("add.s64 %rd7, %rd3, %rd6; ld.global.f32 %f2, [%rd7];" + use + more + step), {256, 1, 1}, 32);
    };
    CHECK(grid_stride("mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8;") == std::vector<int>{128});
    CHECK(grid_stride("add.s64 %rd3, %rd3, 131072;") == std::vector<int>{128});
    CHECK(grid_stride("add.s64 %rd3, %rd3, 2048;") == std::vector<int>{128});
    CHECK(grid_stride("add.s64 %rd3, %rd3, 1024;").empty());
}

TEST_CASE("prefetch: near strides, a page ahead in kernels with barriers", "[prefetch]") {
    const std::string begin = "mov.u32 %r5, %tid.x; mul.wide.u32 %rd6, %r5, 4; bar.sync 0;";
    auto rows = [&](const std::string& step, std::uint32_t threads) {
        return planned(begin + loop("add.s64 %rd7, %rd3, %rd6; ld.global.f32 %f2, [%rd7];" + use + step), {threads, 1, 1}, 32);
    };
    CHECK(rows("add.s64 %rd3, %rd3, 1024;", 256) == std::vector<int>{4096});
    // one warp; backwards; a word that stays
    CHECK(rows("add.s64 %rd3, %rd3, 128;", 32).empty());
    CHECK(rows("add.s64 %rd3, %rd3, -1024;", 256).empty());
    CHECK(rows("", 256).empty());
}

TEST_CASE("prefetch: vectors, a page ahead", "[prefetch]") {
    const std::string begin = "ld.param.u64 %rd1, [p]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 16; add.s64 %rd4, %rd1, %rd3;";
    const std::string end = "st.global.f32 [%rd4], %f1; ret;";
    CHECK(planned(begin + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];" + end, {128, 1, 1}, 32) == std::vector<int>{4096});
    CHECK(planned(begin + "ld.global.f32 %f1, [%rd4];" + end, {128, 1, 1}, 32).empty());
    CHECK(planned(begin + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];" + end, {128, 2, 1}, 32).empty());
}

TEST_CASE("prefetch: lanes that may turn out to be neighbours", "[prefetch]") {
    auto ahead = [](const std::string& index, std::array<std::uint32_t, 3> ntid = {128, 1, 1}) {
        test::AnalysedKernel kernel("ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;" + index +
                                    "mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd1], %f1; ret;", ntid, 32);
        translator::plan_prefetch(kernel.graph, kernel.shape, 32);
        unsigned result = 0;
        for (const auto& block : kernel.graph.blocks)
            for (const auto& instruction : block.instructions) result += instruction.neighbours_ahead;
        return result;
    };
    CHECK(ahead("div.u32 %r4, %r2, %r1; mul.lo.u32 %r4, %r4, %r1; sub.u32 %r3, %r2, %r4;") == 4096);
    CHECK(ahead("div.u32 %r4, %r2, %r1; mul.lo.u32 %r4, %r4, %r1; sub.u32 %r3, %r2, %r4;", {32, 4, 1}) == 0);
    CHECK(ahead("mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2; ld.global.u32 %r3, [%rd2];") == 0); // whatever was read
    CHECK(ahead("mov.u32 %r3, %r2;") == 0);
    // rows in kernels with barriers; the next warp's piece in loops, but not by a stride or where the stream is seen
    CHECK(ahead("bar.sync 0; div.u32 %r4, %r2, %r1; mul.lo.u32 %r4, %r4, %r1; sub.u32 %r3, %r2, %r4;", {32, 4, 1}) == 4096);
    const auto in_loop = [&](const std::string& step, const std::string& address) {
        return ahead("div.u32 %r4, %r2, %r1; mul.wide.u32 %rd5, %r4, 4; mul.wide.u32 %rd8, %r1, 4096; mul.lo.u32 %r8, %r2, %r1; mul.wide.u32 %rd9, %r8, 4; mov.u64 %rd6, %rd1; mov.u32 %r3, 0;"
                     "L: add.s64 %rd7, %rd6, " + address + "; ld.global.f32 %f2, [%rd7]; st.global.f32 [%rd7], %f2;" + step +
                     "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra L;");
    };
    CHECK(in_loop("add.s64 %rd6, %rd6, %rd8;", "%rd5") == 128);
    CHECK(in_loop("add.s64 %rd6, %rd6, 64;", "%rd5") == 0);
    CHECK(in_loop("add.s64 %rd6, %rd6, %rd8;", "%rd9") == 0);
}

TEST_CASE("prefetch: where steps take turns, the next turn's place while the loop lasts", "[prefetch]") {
    const std::string begin = "mov.u32 %r5, %tid.x; mul.wide.u32 %rd6, %r5, 4; ";
    const std::string load = "add.s64 %rd7, %rd3, %rd6; ld.global.f32 %f2, [%rd7];" + use;
    auto turns_of = [](const std::string& body) {
        test::AnalysedKernel kernel(body, {256, 1, 1}, 32);
        translator::choose_turn_loops(kernel.graph, kernel.shape, false);
        translator::plan_prefetch(kernel.graph, kernel.shape, 32);
        Places result;
        for (const auto& block : kernel.graph.blocks)
            for (const auto& instruction : block.instructions)
                if (const translator::Prefetch& place = instruction.prefetch)
                    result.push_back(std::to_string(place.ahead) + "+" + std::to_string(place.factor) + " while +" +
                                     std::to_string(place.counter_ahead) + " to " +
                                     (place.bound == translator::no_value ? std::to_string(place.bound_constant)
                                                                          : kernel.graph.values[place.bound].name));
        return result;
    };
    auto turns = [&](const std::string& round) { return turns_of(begin + loop(load + round)); };
    CHECK(turns("add.s64 %rd3, %rd3, 131072;") == Places{"1048576+0 while +8 to %r1"});
    CHECK(turns("add.s64 %rd3, %rd3, 131072; add.u32 %r2, %r2, 3;") == Places{"1048576+0 while +32 to %r1"});
    // by a run-time distance; while a number counts down
    CHECK(turns("mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8;") == Places{"0+32 while +8 to %r1"});
    CHECK(turns_of(begin + "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r2, [n]; mov.u64 %rd3, %rd1; mov.f32 %f1, 0f00000000;\n"
                           "L: " + load + "add.s64 %rd3, %rd3, 131072; add.s32 %r2, %r2, -4; setp.ne.s32 %p1, %r2, 0; @%p1 bra L;\n"
                           "st.global.f32 [%rd2], %f1; ret;") == Places{"1048576+0 while +-32 to 0"});
    // unrolled: as many rows in fewer rounds
    const std::string far = "add.s64 %rd3, %rd3, 131072;";
    CHECK(turns(far + load + far + load + far + load + far) == Places(4, "2097152+0 while +4 to %r1"));
    // near enough without; it ends by what was read
    CHECK(turns("add.s64 %rd3, %rd3, 1024;").empty());
    CHECK(turns("add.s64 %rd3, %rd3, 131072; ld.global.u32 %r2, [%rd2];").empty());
}

TEST_CASE("turns: where all rows of threads read one row of memory, far from the last round's", "[prefetch]") {
    const std::string load = "add.s64 %rd7, %rd3, %rd6; ld.global.f32 %f2, [%rd7];" + use;
    // Rounds in each turn.
    auto takes_turns = [&](const std::string& begin, const std::string& step, std::array<std::uint32_t, 3> ntid = {32, 8, 1}) {
        test::AnalysedKernel kernel(begin + loop(load + step), ntid, 32);
        translator::choose_turn_loops(kernel.graph, kernel.shape, false);
        translator::plan_prefetch(kernel.graph, kernel.shape, 32);
        const translator::LoopInfo& info = kernel.graph.forest.loops.at(0);
        if (!info.takes_turns) return 0u;
        for (const auto& block : kernel.graph.blocks)
            for (const auto& instruction : block.instructions) CHECK_FALSE(instruction.prefetch); // rows of one set would drive others out
        return info.turn_rounds;
    };
    const std::string column = "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, %tid.x; mad.lo.u32 %r5, %r5, %r6, %r7; mul.wide.u32 %rd6, %r5, 4; ";
    const std::string pitch = "mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8;";
    CHECK(takes_turns(column, pitch) == 16);
    CHECK(takes_turns(column, "add.s64 %rd3, %rd3, 8192;") == 16);
    CHECK(takes_turns(column, pitch, {16, 16, 1}) == 16);
    // unrolled: as many rows in fewer rounds
    CHECK(takes_turns(column, pitch + load + pitch + load + pitch + load + pitch) == 4);
    // nearer; one row of threads; each row its own; all lanes one word; by a number of the thread's in the block
    CHECK_FALSE(takes_turns(column, "add.s64 %rd3, %rd3, 1024;"));
    CHECK_FALSE(takes_turns(column, pitch, {32, 1, 1}));
    CHECK_FALSE(takes_turns("mov.u32 %r7, %tid.x; mov.u32 %r6, %tid.y; mad.lo.u32 %r5, %r6, 4096, %r7; mul.wide.u32 %rd6, %r5, 4; ", pitch));
    CHECK_FALSE(takes_turns("mov.u64 %rd6, 64; ", pitch));
    CHECK_FALSE(takes_turns("mov.u32 %r7, %tid.x; mov.u32 %r6, %warpid; mad.lo.u32 %r5, %r6, 4096, %r7; mul.wide.u32 %rd6, %r5, 4; ", pitch));
}

TEST_CASE("prefetch: where warps meet at each round, the next round's place", "[prefetch]") {
    const std::string begin = "mov.u32 %r5, %tid.x; mul.wide.u32 %rd6, %r5, 4; ";
    auto met = [&](const std::string& step) {
        return places(begin + loop("add.s64 %rd7, %rd3, %rd6; ld.global.f32 %f2, [%rd7];" + use + "bar.sync 0;" + step));
    };
    CHECK(met("add.s64 %rd3, %rd3, 131072;") == Places{"131072+0*"});
    CHECK(met("add.s64 %rd3, %rd3, -64;") == Places{"-64+0*"});
    CHECK(met("mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8;") == Places{"0+4*%r1"});
    CHECK(met("mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8; sub.s64 %rd3, %rd3, 8;") == Places{"-8+4*%r1"});
    // rows of a matrix by number: the pitch is a factor; squares; a pitch that nobody reads behind the barrier
    const std::string index = "add.u32 %r7, %r2, 3; ";
    const std::string row = "mad.lo.s32 %r8, %r7, %r1, %r5; mul.wide.s32 %rd8, %r8, 4; add.s64 %rd7, %rd2, %rd8;";
    const std::string load = "ld.global.f32 %f2, [%rd7];" + use;
    auto by_number = [&](const std::string& body) { return places("mov.u32 %r5, %tid.x; " + loop(body)); };
    CHECK(by_number(index + row + load + "bar.sync 0;") == Places{"0+4*%r1"});
    CHECK(by_number("sub.u32 %r7, 3, %r2; shl.b32 %r7, %r7, 1;" + row + load + "bar.sync 0;") == Places{"0+-8*%r1"});
    CHECK(by_number("mul.lo.u32 %r7, %r2, %r2;" + row + load + "bar.sync 0;").empty());
    CHECK(places("mov.u32 %r5, %tid.x; ld.param.u32 %r9, [n]; add.u32 %r9, %r9, 1; " +
                 loop(index + "mad.lo.s32 %r8, %r7, %r9, %r5; mul.wide.s32 %rd8, %r8, 4; add.s64 %rd7, %rd2, %rd8; bar.sync 0;" + load)).empty());
    // the line at hand; lanes that go apart; what was read; two values
    CHECK(met("add.s64 %rd3, %rd3, 4;").empty());
    CHECK(met("add.s64 %rd3, %rd3, %rd6;").empty());
    CHECK(met("ld.global.u64 %rd8, [%rd2]; add.s64 %rd3, %rd3, %rd8;").empty());
    CHECK(met("mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8; add.s64 %rd3, %rd3, %rd2;").empty());
}

TEST_CASE("prefetch: short rows of two-dimensional blocks", "[prefetch]") {
    const std::string body = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;"
                             "mad.lo.u32 %r4, %r3, %r1, %r2; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4];"
                             "add.s64 %rd5, %rd2, %rd3; st.global.f32 [%rd5], %f1; ret;";
    CHECK(planned(body, {32, 8, 1}, 32) == std::vector<int>{512});
    CHECK(planned(body, {32, 1, 1}, 32).empty());
    CHECK(planned(body, {256, 2, 1}, 32).empty());
    // arrays whose lines would not all fit
    std::string many;
    for (int i = 0; i < 7; ++i) many += "ld.global.f32 %f" + std::to_string(i + 2) + ", [%rd4+" + std::to_string(4096 * i) + "]; add.f32 %f1, %f1, %f" + std::to_string(i + 2) + ";";
    const std::string all = body.substr(0, body.find("add.s64 %rd5")) + many + body.substr(body.find("add.s64 %rd5"));
    CHECK(planned(all, {32, 8, 1}, 32) == std::vector<int>(8, 256));
}

TEST_CASE("prefetch: what the CTA after the next begins with, in kernels with barriers", "[prefetch]") {
    const std::string body = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r4, %r1, 256, %r2;"
                             "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4];";
    CHECK(planned(body + "bar.sync 0; st.global.f32 [%rd4], %f1; ret;", {256, 1, 1}, 32) == std::vector<int>{2048});
    CHECK(planned(body + "st.global.f32 [%rd4], %f1; ret;", {256, 1, 1}, 32).empty());
    // two rows of the block's threads: those of the CTA after the next lie two CTAs of four rows away
    const std::string rows = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; shl.b32 %r3, %r1, 10; add.u32 %r4, %r3, %r2;"
                             "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+1024];"
                             "bar.sync 0; st.global.f32 [%rd4], %f1; st.global.f32 [%rd4+1024], %f2; ret;";
    CHECK(planned(rows, {256, 1, 1}, 32) == std::vector<int>{8192, 8192});
}

TEST_CASE("prefetch: structures that a CTA reads word by word, and what it writes before fences", "[prefetch]") {
    const std::string body = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r4, %r1, 256, %r2;"
                             "mul.wide.u32 %rd3, %r4, 16; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4+4]; ld.global.f32 %f2, [%rd4];";
    const std::string end = "st.global.f32 [%rd4], %f1; st.global.f32 [%rd4+4], %f2; ret;";
    CHECK(planned(body + "bar.sync 0;" + end, {256, 1, 1}, 32) == std::vector<int>{8192});
    CHECK(planned(body + "bar.sync 0; membar.gl;" + end, {256, 1, 1}, 32) == std::vector<int>{8192, 8192});
    CHECK(planned(body + "bar.sync 0; fence.acq_rel.gpu;" + end, {256, 1, 1}, 32) == std::vector<int>{8192});
    CHECK(planned(body + "membar.gl;" + end, {256, 1, 1}, 32).empty());
    CHECK(planned(body + "bar.sync 0;" + end, {16, 16, 1}, 32).empty());
    // other structures by the same address
    const std::string further = "ld.global.f32 %f3, [%rd4+4096]; ld.global.f32 %f4, [%rd4+4100]; st.global.f32 [%rd4+8], %f3; st.global.f32 [%rd4+12], %f4;";
    CHECK(planned(body + further + "bar.sync 0;" + end, {256, 1, 1}, 32) == std::vector<int>{8192, 8192});
}

TEST_CASE("prefetch: where lanes go one by one, rounds ahead too", "[prefetch]") {
    const std::string begin = "mov.u32 %r5, %tid.x; mul.wide.u32 %rd6, %r5, 4; ";
    auto counted = [&](const std::string& update) {
        return places(begin + loop("add.s64 %rd7, %rd3, %rd6; ld.global.u32 %r4, [%rd7]; mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd2, %rd4;" +
                                   update + "mul.wide.u32 %rd8, %r1, 4; add.s64 %rd3, %rd3, %rd8;"));
    };
    CHECK(counted("red.global.add.u32 [%rd5], 1;") == Places{"128+0*", "0+16*%r1"});
    // all lanes at one address; no atomics
    CHECK(counted("red.global.add.u32 [%rd2], %r4;") == Places{"128+0*"});
    CHECK(counted("st.global.u32 [%rd5], 1;") == Places{"128+0*"});
}

TEST_CASE("simplify: an atomic whose result nobody reads is a reduction", "[graph]") {
    auto result_of = [](const std::string& after) {
        test::AnalysedKernel kernel("ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; setp.lt.u32 %p1, %r1, 7;"
                                    "mov.u32 %r2, 3; @%p1 atom.global.add.u32 %r2, [%rd2], 1;" + after + "ret;", {32, 1, 1}, 32);
        for (const auto& block : kernel.graph.blocks)
            for (const auto& instruction : block.instructions)
                if (instruction.inst.form == ptx::FormId::atom_add)
                    return std::pair{instruction.inst.operands[0].kind, instruction.previous.size()};
        throw std::runtime_error("no atom");
    };
    CHECK(result_of("") == std::pair{ptx::Operand::Kind::sink, std::size_t{0}});
    CHECK(result_of("st.global.u32 [%rd2+128], %r2;") == std::pair{ptx::Operand::Kind::reg, std::size_t{1}});
}

TEST_CASE("prefetch: where CTAs run in rows, the lowest row of a matrix", "[prefetch]") {
    const std::string begin = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;"
                              "mad.lo.s32 %r4, %r3, %r1, %r2; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;"
                              "sub.s32 %r5, %r4, %r1; mul.wide.s32 %rd5, %r5, 4; add.s64 %rd6, %rd1, %rd5; add.s64 %rd7, %rd2, %rd3;";
    auto asked = [&](const std::string& loads) {
        test::AnalysedKernel kernel(begin + "mov.f32 %f2, 0f00000000; mov.f32 %f3, %f2;" + loads + "add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd2], %f1; ret;", {32, 8, 1}, 32);
        translator::plan_prefetch(kernel.graph, kernel.shape, 32, true);
        std::string result;
        for (const auto& block : kernel.graph.blocks)
            for (const auto& instruction : block.instructions)
                if (instruction.inst.form == ptx::FormId::ld && instruction.inst.space == ptx::StateSpace::global)
                    result += instruction.prefetch ? "x" : "-";
        return result;
    };
    CHECK(asked("ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+4]; ld.global.f32 %f3, [%rd4+-4];") == "x--");
    CHECK(asked("ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd6];") == "x-");
    CHECK(asked("ld.global.f32 %f1, [%rd6]; ld.global.f32 %f2, [%rd4];") == "-x");
    CHECK(asked("ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd7];") == "xx"); // another matrix
    CHECK(asked("ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+4096];") == "xx");
}
