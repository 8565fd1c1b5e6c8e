// SPDX-License-Identifier: Apache-2.0
// Which stores may go past the caches.
#include "graph_fixture.h"

#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/loops/plan_streaming.h"

using namespace ptarmigan;

namespace {

/// %rd1 and %rd2 point behind p and q by 4 times the thread's number.
test::AnalysedKernel made(const std::string& body) {
    return test::AnalysedKernel("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;\n"
                                "add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n" + body + " ret;",
                                {32, 1, 1}, 32,
                                ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
                                ".extern .func free(.param .b64 a);\n");
}

std::uint32_t streamed(const std::string& body) {
    test::AnalysedKernel kernel = made(body);
    return translator::plan_streaming(kernel.graph);
}

const std::string copy = "ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd2], %r2;";
const std::string assertion = "setp.eq.u32 %p1, %r2, 0; @!%p1 bra L; { .param .b64 a, b, d, e; .param .b32 c; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1;"
                              "st.param.b32 [c], %r2; st.param.b64 [d], %rd1; st.param.b64 [e], %rd1; call.uni __assertfail, (a, b, c, d, e); } L:";
const std::string release = "{ .param .b64 a; st.param.b64 [a], %rd1; call.uni free, (a); }";

} // namespace

TEST_CASE("streaming: stores to buffers that nobody reads", "[streaming]") {
    CHECK(streamed(copy) == 4);
    CHECK(streamed(copy + "st.global.u32 [%rd2+4096], %r2;") == 8);
    CHECK(streamed(copy + "st.shared.u32 [%r1], %r2;") == 4);
    CHECK(streamed("ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd2], %r2;") == 0);
    CHECK(streamed(copy + "ld.global.u32 %r3, [%rd2+4]; st.global.u32 [%rd1], %r3;") == 0);
    CHECK(streamed("ld.global.u64 %rd4, [%rd1]; mov.u32 %r2, 1; st.global.u32 [%rd4], %r2;") == 0); // nobody knows where
}

TEST_CASE("streaming: strides that only the launch knows", "[streaming]") {
    const std::string strided = "ld.param.u32 %r4, [n]; mul.lo.u32 %r5, %r1, %r4; cvt.u64.u32 %rd5, %r5; ld.param.u64 %rd6, [q]; add.s64 %rd6, %rd5, %rd6;";
    CHECK(streamed(strided + "ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd6], %r2;") == 4);
    CHECK(streamed(strided + "ld.global.u32 %r2, [%rd6]; st.global.u32 [%rd6], %r2;") == 0);
    CHECK(streamed(strided + "ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd6], %r2;") == 0);
    CHECK(streamed(strided + "mad.wide.u32 %rd7, %r5, %r4, %rd6; ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd7], %r2;") == 4);
    // Which of two is the pointer nobody knows.
    CHECK(streamed(strided + "ld.param.u64 %rd7, [p]; add.s64 %rd7, %rd7, %rd6; mov.u32 %r2, 1; st.global.u32 [%rd7], %r2;") == 0);
    CHECK(streamed("ld.global.u64 %rd4, [%rd1]; mul.wide.u32 %rd5, %r1, 12; add.s64 %rd4, %rd4, %rd5; mov.u32 %r2, 1; st.global.u32 [%rd4], %r2;") == 0);
}

TEST_CASE("streaming: not where memory is ordered", "[streaming]") {
    CHECK(streamed(copy + "membar.gl;") == 0);
    CHECK(streamed(copy + "st.volatile.global.u32 [%rd2], %r2;") == 0);
    CHECK(streamed(copy + "st.release.gpu.global.u32 [%rd2], %r2;") == 0);
    CHECK(streamed(copy + "ld.relaxed.gpu.global.u32 %r3, [%rd1];") == 0);
    CHECK(streamed(copy + "atom.global.add.u32 %r3, [%rd1], %r2;") == 0);
    CHECK(streamed(copy + "atom.shared.add.u32 %r3, [%r1], %r2;") == 4);
}

TEST_CASE("effects: assertions keep nothing away", "[streaming]") {
    const auto calls = [](const std::string& body) {
        const test::AnalysedKernel kernel = made(body);
        return ptx::any(translator::effects_but_of_assertions(kernel.graph), ptx::Effects::call);
    };
    CHECK_FALSE(calls(copy + assertion));
    CHECK(calls(copy + assertion + release));
}

TEST_CASE("streaming: an assertion ends the kernel, other calls may order memory", "[streaming]") {
    CHECK(streamed(copy + assertion) == 4);
    CHECK(streamed(copy + release) == 0);
}
