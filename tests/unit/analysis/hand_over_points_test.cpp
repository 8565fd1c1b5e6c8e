// SPDX-License-Identifier: Apache-2.0
// Where lanes that run one by one wait for each other, and where they need not.
#include "graph_fixture.h"

#include "translator/analysis/waits/hand_over_points.h"

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

struct Points {
    std::size_t accesses = 0, joins = 0;
    bool operator==(const Points&) const = default;
};

/// %r1 is %tid.x, %r2 its word in `words`, %r3 the other end's, %r4 what a thread loads from memory; %r6 is n.
test::AnalysedKernel marked(const std::string& body) {
    test::AnalysedKernel kernel(R"(
        mov.u32 %r1, %tid.x;
        mov.u32 %r10, words;
        mad.lo.u32 %r2, %r1, 4, %r10;
        xor.b32 %r3, %r1, 31;
        mad.lo.u32 %r3, %r3, 4, %r10;
        ld.param.u32 %r6, [n];
        ld.param.u64 %rd1, [p];
        mad.wide.u32 %rd1, %r1, 4, %rd1;
        ld.global.u32 %r4, [%rd1];
        mov.u32 %r7, 0;
    )" + body + "\nst.global.u32 [%rd1], %r7; ret;",
                                {32, 1, 1}, 32, ".shared .align 4 .b8 words[8192];\n.shared .align 4 .b8 others[8192];\n");
    mark_hand_over_points(kernel.graph, kernel.shape, {});
    verify_graph(kernel.graph);
    return kernel;
}

Points points(const std::string& body) {
    const test::AnalysedKernel kernel = marked(body);
    Points result;
    for (const Block& block : kernel.graph.blocks) {
        result.joins += block.hand_over != 0;
        for (const GraphInstruction& instruction : block.instructions) result.accesses += instruction.hand_over != 0;
    }
    return result;
}

const std::string put = "st.volatile.shared.u32 [%r2], %r7;\n", get = "ld.volatile.shared.u32 %r8, [%r3]; add.u32 %r7, %r7, %r8;\n";

} // namespace

TEST_CASE("hand-over points: between accesses of one word by two lanes", "[hand-over]") {
    CHECK(points(put + get) == Points{1, 0});
    CHECK(points(get + put) == Points{1, 0});
    CHECK(points(put + get + put + get) == Points{3, 0});
    CHECK(points("st.shared.u32 [%r2], %r7; ld.shared.u32 %r8, [%r3]; add.u32 %r7, %r7, %r8;") == Points{1, 0});
    CHECK(points("red.shared.add.u32 [words], 1; ld.volatile.shared.u32 %r7, [words];") == Points{1, 0});
}

TEST_CASE("hand-over points: in global memory, of one object", "[hand-over]") {
    const std::string first = "ld.param.u64 %rd2, [p];\n", other = "ld.param.u64 %rd3, [q];\n";
    CHECK(points(first + "st.volatile.global.u32 [%rd1], %r7; ld.volatile.global.u32 %r7, [%rd2];") == Points{2, 0}); // and at the end
    CHECK(points(first + "st.global.u32 [%rd2], %r7; ld.global.u32 %r7, [%rd2];").accesses == 2);
    CHECK(points("st.global.u32 [%rd1], %r7; ld.global.u32 %r7, [%rd1];") == Points{}); // its own word
    CHECK(points(other + "st.volatile.global.u32 [%rd3], %r7;") == Points{});
    // Where a pointer leads to that was found in memory.
    CHECK(points(other + "ld.global.u64 %rd4, [%rd3]; ld.global.u64 %rd5, [%rd3 + 8]; st.global.u32 [%rd4], %r7; ld.global.u32 %r7, [%rd5];") == Points{});
    CHECK(points(other + "ld.global.u64 %rd4, [%rd3]; ld.global.u64 %rd5, [%rd3 + 8]; st.volatile.global.u32 [%rd4], %r7; ld.volatile.global.u32 %r7, [%rd5];").accesses >= 1);
}

