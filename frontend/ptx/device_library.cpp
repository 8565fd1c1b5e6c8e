// SPDX-License-Identifier: Apache-2.0
// The answers are an H100's (tests/recordings/device_runtime/groups_h100.txt). The barrier is cooperative_groups' own,
// on the same counter: the block that comes first in the grid adds what makes the counter's highest bit change when all
// have come. With the flag 1 a block's only caller comes for it.
#include "frontend/ptx/device_library.h"

namespace ptarmigan::ptx {

const std::string_view device_library_text = R"(
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
.reg .b32 %r<4>;
.reg .b64 %handle;
.reg .pred %p<2>;
ld.param.u32 %r0, [scope];
mov.u32 %r1, %envreg1;
mov.u32 %r2, %envreg2;
or.b32 %r3, %r1, %r2;
setp.eq.u32 %p0, %r0, 1;
setp.ne.and.u32 %p1, %r3, 0, %p0;
selp.b64 %handle, -1, 0, %p1;
st.param.b64 [result], %handle;
ret;
}
.visible .func (.param .b32 result) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle)
{
.reg .b32 %r<10>;
.reg .b64 %l<3>;
.reg .pred %p<3>;
ld.param.u64 %l0, [threads];
ld.param.u64 %l1, [grids];
ld.param.u64 %l2, [handle];
mov.u32 %r0, 0;
mov.u32 %r1, 0;
mov.u32 %r2, 999;
setp.eq.u64 %p0, %l2, 0;
@%p0 bra store;
mov.u32 %r2, 0;
setp.ne.s64 %p0, %l2, -1;
@%p0 bra done;
mov.u32 %r0, %ntid.x;
mov.u32 %r3, %ntid.y;
mul.lo.u32 %r0, %r0, %r3;
mov.u32 %r3, %ntid.z;
mul.lo.u32 %r0, %r0, %r3;
mov.u32 %r3, %nctaid.x;
mul.lo.u32 %r0, %r0, %r3;
mov.u32 %r3, %nctaid.y;
mul.lo.u32 %r0, %r0, %r3;
mov.u32 %r3, %nctaid.z;
mul.lo.u32 %r0, %r0, %r3;
mov.u32 %r1, 1;
store:
setp.ne.u64 %p1, %l0, 0;
@%p1 st.u32 [%l0], %r0;
setp.ne.u64 %p2, %l1, 0;
@%p2 st.u32 [%l1], %r1;
done:
st.param.b32 [result], %r2;
ret;
}
.visible .func (.param .b32 result) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle)
{
.reg .b32 %r<10>;
.reg .b64 %l<3>;
.reg .pred %p<3>;
ld.param.u64 %l0, [thread];
ld.param.u64 %l1, [grid];
ld.param.u64 %l2, [handle];
mov.u32 %r0, 0;
mov.u32 %r1, 0;
mov.u32 %r2, 999;
setp.eq.u64 %p0, %l2, 0;
@%p0 bra store;
mov.u32 %r2, 0;
setp.ne.s64 %p0, %l2, -1;
@%p0 bra done;
mov.u32 %r0, %ctaid.z;
mov.u32 %r3, %nctaid.y;
mov.u32 %r4, %ctaid.y;
mad.lo.u32 %r0, %r0, %r3, %r4;
mov.u32 %r3, %nctaid.x;
mov.u32 %r4, %ctaid.x;
mad.lo.u32 %r0, %r0, %r3, %r4;
mov.u32 %r3, %ntid.z;
mov.u32 %r4, %tid.z;
mad.lo.u32 %r0, %r0, %r3, %r4;
mov.u32 %r3, %ntid.y;
mov.u32 %r4, %tid.y;
mad.lo.u32 %r0, %r0, %r3, %r4;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.u32 %r0, %r0, %r3, %r4;
mov.u32 %r1, 1;
store:
setp.ne.u64 %p1, %l0, 0;
@%p1 st.u32 [%l0], %r0;
setp.ne.u64 %p2, %l1, 0;
@%p2 st.u32 [%l1], %r1;
done:
st.param.b32 [result], %r2;
ret;
}
.func ptarmigan_meet_grid()
{
.reg .b32 %r<5>;
.reg .b64 %counter;
.reg .pred %p;
mov.u32 %r0, %envreg1;
mov.u32 %r1, %envreg2;
mov.b64 %counter, {%r1, %r0};
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ctaid.y;
mov.u32 %r2, %ctaid.z;
or.b32 %r0, %r0, %r1;
or.b32 %r0, %r0, %r2;
mov.u32 %r1, %nctaid.x;
mov.u32 %r2, %nctaid.y;
mul.lo.u32 %r1, %r1, %r2;
mov.u32 %r2, %nctaid.z;
mul.lo.u32 %r1, %r1, %r2;
sub.u32 %r1, 0x80000001, %r1;
setp.eq.u32 %p, %r0, 0;
selp.b32 %r1, %r1, 1, %p;
membar.gl;
atom.add.u32 %r3, [%counter+4], %r1;
wait:
ld.volatile.u32 %r4, [%counter+4];
xor.b32 %r4, %r4, %r3;
setp.ge.s32 %p, %r4, 0;
@%p bra wait;
membar.gl;
ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
.reg .b32 %r<5>;
.reg .b64 %handle;
.reg .pred %p;
ld.param.u64 %handle, [handle];
ld.param.u32 %r0, [flags];
mov.u32 %r1, 999;
setp.ne.s64 %p, %handle, -1;
@%p bra done;
setp.gt.u32 %p, %r0, 1;
@%p bra done;
mov.u32 %r1, 0;
setp.eq.u32 %p, %r0, 1;
@%p bra alone;
bar.sync 0;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %tid.y;
mov.u32 %r4, %tid.z;
or.b32 %r2, %r2, %r3;
or.b32 %r2, %r2, %r4;
setp.ne.u32 %p, %r2, 0;
@%p bra leave;
call ptarmigan_meet_grid;
leave:
bar.sync 0;
bra done;
alone:
call ptarmigan_meet_grid;
done:
st.param.b32 [result], %r1;
ret;
}
.visible .func (.param .b32 result) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)
{
.reg .b32 %r<2>;
.reg .b64 %l<2>;
ld.param.u64 %l0, [handle];
ld.param.u32 %r0, [flags];
and.b32 %r0, %r0, 0xfffffffe;
{
.param .b64 a;
.param .b32 b;
.param .b32 c;
st.param.b64 [a], %l0;
st.param.b32 [b], %r0;
call.uni (c), cudaCGSynchronize, (a, b);
ld.param.b32 %r1, [c];
}
st.param.b32 [result], %r1;
ret;
}
)";

} // namespace ptarmigan::ptx
