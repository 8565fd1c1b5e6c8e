// SPDX-License-Identifier: Apache-2.0
// Which loops over barriers are written out, round by round.
#include "graph_fixture.h"

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

/// Barriers in the graph of a kernel in which %r1 is %tid.x, %r4 counts from 1 on and `body` is a round.
unsigned barriers(const std::string& body, const std::string& next = "shl.b32 %r4, %r4, 1;",
                  const std::string& bound = "256", bool unrolls = true) {
    const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.shared .align 4 .b8 words[4096];
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .pred %p<8>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r10, words;
    ld.param.u32 %r6, [n];
    mov.u32 %r4, 1;
    mov.u32 %r7, 0;
round:
    bar.sync 0;
    )" + body + "\n" + next + R"(
    setp.lt.u32 %p1, %r4, )" + bound + R"(;
    @%p1 bra round;
    ld.param.u64 %rd1, [p];
    st.global.u32 [%rd1], %r7;
    ret;
}
)";
    const auto loader = ptx::ModuleLoader::load(text, "test");
    REQUIRE(loader->ok());
    GraphOptions options;
    options.shape.ntid = {256, 1, 1};
    options.unrolls = unrolls;
    const FunctionGraph graph = build_graph(*loader, *loader->module().find_function("k"), options);
    verify_graph(graph);
    unsigned count = 0;
    for (const Block& block : graph.blocks) count += block.ends_with_barrier;
    CHECK(graph.forest.loops.empty() == (count > 1));
    return count;
}

const std::string butterfly = "xor.b32 %r2, %r1, %r4; mad.lo.u32 %r2, %r2, 4, %r10; ld.shared.u32 %r3, [%r2]; add.u32 %r7, %r7, %r3;";

} // namespace

TEST_CASE("unrolled rounds: places by bits of both numbers", "[unroll]") {
    CHECK(barriers(butterfly) == 8);
    CHECK(barriers(butterfly, "add.u32 %r4, %r4, 16;") == 16);
    CHECK(barriers("sub.u32 %r2, %r4, 1; and.b32 %r2, %r1, %r2; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %r10; st.shared.u32 [%r2], %r1;") == 8);
    // A way round a part of a round.
    CHECK(barriers("setp.lt.u32 %p2, %r1, %r6; @%p2 bra skip;" + butterfly + "skip:") == 8);
}

TEST_CASE("unrolled rounds: those that stay loops", "[unroll]") {
    CHECK(barriers(butterfly, "shl.b32 %r4, %r4, 1;", "256", false) == 1); // quick code
    // Sums and products of the numbers keep their shapes.
    CHECK(barriers("mad.lo.u32 %r2, %r4, 4, %r10; mad.lo.u32 %r2, %r1, 4, %r2; ld.shared.u32 %r3, [%r2]; add.u32 %r7, %r7, %r3;") == 1);
    CHECK(barriers("xor.b32 %r2, %r1, %r4; add.u32 %r7, %r7, %r2;") == 1); // no place
    CHECK(barriers(butterfly, "shl.b32 %r4, %r4, 1;", "%r6") == 1);
    CHECK(barriers(butterfly, "add.u32 %r4, %r4, 1;") == 1); // 255 rounds
    CHECK(barriers(butterfly, "add.u32 %r4, %r4, %r3;") == 1);
    // Sums of matrix products are kept from round to round.
    CHECK(barriers(butterfly + "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r11, %r12}, {%r13, %r14}, {%r15}, {%r11, %r12};") == 1);
    CHECK(barriers(butterfly + "setp.eq.u32 %p2, %r3, 7; @%p2 bra out;", "shl.b32 %r4, %r4, 1;", "256; @!%p1 bra out; out: setp.lt.u32 %p1, %r4, 256") == 1);
}