TEST_CASE("hand-over points: before lanes store to a word that a minimum sends them to", "[hand-over]") {
    const auto change = [](const std::string& number, const std::string& guard, const std::string& between) {
        return points("ld.param.u64 %rd2, [q];" + number + "mad.wide.u32 %rd2, %r9, 4, %rd2; setp.ne.u32 %p1, %r6, 7;" + guard + "ld.global.u32 %r8, [%rd2];" +
                      between + "add.u32 %r8, %r8, %r6;" + guard + "st.global.u32 [%rd2], %r8;");
    };
    const std::string clamped = "add.u32 %r9, %r6, -1; min.u32 %r9, %r1, %r9;";
    CHECK(change(clamped, "", "") == Points{1, 0});
    CHECK(change(clamped, "@%p1 ", "") == Points{1, 0});
    CHECK(change(clamped, "", "bar.warp.sync 0xffffffff;") == Points{});
    CHECK(change("mov.u32 %r9, %r1;", "", "") == Points{});
}

TEST_CASE("hand-over points: none where nobody comes to another one's word", "[hand-over]") {
    CHECK(points(put + "ld.volatile.shared.u32 %r7, [%r2];") == Points{});
    CHECK(points(get + get) == Points{});
    CHECK(points(put + "ld.volatile.shared.u32 %r7, [others];") == Points{});
    CHECK(points("red.shared.add.u32 [words], 1; red.shared.add.u32 [words], 2;") == Points{});
    // Bins of which each lane knows its own.
    CHECK(points("and.b32 %r4, %r4, 255; mad.lo.u32 %r4, %r4, 4, %r10; ld.shared.u32 %r8, [%r4]; add.u32 %r8, %r8, 1; st.shared.u32 [%r4], %r8;") == Points{});
}

TEST_CASE("hand-over points: none behind what the whole warp meets at", "[hand-over]") {
    CHECK(points(put + "bar.warp.sync 0xffffffff;" + get) == Points{});
    CHECK(points(put + "bar.sync 0;" + get) == Points{});
    CHECK(points(put + "shfl.sync.bfly.b32 %r9, %r7, 1, 31, 0xffffffff;" + get) == Points{});
    CHECK(points(put + "bar.warp.sync 0x0000ffff;" + get) == Points{1, 0});
    CHECK(points(put + "bar.warp.sync %r4;" + get) == Points{1, 0});
}

TEST_CASE("hand-over points: lanes that leave a loop one by one wait behind it", "[hand-over]") {
    const std::string round = "ROUND:\n" + put + get + "sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra ROUND;\n";
    CHECK(points(round + "add.u32 %r7, %r7, 1; @%p2 bra OUT; add.u32 %r7, %r7, 2;\nOUT:") == Points{2, 1});
    // All leave it together.
    CHECK(points("mov.u32 %r4, %r6;\n" + round + "add.u32 %r7, %r7, 1;") == Points{2, 0});
    // Nobody talks in it.
    CHECK(points("ROUND: add.u32 %r7, %r7, %r4; sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra ROUND;\n" + put + get) == Points{1, 0});
}

TEST_CASE("hand-over points: those of a loop are lower than those behind it", "[hand-over]") {
    const test::AnalysedKernel kernel = marked(
        "ROUND:\n" + put + get + "sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra ROUND;\n" + put + get);
    std::uint32_t inside = 0, behind = UINT32_MAX;
    for (BlockId id = 0; id < kernel.graph.blocks.size(); ++id) {
        std::vector<std::uint32_t> numbers{kernel.graph.blocks[id].hand_over};
        for (const GraphInstruction& instruction : kernel.graph.blocks[id].instructions) numbers.push_back(instruction.hand_over);
        for (std::uint32_t number : numbers) {
            if (number == 0) continue;
            if (kernel.graph.forest.loop_of[id] != no_loop) inside = std::max(inside, number);
            else behind = std::min(behind, number);
        }
    }
    CHECK(inside == 2);
    CHECK(behind == 3);
}

TEST_CASE("hand-over points: who asks who is active waits for the others", "[hand-over]") {
    CHECK(points("setp.eq.u32 %p1, %r4, 0; @%p1 bra OUT; activemask.b32 %r7;\nOUT: add.u32 %r7, %r7, 1;").accesses == 1);
}
