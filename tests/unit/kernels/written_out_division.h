// SPDX-License-Identifier: Apache-2.0
// A division of 32 bits as ptxas writes it out and the lifter of machine code leaves it.
#pragma once

#include <string>
#include <string_view>

namespace ptarmigan::test {

/// `text` with each `from` replaced.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
    return text;
}

/// Quotient in %r12 and remainder in %r14 of %r1 and %r2 (as absolute values, in %r22 and %r23, of signed numbers). Uses %r1 to %r29, %p1 to %p4, and
/// registers of 64 bits named %rd or, here, %l.
inline std::string written_out_division(bool is_signed, bool by_zero = true) {
    std::string text = R"(
        cvt.rp.f32.u32 %r3, B;
        rcp.approx.ftz.f32 %r4, %r3;
        add.s32 %r5, %r4, 0xffffffe;
        cvt.rzi.ftz.u32.f32 %r6, %r5;
        sub.s32 %r7, 0, B;
        mul.lo.s32 %r8, %r7, %r6;
        mov.b32 %r9, 0;
        mov.b64 %l4, {%r9, %r6};
        mad.wide.u32 %l5, %r6, %r8, %l4;
        mov.b64 {%r10, %r11}, %l5;
        mul.hi.u32 %r12, %r11, A;
        sub.s32 %r13, 0, %r12;
        mad.lo.s32 %r14, B, %r13, A;
        setp.ge.u32 %p1, %r14, B;
        sub.s32 %r15, %r14, B;
        @%p1 mov.b32 %r14, %r15;
        add.s32 %r16, %r12, 1;
        @%p1 mov.b32 %r12, %r16;
        setp.gt.u32 %p2, B, %r14;
        add.s32 %r17, %r12, 1;
        @!%p2 mov.b32 %r12, %r17;
        sub.s32 %r18, %r14, B;
        @!%p2 mov.b32 %r14, %r18;
    )";
    if (is_signed) text += R"(
        xor.b32 %r24, %r1, %r2;
        setp.ge.s32 %p3, %r24, 0;
        sub.s32 %r25, 0, %r12;
        @!%p3 mov.b32 %r12, %r25;
        setp.ge.s32 %p3, %r1, 0;
        sub.s32 %r26, 0, %r14;
        @!%p3 mov.b32 %r14, %r26;
    )";
    if (by_zero) text += R"(
        setp.ne.s32 %p4, %r2, 0;
        sub.s32 %r19, 0xffffffff, %r2;
        @!%p4 mov.b32 %r12, %r19;
        @!%p4 mov.b32 %r14, %r19;
    )";
    if (is_signed)
        text = replaced(replaced("abs.s32 %r22, %r1; abs.s32 %r23, %r2;" + text, "cvt.rp.f32.u32", "cvt.rp.f32.s32"), " B", " %r23");
    return replaced(replaced(text, " B", " %r2"), " A", is_signed ? " %r22" : " %r1");
}

} // namespace ptarmigan::test
