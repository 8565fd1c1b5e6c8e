// SPDX-License-Identifier: Apache-2.0
// The PTX of a case's fetch.
#include "tests/recordings/textures/texture_case.h"

#include <utility>

namespace texture_recording {
namespace {

/// The coordinate operand: registers %r0.. as the geometry wants them.
std::string coordinate_operand(const Case& c) {
    static const std::pair<const char*, const char*> operands[] = {
        {"1d", "{%r0}"}, {"2d", "{%r0, %r1}"}, {"3d", "{%r0, %r1, %r2, %r2}"}, {"a1d", "{%r0, %r1}"},
        {"a2d", "{%r0, %r1, %r2, %r2}"}, {"cube", "{%r0, %r1, %r2, %r2}"}, {"acube", "{%r0, %r1, %r2, %r3}"}};
    for (const auto& [geometry, operand] : operands)
        if (c.has(geometry)) return operand;
    return "";
}

std::string gradient_operand(const Case& c, unsigned first) {
    const auto reg = [&](unsigned i) { return "%r" + std::to_string(first + i); };
    if (c.has("1d") || c.has("a1d")) return "{" + reg(0) + "}";
    if (c.has("2d") || c.has("a2d")) return "{" + reg(0) + ", " + reg(1) + "}";
    return "{" + reg(0) + ", " + reg(1) + ", " + reg(2) + ", " + reg(2) + "}";
}

} // namespace

std::string kernel_key(const Case& c) {
    return c.fetch + c.offset + (c.compare ? " compare" : "") + (c.predicate ? " predicate" : "");
}

std::string kernel_text(const Case& c, const std::string& name) {
    const bool halves = c.has("f16"), packed = c.has("f16x2");
    std::string text = ".visible .entry " + name + "(.param .u64 t, .param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
        ".reg .b32 %r<16>; .reg .b32 %o<4>; .reg .b16 %h<4>; .reg .b64 %d<8>; .reg .pred %p<2>; .reg .b32 %i<4>;\n"
        "ld.param.u64 %d0, [t]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %i0, [n];\n"
        "mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %tid.x; mad.lo.u32 %i1, %i1, %i2, %i3;\n"
        "setp.ge.u32 %p0, %i1, %i0; @%p0 ret;\n"
        "mul.wide.u32 %d3, %i1, 64; add.u64 %d1, %d1, %d3; mul.wide.u32 %d3, %i1, 16; add.u64 %d2, %d2, %d3;\n";
    for (unsigned i = 0; i < 16; ++i)
        text += "ld.global.b32 %r" + std::to_string(i) + ", [%d1+" + std::to_string(4 * i) + "];\n";
    text += "mov.b32 %o2, 0; mov.b32 %o3, 0;\n";
    std::string target = packed ? "{%o0, %o1}" : halves ? "{%h0, %h1, %h2, %h3}" : "{%o0, %o1, %o2, %o3}";
    if (c.predicate) target += "|%p1";
    text += c.fetch + " " + target + ", [%d0, " + coordinate_operand(c) + "]";
    if (c.has("level")) text += ", %r" + std::to_string(lod_at);
    if (c.has("grad")) text += ", " + gradient_operand(c, dpdx_at) + ", " + gradient_operand(c, dpdy_at);
    if (!c.offset.empty()) text += ", " + c.offset;
    if (c.compare) text += ", %r" + std::to_string(compare_at);
    text += ";\n";
    if (halves)
        for (unsigned i = 0; i < 4; ++i) text += "cvt.u32.u16 %o" + std::to_string(i) + ", %h" + std::to_string(i) + ";\n";
    if (c.predicate) text += "selp.b32 %o3, 1, 0, %p1;\n";
    return text + "st.global.v4.b32 [%d2], {%o0, %o1, %o2, %o3};\nret;\n}\n";
}

} // namespace texture_recording
