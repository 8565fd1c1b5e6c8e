// SPDX-License-Identifier: Apache-2.0
// Failed device assertions: one line for each thread that fails, in the driver's words, then 710.
#include "fault_child.h"

namespace {

/// Threads whose number is in the mask `which` fail.
const char* const asserting = R"(
.version 9.0
.target sm_90
.address_size 64
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
.global .align 1 .b8 message[6] = {120, 32, 60, 32, 51, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
.global .align 1 .b8 function[7] = {118, 111, 105, 100, 32, 107, 0};
.visible .entry k(.param .u64 data, .param .u64 which)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [which];
    mov.u32 %r1, %tid.x;
    shr.u64 %rd2, %rd1, %r1;
    and.b64 %rd2, %rd2, 1;
    setp.eq.u64 %p, %rd2, 0;
    @%p bra fine;
    mov.u64 %rd3, message;
    mov.u64 %rd4, file;
    mov.u64 %rd5, function;
    {
        .param .b64 a;
        .param .b64 b;
        .param .b32 c;
        .param .b64 d;
        .param .b64 e;
        st.param.b64 [a], %rd3;
        st.param.b64 [b], %rd4;
        st.param.b32 [c], 17;
        st.param.b64 [d], %rd5;
        st.param.b64 [e], 1;
        call.uni __assertfail, (a, b, c, d, e);
    }
fine:
    ret;
}
)";

std::string line_of(unsigned thread) {
    return "a.cu:17: void k: block: [0,0,0], thread: [" + std::to_string(thread) + ",0,0] Assertion `x < 3` failed.\n";
}

} // namespace

TEST_CASE("fault: assertion", "[.]") {
    const std::string said = driver_test::said_by_child([] { return driver_test::code_of_launch(asserting, 0, 0x68); });
    INFO(said);
    CHECK(said.find(line_of(3) + line_of(5) + line_of(6)) != std::string::npos);
    CHECK(said.find(line_of(4)) == std::string::npos);
    CHECK(said.find("kernel k: assertion failed") != std::string::npos);
    CHECK(said.find("thread (3,0,0)") != std::string::npos);
    CHECK(said.find("\ncode 710\n") != std::string::npos);
    const std::string nothing = driver_test::said_by_child([] { return driver_test::code_of_launch(asserting, 0, 0); });
    CHECK(nothing == "\ncode 0\n");
}
