// SPDX-License-Identifier: Apache-2.0
// Recursion and alloca: as much as CU_LIMIT_STACK_SIZE allows, and a fault that says so beyond it.
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

/// k(u64* data, u64 depth): data[0] = depth (less than 2^31), as the last of depth + 1 numbers that an inlined function keeps
/// on the stack; a hundred times, so that what it takes must be given back. Then what stacksave, guards, alignment and both
/// widths of stackrestore are about.
const char* const allocating = R"(
.version 9.0
.target sm_90
.address_size 64
.func (.param .b32 result) last(.param .b32 count)
{
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u32 %r1, [count];
    add.u32 %r2, %r1, 1;
    mul.wide.u32 %rd1, %r2, 4;
    alloca.u64 %rd2, %rd1, 16;
    mov.u64 %rd3, %rd2;
    mov.u32 %r3, 0;
fill:
    st.local.u32 [%rd3], %r3;
    add.u64 %rd3, %rd3, 4;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, %r2;
    @%p bra fill;
    cvta.local.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd4, %rd4, %rd5;
    ld.u32 %r4, [%rd4];
    st.param.b32 [result], %r4;
    ret;
}
.visible .entry k(.param .u64 data, .param .u64 depth)
{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<20>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [depth];
    cvt.u32.u64 %r1, %rd2;
    mov.u32 %r2, 0;
    stacksave.u64 %rd3;
    stacksave.u32 %r3;
again:
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r1;
        call.uni (answer), last, (argument);
        ld.param.b32 %r4, [answer];
    }
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 100;
    @%p1 bra again;
    stacksave.u64 %rd4;
    setp.ne.u64 %p2, %rd3, %rd4;
    @%p2 add.u32 %r4, %r4, 1000;
    alloca.u64 %rd5, 0x100000005, 64;
    and.b64 %rd6, %rd5, 63;
    setp.ne.u64 %p2, %rd6, 0;
    @%p2 add.u32 %r4, %r4, 2000;
    setp.eq.u64 %p3, %rd2, 0xffffffff;
    @%p3 alloca.u64 %rd7, 0x10000000;
    @%p3 stackrestore.u64 %rd2;
    stacksave.u64 %rd8;
    setp.ne.u64 %p2, %rd8, %rd5;
    @%p2 add.u32 %r4, %r4, 4000;
    stackrestore.u32 %r3;
    stacksave.u64 %rd9;
    setp.ne.u64 %p2, %rd9, %rd3;
    @%p2 add.u32 %r4, %r4, 8000;
    cvt.u64.u32 %rd10, %r4;
    st.global.u64 [%rd1], %rd10;
    ret;
}
)";

/// k(u64* data, u64): data[0] = how many of the 32 threads have what they keep in local memory when all of them have stored
/// through an allocation of no bytes.
const char* const storing_behind = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 depth)
{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .local .align 16 .b8 own[16];
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u64 %rd2, own;
    cvta.local.u64 %rd3, %rd2;
    st.volatile.u32 [%rd3], %r1;
    alloca.u64 %rd4, 0;
    st.local.v2.u64 [%rd4], {-1, -1};
    bar.warp.sync -1;
    ld.volatile.u32 %r2, [%rd3];
    setp.eq.u32 %p1, %r1, %r2;
    vote.sync.ballot.b32 %r3, %p1, -1;
    popc.b32 %r4, %r3;
    cvt.u64.u32 %rd5, %r4;
    st.global.u64 [%rd1], %rd5;
    ret;
}
)";

