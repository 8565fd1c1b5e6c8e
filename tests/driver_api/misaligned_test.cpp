// SPDX-License-Identifier: Apache-2.0
// Misaligned accesses end with 716 as on hardware, and only those that are made. Each row runs in a process of its own,
// because a fault ends the process's use of the driver; hidden ([.]), so that nothing has used it before.
#include "fault_child.h"

namespace {

/// Every kernel has the parameters (u64 data, u64 extra); %rd1 is data, %rd2 data + extra, which no launch can vouch for;
/// %rd3 is data + 4 * tid, %rd4 the same + extra. %rd5 points to data's address (one more way not to know it).
const char* const header = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .global .align 8 .u64 place;
)";

const char* const prologue = R"((.param .u64 data, .param .u64 extra)
{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<16>;
    .reg .b64 %s<4>;
    .shared .align 16 .b8 window[1024];
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd6, [extra];
    add.u64 %rd2, %rd1, %rd6;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd7, %r1, 4;
    add.u64 %rd3, %rd1, %rd7;
    add.u64 %rd4, %rd2, %rd7;
    mov.u32 %r2, window;
    mov.u32 %r3, 0;
    cvt.u32.u64 %r4, %rd6;
    setp.eq.u32 %p1, %r1, 5;
    setp.eq.u32 %p2, %r1, 77;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    mov.u16 %h1, 0;
    mov.u64 %s1, 0;
)";

/// Uses what was loaded: a load that nobody needs is none.
const char* const epilogue = R"(
    cvt.u32.u16 %r7, %h1;
    add.u32 %r7, %r7, %r5;
    add.u32 %r7, %r7, %r6;
    cvt.u32.u64 %r6, %s1;
    add.u32 %r7, %r7, %r6;
    st.shared.u32 [window+512], %r7;
    ret;
}
)";

struct Row {
    const char* what;
    const char* body;
    unsigned data_offset, extra;
    int code;
    const char* report; ///< part of what stderr says
};

