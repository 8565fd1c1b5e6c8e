// SPDX-License-Identifier: Apache-2.0
// Recursion: as deep as CU_LIMIT_STACK_SIZE allows, and a fault that says so beyond it.
#include "fault_child.h"

namespace {

/// k(u64* data, u64 depth): data[0] = depth, counted by recursion.
const char* const counting = R"(
.version 9.0
.target sm_90
.address_size 64
.func (.param .b32 result) down(.param .b32 left)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [left];
    mov.u32 %r3, 0;
    setp.eq.u32 %p, %r1, 0;
    @%p bra done;
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r2;
        call.uni (answer), down, (argument);
        ld.param.b32 %r3, [answer];
    }
    add.u32 %r3, %r3, 1;
done:
    st.param.b32 [result], %r3;
    ret;
}
.visible .entry k(.param .u64 data, .param .u64 depth)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [depth];
    cvt.u32.u64 %r1, %rd2;
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r1;
        call.uni (answer), down, (argument);
        ld.param.b32 %r2, [answer];
    }
    cvt.u64.u32 %rd3, %r2;
    st.global.u64 [%rd1], %rd3;
    ret;
}
)";

/// Recursion without end, and without arguments: nothing of it is in the threads' local memory.
const char* const endless = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 count;
.func down()
{
    .reg .b32 %r<4>;
    atom.global.add.u32 %r1, [count], 1;
    call.uni down, ();
    atom.global.add.u32 %r2, [count], %r1;
    ret;
}
.visible .entry k(.param .u64 data, .param .u64 depth)
{
    call.uni down, ();
    ret;
}
)";

constexpr int stack_limit = 0; // CU_LIMIT_STACK_SIZE

int code_with_limit(std::size_t limit, std::uint64_t depth) {
    CUcontext primary = nullptr;
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&primary, 0) != 0 || cuCtxSetCurrent(primary) != 0) return -1;
    if (cuCtxSetLimit(stack_limit, limit) != 0) return -1;
    std::uint64_t result = 0;
    const int code = driver_test::code_of_launch(counting, 0, depth, &result);
    return code == 0 && result != depth ? -2 : code;
}

void check(const std::string& said, const char* code, const char* text) {
    INFO(said);
    CHECK(said.find(code) != std::string::npos);
    CHECK(said.find(text) != std::string::npos);
}

} // namespace

TEST_CASE("fault: stack_overflow", "[.]") {
    using driver_test::said_by_child;
    check(said_by_child([] { return code_with_limit(1024, 10); }), "\ncode 0\n", "");
    check(said_by_child([] { return code_with_limit(1024, 10000); }), "\ncode 700\n", "kernel k: stack overflow");
    check(said_by_child([] { return code_with_limit(512 << 10, 10000); }), "\ncode 0\n", "");
    check(said_by_child([] { return driver_test::code_of_launch(endless, 0, 0); }), "\ncode 700\n", "kernel k: stack overflow");
}
