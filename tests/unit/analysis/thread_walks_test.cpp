// SPDX-License-Identifier: Apache-2.0
// Whether lanes of a warp meet in shared memory between two barriers, found by walking each thread.
#include "graph_fixture.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/verify_graph.h"
#include "translator/analysis/loops/hoist_steady_loads.h"
#include "translator/analysis/waits/thread_walks.h"

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

/// %r1 is %tid.x, %r2 its word in `words`, %r3 its row there of 33 words, %r6 is n.
test::AnalysedKernel kernel_of(const std::string& body, unsigned threads) {
    return test::AnalysedKernel(R"(
        mov.u32 %r1, %tid.x;
        mov.u32 %r10, words;
        mad.lo.u32 %r2, %r1, 4, %r10;
        mad.lo.u32 %r3, %r1, 132, %r10;
        ld.param.u32 %r6, [n];
        mov.u32 %r7, 0;
    )" + body + "ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r7; ret;",
                                {threads, 1, 1}, 1, ".shared .align 4 .b8 words[16384];\n");
}

std::optional<ThreadWalks> walk(const std::string& body, unsigned threads = 64) {
    const test::AnalysedKernel kernel = kernel_of(body, threads);
    return walk_threads(kernel.graph, kernel.shape);
}

bool keep_apart(const std::string& body, unsigned threads = 64) {
    return walk(body, threads).has_value();
}

/// `body` in rounds that %r4 counts from 0 to below %r5.
std::string rounds(const std::string& body) {
    return "mov.u32 %r4, 0; again: setp.ge.u32 %p1, %r4, %r5; @%p1 bra done;" + body +
           "add.u32 %r4, %r4, 1; bra again; done:";
}

} // namespace

TEST_CASE("thread walks: words of their own, and words that all read", "[walks]") {
    CHECK(keep_apart("st.shared.u32 [%r2], %r1; ld.shared.u32 %r7, [%r2];"));
    CHECK(keep_apart("ld.shared.u32 %r7, [words]; st.shared.u32 [%r2 + 4], %r7;"));
    CHECK(keep_apart("ld.shared.v2.u32 {%r7, %r8}, [%r3 + 8]; st.shared.v2.u32 [%r3 + 8], {%r8, %r7};"));
    // Warps are parted by more than lanes' order.
    CHECK(keep_apart("and.b32 %r5, %r1, 31; mad.lo.u32 %r5, %r5, 4, %r10; st.shared.u32 [%r5], %r1;"));
}