const Row rows[] = {
    {"aligned", "ld.global.u32 %r5, [%rd3+4]; st.global.u32 [%rd3], %r5;", 4, 0, 0, ""},
    {"parameter", "ld.global.u32 %r5, [%rd3];", 2, 0, 716, "thread (0,0,0) and "},
    {"offset", "ld.global.u32 %r5, [%rd3+6];", 0, 0, 716, "misaligned address"},
    {"offset that mends it", "ld.global.u32 %r5, [%rd3+6];", 2, 0, 0, ""},
    {"store", "st.global.u16 [%rd4+1], %h1;", 0, 0, 716, "(write), "},
    {"bytes", "ld.global.u8 %r5, [%rd4];", 0, 3, 0, ""},
    {"halves", "ld.global.u16 %h1, [%rd4];", 0, 2, 0, ""},
    {"sum of parameters", "ld.global.u32 %r5, [%rd4];", 0, 1, 716, "thread (0,0,0) and "},
    {"uniform", "ld.global.u32 %r5, [%rd2];", 0, 3, 716, "(read), "},
    {"vector", "ld.global.v4.u32 {%r5,%r5,%r5,%r5}, [%rd1];", 8, 0, 716, ""},
    {"aligned vector", "ld.global.v2.u32 {%r5,%r6}, [%rd1]; st.global.v2.u32 [%rd1], {%r6,%r5};", 8, 0, 0, ""},
    {"vector per lane", "ld.global.v2.u32 {%r5,%r6}, [%rd4];", 0, 0, 716, "thread (1,0,0) and "},
    {"double", "ld.global.u64 %s1, [%rd1+4];", 0, 0, 716, ""},
    {"atomic", "atom.global.add.u32 %r5, [%rd2], 1;", 0, 2, 716, "(write), "},
    {"reduction", "red.global.add.u64 [%rd1], 1;", 4, 0, 716, "(write), "},
    {"shared", "mad.lo.u32 %r5, %r1, 4, %r2; add.u32 %r5, %r5, %r4; ld.shared.u32 %r6, [%r5];", 0, 2, 716, ""},
    {"shared at a constant", "ld.shared.u32 %r6, [%r2+2];", 0, 0, 716, "thread (0,0,0)"},
    {"generic to shared", "cvta.shared.u64 %s1, %rd6; st.u32 [%s1+1], %r3;", 0, 0, 716, ""},
    {"one lane", "@%p1 add.u64 %rd4, %rd4, 2; ld.global.u32 %r5, [%rd4];", 0, 0, 716, "thread (5,0,0)\n"},
    {"guarded by one", "@%p1 ld.global.u32 %r5, [%rd4];", 0, 2, 716, "thread (5,0,0)\n"},
    {"guarded by none", "@%p2 ld.global.u32 %r5, [%rd4]; @%p2 ld.global.u32 %r5, [%rd3];", 2, 0, 0, ""},
    {"branch not taken", "setp.ne.u32 %p3, %r4, 9; @%p3 bra done; st.global.v4.u32 [%rd1], {%r3,%r3,%r3,%r3}; done:", 4, 0, 0,
     ""},
    {"pointer in memory", "ld.global.u64 %rd5, [%rd1]; mul.wide.u32 %s1, %r1, 4; add.u64 %s1, %s1, %rd5; ld.global.u32 %r5, [%s1];",
     0, 0, 716, ""},
    {"loop",
     "mov.u64 %s1, %rd3; loop: ld.global.u32 %r5, [%s1]; add.u64 %s1, %s1, 6; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 4;"
     "@%p3 bra loop;",
     0, 0, 716, "thread (0,0,0) and "},
    {"checked once",
     "ld.global.u32 %r5, [%rd4]; @%p1 bra other; ld.global.u32 %r5, [%rd4+8]; other: st.global.u32 [%rd4+4], %r5;", 0, 4, 0, ""},
    {"checked under a guard", "@%p2 ld.global.u32 %r5, [%rd4]; ld.global.u32 %r6, [%rd4];", 0, 2, 716, "and "},
    {"copy", "cp.async.cg.shared.global [%r2], [%rd2], 16;", 0, 8, 716, "(read), "},
    {"row of a matrix", "and.b32 %r5, %r1, 31; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r2; @%p1 add.u32 %r5, %r5, %r4;"
     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r3}, [%r5];", 0, 8, 716, "(read), "},
    {"row of a matrix, transposed", "cvt.u64.u32 %s1, %r2; cvta.shared.u64 %s1, %s1; add.u64 %s1, %s1, %rd6;"
     "ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r5}, [%s1];", 0, 4, 716, "(read), "},
    {"row of a matrix that is not asked for", "and.b32 %r5, %r1, 31; setp.ge.u32 %p3, %r5, 8; selp.u32 %r5, %r4, 0, %p3; add.u32 %r5, %r5, %r2;"
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5]; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r6};", 0, 1, 0, ""},
    {"row of a matrix, stored", "add.u32 %r5, %r2, %r4; stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {%r3, %r3};", 0, 8, 716, "(write), "},
    {"matrix", "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r5, %r6, %r7, %r5, %r6, %r7, %r5, %r6}, [%rd2];", 0, 2, 716, "(read), "},
    {"matrix in pairs", "wmma.load.c.sync.aligned.row.m16n16k16.global.s32 {%r5, %r6, %r7, %r5, %r6, %r7, %r5, %r6}, [%rd2];", 0, 4, 716, "(read), "},
    {"matrix by columns", "wmma.load.c.sync.aligned.col.m16n16k16.global.s32 {%r5, %r6, %r7, %r5, %r6, %r7, %r5, %r6}, [%rd2];", 0, 4, 0, ""},
    {"copy to", "add.u32 %r2, %r2, %r4; cp.async.ca.shared.global [%r2], [%rd1], 8;", 0, 4, 716, "(write), "},
};

} // namespace

TEST_CASE("fault: misaligned_address", "[.]") {
    for (const Row& row : rows) {
        const std::string text = std::string(header) + ".visible .entry k" + prologue + row.body + epilogue;
        const std::string said =
            driver_test::said_by_child([&] { return driver_test::code_of_launch(text, row.data_offset, row.extra); });
        INFO(row.what << ":\n" << said);
        CHECK(said.find("\ncode " + std::to_string(row.code) + "\n") != std::string::npos);
        CHECK(said.find(row.report) != std::string::npos);
        if (row.code == 716) CHECK(said.find("kernel k: misaligned address") != std::string::npos);
    }
}
