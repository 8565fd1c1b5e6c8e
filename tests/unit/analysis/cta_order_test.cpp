// SPDX-License-Identifier: Apache-2.0
// Which kernels' neighbouring CTAs in y use neighbouring memory.
#include "graph_fixture.h"

#include "translator/analysis/memory/cta_order.h"

using namespace ptarmigan;

namespace {

/// %r1 = n, %r2 and %r3 = x and y of the thread in the grid of 32 x 8 blocks' tiles, %r4 and %r5 = %ctaid times 32.
bool continues(const std::string& body) {
    test::AnalysedKernel kernel("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n];"
                                "mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %tid.x; mov.u32 %r9, %tid.y;"
                                "shl.b32 %r4, %r6, 5; shl.b32 %r5, %r7, 5; add.s32 %r2, %r4, %r8; add.s32 %r3, %r5, %r9;" +
                                    body + "st.global.f32 [%rd9], 0f00000000; ret;",
                                {32, 8, 1}, 32);
    return translator::continues_in_y(kernel.graph);
}

/// Of a kernel of such blocks that stores one word.
std::uint32_t in_row(const std::string& body, std::array<std::uint32_t, 3> ntid = {32, 8, 1}) {
    test::AnalysedKernel kernel("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n];"
                                "mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %tid.x; mov.u32 %r9, %tid.y;"
                                "mad.lo.s32 %r2, %r6, 32, %r8; mad.lo.s32 %r3, %r7, 8, %r9;" +
                                    body + "ld.global.f32 %f1, [%rd9]; st.global.f32 [%rd2], %f1; ret;",
                                ntid, 32);
    return translator::ctas_in_row(kernel.graph, kernel.shape);
}

std::string element(const char* row, const char* column) {
    return std::string("mad.lo.s32 %r10, ") + row + ", %r1, " + column + "; mul.wide.s32 %rd8, %r10, 4; add.s64 %rd9, %rd1, %rd8;";
}

} // namespace

TEST_CASE("CTA order: a transposed store continues in y", "[cta_order]") {
    CHECK(continues("add.s32 %r11, %r4, %r9; add.s32 %r12, %r5, %r8;" + element("%r11", "%r12")));
}

TEST_CASE("CTA order: rows continue in x, and leaps in both directions in neither", "[cta_order]") {
    CHECK_FALSE(continues(element("%r3", "%r2")));
    CHECK_FALSE(continues("mul.lo.s32 %r11, %r3, %r1; mad.lo.s32 %r11, %r11, %r1, %r8;" + element("%r11", "%r2")));
    // near in both: one is as good as the other
    CHECK_FALSE(continues("add.s32 %r11, %r2, %r3;" + element("%r8", "%r11")));
    // what was loaded at an index of y may be anywhere
    CHECK_FALSE(continues("mul.wide.s32 %rd3, %r3, 4; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r13, [%rd4]; add.s32 %r12, %r13, %r5;" +
                          element("%r2", "%r12")));
}

TEST_CASE("CTA order: kernels that may see other CTAs keep their order", "[cta_order]") {
    const std::string transposed = "add.s32 %r11, %r4, %r9; add.s32 %r12, %r5, %r8;" + element("%r11", "%r12");
    CHECK(continues("ld.global.u32 %r13, [%rd2]; st.global.u32 [%rd2+4], %r13;" + transposed));
    CHECK_FALSE(continues("ld.volatile.global.u32 %r13, [%rd2]; st.global.u32 [%rd2+4], %r13;" + transposed));
    CHECK_FALSE(continues("ld.relaxed.gpu.u32 %r13, [%rd2]; st.global.u32 [%rd2+4], %r13;" + transposed));
    CHECK_FALSE(continues("membar.gl; ld.global.u32 %r13, [%rd2]; st.global.u32 [%rd2+4], %r13;" + transposed));
    CHECK_FALSE(continues("atom.global.add.u32 %r13, [%rd2], 1; st.global.u32 [%rd2+4], %r13;" + transposed));
}

TEST_CASE("CTA order: values with ever so many ways to their leaves are given up", "[cta_order]") {
    std::string body = "ld.param.u32 %r13, [n];";
    for (int i = 0; i < 200; ++i) body += "mad.lo.s32 %r13, %r13, %r13, %r13;";
    CHECK_FALSE(continues(body + "add.s32 %r12, %r13, %r8;" + element("%r3", "%r12")));
}

TEST_CASE("CTA order: rows of threads that read what their neighbours in x continue", "[cta_order]") {
    CHECK(in_row(element("%r3", "%r2")) == 128);
    CHECK(in_row(element("%r3", "%r2"), {64, 4, 1}) == 64);
    // one row of threads; long rows; a transposed read; what others may see; the multiprocessor's number
    CHECK(in_row(element("%r3", "%r2"), {256, 1, 1}) == 1);
    CHECK(in_row(element("%r3", "%r2"), {512, 2, 1}) == 1);
    CHECK(in_row(element("%r2", "%r3")) == 1);
    CHECK(in_row(element("%r3", "%r2") + "atom.global.add.u32 %r11, [%rd2], 1;") == 1);
    CHECK(in_row(element("%r3", "%r2") + "mov.u32 %r11, %smid; st.global.u32 [%rd2+4], %r11;") == 1);
}