TEST_CASE("thread walks: one writes what another reads or writes", "[walks]") {
    CHECK_FALSE(keep_apart("st.shared.u32 [%r2], %r1; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK_FALSE(keep_apart("ld.shared.u32 %r7, [%r2 + 4]; st.shared.u32 [%r2], %r7;"));
    CHECK_FALSE(keep_apart("st.shared.u32 [words], %r1;"));
    CHECK_FALSE(keep_apart("ld.shared.u32 %r7, [words]; st.shared.u32 [%r2], %r7;"));
    CHECK_FALSE(keep_apart("ld.shared.u32 %r7, [%r2]; ld.shared.u32 %r8, [words]; add.u32 %r7, %r7, %r8; st.shared.u32 [%r2], %r7;"));
    CHECK_FALSE(keep_apart("st.shared.v2.u32 [%r2], {%r1, %r6};"));
    CHECK_FALSE(keep_apart("atom.shared.add.u32 %r7, [words], 1;"));
    CHECK_FALSE(keep_apart("setp.eq.u32 %p1, %r1, 5; @%p1 st.shared.u32 [words], %r1; ld.shared.u32 %r7, [words];"));
    CHECK(keep_apart("setp.eq.u32 %p1, %r1, 99; @%p1 st.shared.u32 [words], %r1; ld.shared.u32 %r7, [words];"));
}

TEST_CASE("thread walks: barriers lie between", "[walks]") {
    CHECK(keep_apart("st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK(keep_apart("ld.shared.u32 %r7, [%r2 + 4]; bar.sync 0; st.shared.u32 [%r2], %r7;"));
    CHECK_FALSE(keep_apart("st.shared.u32 [%r2], %r1; bar.warp.sync -1; ld.shared.u32 %r7, [%r2 + 4];"));
    const std::string scan = "sub.u32 %r8, %r1, %r5; setp.lt.s32 %p2, %r8, 0; @%p2 bra none; mad.lo.u32 %r8, %r8, 4, %r10;"
                             "ld.shared.u32 %r7, [%r8]; none:";
    const std::string add = "ld.shared.u32 %r9, [%r2]; add.u32 %r9, %r9, %r7; st.shared.u32 [%r2], %r9;";
    const std::string next = "shl.b32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 64; @%p3 bra round;";
    CHECK(keep_apart("mov.u32 %r5, 1; round:" + scan + "bar.sync 0;" + add + "bar.sync 0;" + next));
    CHECK_FALSE(keep_apart("mov.u32 %r5, 1; round:" + scan + add + "bar.sync 0;" + next));
}

TEST_CASE("thread walks: rows of a triangle, columns of others' rows", "[walks]") {
    // a[t][j] -= a[t][k] * a[j][k] for k < j <= t, as far as places matter: row t is written behind column k.
    const std::string update = "add.u32 %r8, %r4, %r12; mad.lo.u32 %r9, %r8, 132, %r10; mad.lo.u32 %r9, %r12, 4, %r9;"
                               "ld.shared.u32 %r7, [%r9]; mad.lo.u32 %r11, %r8, 4, %r3; st.shared.u32 [%r11], %r7;";
    const std::string columns = "mov.u32 %r12, 0; column: sub.u32 %r5, %r1, %r12; max.s32 %r5, %r5, 0; add.u32 %r5, %r5, 1;"
                                "mov.u32 %r4, 1;";
    const std::string loop = "again: setp.ge.u32 %p1, %r4, %r5; @%p1 bra done;" + update +
                             "add.u32 %r4, %r4, 1; bra again; done: bar.sync 0;"
                             "add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 31; @%p2 bra column;";
    const auto walks = walk(columns + loop, 32);
    REQUIRE(walks);
    REQUIRE(walks->lanes_in_loop.size() == 2);
    CHECK(walks->lanes_in_loop[0] == 1);
    CHECK(walks->lanes_in_loop[1] > 0.3);
    CHECK(walks->lanes_in_loop[1] < 0.7);
    // Row t and the next one overlap where rows are 32 words apart and columns go to 32.
    CHECK_FALSE(keep_apart("mov.u32 %r5, 34;" + rounds("mad.lo.u32 %r8, %r4, 4, %r3; st.shared.u32 [%r8], %r1;"), 32));
    CHECK(keep_apart("mov.u32 %r5, 33;" + rounds("mad.lo.u32 %r8, %r4, 4, %r3; st.shared.u32 [%r8], %r1;"), 32));
}

TEST_CASE("thread walks: what is not known", "[walks]") {
    const std::string own = "mad.lo.u32 %r8, %r4, 4, %r3; st.shared.u32 [%r8], %r1;";
    CHECK(keep_apart("mov.u32 %r5, 8;" + rounds(own)));
    CHECK_FALSE(keep_apart("mov.u32 %r5, %r6;" + rounds(own)));                                // a parameter
    CHECK_FALSE(keep_apart("ld.shared.u32 %r8, [%r2]; st.shared.u32 [%r8], %r1;"));            // memory says where
    CHECK_FALSE(keep_apart("ld.shared.u32 %r5, [%r2];" + rounds(own)));                        // and how often
    CHECK_FALSE(keep_apart("mov.u32 %r5, 20000;" + rounds("st.shared.u32 [%r2], %r1;")));      // too long
    CHECK_FALSE(keep_apart("st.shared.u32 [%r2 + 1073741824], %r1;"));                         // outside
    CHECK_FALSE(keep_apart("setp.lt.u32 %p1, %r1, 5; @%p1 bra out; bar.sync 0; st.shared.u32 [%r2], %r1; out:")); // some exit
    // What decides nothing need not be known.
    CHECK(keep_apart("mov.u32 %r5, 8; ld.shared.u32 %r7, [%r3]; add.u32 %r7, %r7, %r6;" + rounds(own)));
}

namespace {

/// A loop over the words of the thread's row, from the one that %r5 says to the 33rd.
std::string row(const std::string& body) {
    return "mad.lo.u32 %r8, %r5, 4, %r3; mov.u32 %r4, %r5;"
           "again: " + body + "add.u32 %r8, %r8, 4; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 33; @%p1 bra again;";
}

unsigned steady(const std::string& body) {
    const auto walks = walk(body);
    REQUIRE(walks);
    return unsigned(walks->steady_loads.size());
}

struct LoadsLeft {
    unsigned in_loops = 0, in_all = 0, negations_in_loops = 0;
    bool operator==(const LoadsLeft&) const = default;
};
LoadsLeft hoisted(const std::string& body) {
    test::AnalysedKernel kernel = kernel_of(body, 64);
    const auto walks = walk_threads(kernel.graph, kernel.shape);
    REQUIRE(walks);
    hoist_steady_loads(kernel.graph, *walks);
    verify_graph(kernel.graph);
    LoadsLeft left;
    for (BlockId id = 0; id < kernel.graph.blocks.size(); ++id)
        for (const GraphInstruction& each : kernel.graph.blocks[id].instructions) {
            const bool is_load = opcode(each.inst) == "ld" && each.inst.space == ptx::StateSpace::shared;
            const bool in_loop = kernel.graph.forest.loop_of[id] != no_loop;
            left.in_all += is_load;
            left.in_loops += is_load && in_loop;
            left.negations_in_loops += opcode(each.inst) == "neg" && in_loop;
        }
    return left;
}

} // namespace

TEST_CASE("thread walks: loads of words that a loop leaves alone", "[walks]") {
    const std::string from_1 = "mov.u32 %r5, 1;", from_0 = "mov.u32 %r5, 0;";
    const std::string scale = "ld.shared.u32 %r7, [%r3]; ld.shared.u32 %r9, [%r8]; mul.lo.u32 %r9, %r9, %r7; st.shared.u32 [%r8], %r9;";
    CHECK(steady(from_1 + row(scale)) == 1);
    CHECK(steady(from_0 + row(scale)) == 0); // it writes there in the first round
    // and in the last one
    CHECK(steady(from_1 + row("ld.shared.u32 %r7, [%r3+128]; st.shared.u32 [%r8], %r7;")) == 0);
    CHECK(steady(from_1 + row("ld.shared.u32 %r7, [%r3+132]; st.shared.u32 [%r8], %r7;")) == 1); // the next row's, likewise
    CHECK(steady(from_1 + row("ld.shared.u32 %r7, [%r3]; membar.cta; st.shared.u32 [%r8], %r7;")) == 0);
    CHECK(steady(from_1 + row("ld.volatile.shared.u32 %r7, [%r3]; st.shared.u32 [%r8], %r7;")) == 0);
    CHECK(steady(from_1 + row("ld.shared.u32 %r7, [%r3]; st.shared.u32 [%r8], %r7; bar.sync 0;")) == 0);
    // by bytes
    CHECK(steady(from_1 + row("ld.shared.u8 %r7, [%r3+3]; st.shared.u32 [%r8], %r7;")) == 1);
    CHECK(steady(from_1 + row("ld.shared.u32 %r7, [%r3]; st.shared.u32 [%r8], %r7; st.shared.u8 [%r3+3], %r7;")) == 0);
    // not in all rounds of the loop
    CHECK(steady(from_1 + row("setp.eq.u32 %p2, %r4, 7; @%p2 bra past; ld.shared.u32 %r7, [%r3]; past: st.shared.u32 [%r8], %r7;")) == 0);
}

TEST_CASE("thread walks: such loads leave their loop, once", "[walks]") {
    const std::string round = "ld.shared.u32 %r7, [%r3]; neg.s32 %r7, %r7; st.shared.u32 [%r8], %r7;";
    CHECK(hoisted("mov.u32 %r5, 1;" + row(round)) == LoadsLeft{0, 1, 0});
    CHECK(hoisted("mov.u32 %r5, 0;" + row(round)) == LoadsLeft{1, 1, 1});
    CHECK(hoisted("mov.u32 %r5, 1;" + row(round + "ld.shared.u32 %r9, [%r3]; neg.s32 %r9, %r9; st.shared.u32 [%r8], %r9;")) == LoadsLeft{0, 1, 0});
    CHECK(hoisted("mov.u32 %r5, 2;" + row(round + "ld.shared.u32 %r9, [%r3+4]; st.shared.u32 [%r8], %r9;")) == LoadsLeft{0, 2, 0});
}