/// k(u64* data, u64 depth): recursion in which each thread takes its own amount on the stack at each level, half of the threads
/// twice, by 64-bit and by 32-bit addresses, and finds it as it was when the deeper levels have returned. data[0] = depth if all
/// threads of the block counted so many levels without a wrong word. The kernel calls through a pointer and has an allocation too.
const char* const allocating_deeper = R"(
.version 9.0
.target sm_90
.address_size 64
.func (.param .b32 result) down(.param .b32 left, .param .b64 callee)
{
    .reg .pred %p<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<20>;
    .local .align 8 .b8 own[16];
    ld.param.u32 %r1, [left];
    ld.param.u64 %rd9, [callee];
    mov.u32 %r2, 0;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra done;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, 1000, %r3;
    mov.u64 %rd1, own;
    st.local.u32 [own+4], %r4;
    and.b32 %r5, %r3, 15;
    mad.lo.u32 %r5, %r5, 4, 8;
    cvt.u64.u32 %rd2, %r5;
    alloca.u64 %rd3, %rd2, 16;
    st.local.u32 [%rd3], %r4;
    add.u64 %rd4, %rd3, %rd2;
    st.local.u32 [%rd4+-4], %r4;
    and.b32 %r6, %r3, 1;
    setp.eq.u32 %p2, %r6, 1;
    mov.u32 %r7, 0;
    @%p2 alloca.u32 %r7, %r5, 32;
    @%p2 st.local.u32 [%r7+4], %r4;
    sub.u32 %r8, %r1, 1;
    {
        .param .b32 argument;
        .param .b64 same;
        .param .b32 answer;
        st.param.b32 [argument], %r8;
        st.param.b64 [same], %rd9;
        call (answer), down, (argument, same);
        ld.param.b32 %r2, [answer];
    }
    add.u32 %r2, %r2, 1;
    ld.local.u32 %r9, [%rd3];
    setp.ne.u32 %p3, %r9, %r4;
    @%p3 add.u32 %r2, %r2, 1000;
    ld.local.u32 %r9, [%rd4+-4];
    setp.ne.u32 %p3, %r9, %r4;
    @%p3 add.u32 %r2, %r2, 1000;
    ld.local.u32 %r9, [own+4];
    setp.ne.u32 %p3, %r9, %r4;
    @%p3 add.u32 %r2, %r2, 1000;
    mov.u32 %r9, %r4;
    @%p2 ld.local.u32 %r9, [%r7+4];
    setp.ne.u32 %p3, %r9, %r4;
    @%p3 add.u32 %r2, %r2, 1000;
    cvt.u64.u32 %rd5, %r7;
    cvta.local.u64 %rd6, %rd5;
    @%p2 ld.u32 %r9, [%rd6+4];
    setp.ne.u32 %p3, %r9, %r4;
    @%p3 add.u32 %r2, %r2, 1000;
    and.b32 %r10, %r7, 31;
    setp.ne.u32 %p3, %r10, 0;
    @%p3 add.u32 %r2, %r2, 1000;
done:
    st.param.b32 [result], %r2;
    ret;
}
.visible .entry k(.param .u64 data, .param .u64 depth)
{
    .reg .pred %p<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<20>;
    .shared .u32 wrong;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [depth];
    cvt.u32.u64 %r1, %rd2;
    mov.u32 %r2, %tid.x;
    mov.u32 %r8, 0;
    st.shared.u32 [wrong], %r8;
    mul.wide.u32 %rd3, %r2, 8;
    mov.u64 %rd8, down;
    stacksave.u64 %rd4;
    mov.u32 %r3, 0;
again:
    alloca.u64 %rd5, %rd3;
    alloca.u64 %rd6, 8;
    st.local.u64 [%rd6], %rd3;
    bar.sync 0;
    {
        .param .b32 argument;
        .param .b64 same;
        .param .b32 answer;
        st.param.b32 [argument], %r1;
        st.param.b64 [same], %rd8;
        callee: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);
        call (answer), %rd8, (argument, same), callee;
        ld.param.b32 %r4, [answer];
    }
    ld.local.u64 %rd7, [%rd6];
    setp.ne.u64 %p1, %rd7, %rd3;
    setp.ne.u32 %p2, %r4, %r1;
    or.pred %p1, %p1, %p2;
    @%p1 atom.shared.add.u32 %r5, [wrong], 1;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 3;
    @%p3 bra again;
    stackrestore.u64 %rd4;
    bar.sync 0;
    ld.shared.u32 %r6, [wrong];
    add.u32 %r4, %r1, %r6;
    cvt.u64.u32 %rd9, %r4;
    st.global.u64 [%rd1], %rd9;
    ret;
}
)";

constexpr int stack_limit = 0; // CU_LIMIT_STACK_SIZE

int code_with_limit(std::size_t limit, std::uint64_t depth, const char* text = counting) {
    if (!driver_test::begin_on(0) || cuCtxSetLimit(stack_limit, limit) != 0) return -1;
    std::uint64_t result = 0;
    const int code = driver_test::code_of_launch(text, 0, depth, &result);
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
    check(said_by_child([] { return code_with_limit(1024, 200, allocating); }), "\ncode 0\n", "");
    check(said_by_child([] { return code_with_limit(8192, 20, allocating_deeper); }), "\ncode 0\n", "");
    check(said_by_child([] { return code_with_limit(8192, 400, allocating_deeper); }), "\ncode 700\n", "kernel k: stack overflow");
    check(said_by_child([] { return code_with_limit(1024, 32, storing_behind); }), "\ncode 0\n", "");
    check(said_by_child([] { return code_with_limit(1024, 2000, allocating); }), "\ncode 700\n", "kernel k: stack overflow");
    check(said_by_child([] { return code_with_limit(16384, 2000, allocating); }), "\ncode 0\n", "");
}
