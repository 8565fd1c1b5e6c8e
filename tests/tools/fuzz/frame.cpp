// SPDX-License-Identifier: Apache-2.0
// What stands around the statements of a program: declarations, first values, where the results go.
#include "tests/tools/fuzz/builder.h"

#include <iterator>

namespace fuzz {

Builder::Builder(std::uint32_t seed, Flavour flavour, const RowChooser& rows, Version version, Target target, const std::set<unsigned>& without)
    : flavour_(flavour), rows_(rows), version_(version), target_(target), without_(without), seed_(Random(seed ^ 0x5eed00000000ull).bits()), random_(seed_),
      writer_(random_, Registers::of_kernel(), version, target) {}

Program Builder::run() {
    static constexpr unsigned shapes[][3] = {{2, 32, 1}, {1, 64, 1}, {2, 48, 1}, {1, 16, 6}, {2, 96, 1}, {3, 40, 1}, {1, 8, 8}, {2, 32, 2}, {1, 32, 1}, {2, 16, 4}};
    const auto& shape = shapes[random_.below(std::size(shapes))];
    program_.grid = shape[0], program_.block_x = shape[1], program_.block_y = shape[2];
    full_warps_ = shape[1] * shape[2] % 32 == 0;
    most_statements_ = 30 + random_.below(90);
    has_functions_ = one_in(4);
    for (unsigned i = 0; has_functions_ && i < functions; ++i) function(i);
    Situation here;
    here.together = true, here.members = "%mask";
    block(6 + random_.below(10), here);
    may_leave_ = true; // no barriers and collectives from here on
    Situation apart = here.apart();
    apart.depth = 0;
    block(3 + random_.below(5), apart);
    program_.text = module_head() + functions_ + entry_head() + text_ + entry_tail();
    return program_;
}

std::string Builder::declarations(const Registers& registers, unsigned local) {
    return registers.declarations() + ".reg .b32 %x<3>, %c<5>, %t, %cta, %threads, %mask, %own_shared, %zero; .reg .b64 %a<3>, %in, %start, %scratch, %common, %local, %policy; .reg .pred %n;\n"
           ".local .align 16 .b8 own[" + text_of(local) + "];\n";
}

/// Registers start as edge values that differ between threads, as values that are the same in all, and as numbers of threads.
std::string Builder::initial(const Registers& registers) {
    std::string text = "createpolicy.fractional.L2::evict_last.b64 %policy;\nmov.u64 %local, own;\nld.global.b32 %zero, [%start];\n";
    unsigned offset = 0;
    for (const RegisterClass& c : registers.classes()) {
        if (c.type == ScalarType::pred) continue;
        const unsigned bytes = byte_size(c.type), most = 16 / bytes < 4 ? 16 / bytes : 4;
        for (unsigned i = 0; i < c.count;) {
            unsigned count = most;
            while (count > c.count - i) count /= 2;
            const std::string name = "%" + std::string(c.prefix);
            std::string list = name + text_of(i);
            for (unsigned k = 1; k < count; ++k) list += ", " + name + text_of(i + k);
            text += "ld.global" + (count > 1 ? ".v" + text_of(count) : std::string()) + ".b" + text_of(8 * bytes) + " " + (count > 1 ? "{" + list + "}" : list) +
                    ", [%in+" + text_of(offset) + "];\n";
            offset += 16;
            i += count;
        }
    }
    const unsigned number = random_.below(100), place = 4 * random_.below(512);
    text += "mov.u32 %r0, %t; mov.u32 %r1, %tid.x; ld.global.b32 %r2, [%start+" + text_of(place) + "]; mov.u32 %r3, " + text_of(number) + "; mul.wide.u32 %q0, %t, 8;\n";
    if (one_in(2)) text += "mov.u32 %r4, %cta; ld.global.b64 %q1, [%start+" + text_of(8 * random_.below(256)) + "]; cvt.u16.u32 %h0, %t; cvt.rn.f32.u32 %f0, %t;\n";
    text += "setp.gt.s32 %p0, %r4, %r3; setp.lt.u32 %p1, %t, " + text_of(random_.below(40)) + "; and.b32 %x0, %r1, 1; setp.eq.u32 %p2, %x0, 0; setp.gt.s32 %p3, %r2, 5;\n";
    for (const RegisterClass& c : registers.classes())
        if (c.type == ScalarType::pred && c.count > 4) text += "and.b32 %x0, %r4, 4; setp.ne.u32 %p4, %x0, 0;\n";
    for (unsigned i = 0; i < local_bytes; i += 16) text += "st.local.v2.b64 [own+" + text_of(i) + "], {%q" + text_of(i / 16 % 2) + ", " + text_of(i) + "};\n";
    return text;
}

std::string Builder::module_head() const {
    std::string text = ".version " + text_of(version_.major) + "." + text_of(version_.minor) + "\n.target sm_" + text_of(target_.sm) + (target_.suffix ? std::string(1, target_.suffix) : "") +
                       "\n.address_size 64\n.const .align 32 .b64 table[32] = {";
    const std::vector<std::uint64_t> words = input_words(256, 7);
    for (std::size_t i = 0; i < words.size(); ++i) text += (i ? ", " : "") + std::to_string(words[i]) + "U";
    return text + "};\n";
}

std::string Builder::argument_list() {
    return "(.param .b32 first, .param .b64 second, .param .b64 data, .param .b64 place, .param .align 8 .b8 array[16])";
}

std::string Builder::entry_head() {
    const Registers& registers = Registers::of_kernel();
    std::string masks = masks_ ? ".reg .b32 %m<" + text_of(masks_) + ">;\n" : "";
    std::string text = ".visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pscratch, .param .align 32 .b8 block[" + text_of(parameter_bytes) + "])\n{\n" +
                       declarations(registers, local_bytes) + masks + ".reg .b64 %out; .reg .b32 %thread;\n.shared .align 32 .b8 own_shared[" + text_of(32 * max_threads) + "];\n.shared .align 8 .b8 board[" +
                       text_of(8 * max_threads) + "];\n";
    if (has_functions_) text += "prototype: .callprototype (.param .b32 _) _ " + std::string("(.param .b32 _, .param .b64 _, .param .b64 _, .param .b64 _, .param .align 8 .b8 _[16]);\n");
    text += "mov.u32 %x0, %tid.y; mov.u32 %t, %ntid.x; mov.u32 %x1, %tid.x; mad.lo.u32 %t, %x0, %t, %x1;\n"
            "mov.u32 %threads, %ntid.x; mov.u32 %x0, %ntid.y; mul.lo.u32 %threads, %threads, %x0;\n"
            "mov.u32 %cta, %ctaid.x; mad.lo.u32 %thread, %cta, %threads, %t;\n"
            // Lanes of this warp that exist.
            "and.b32 %x0, %t, 0xffffffe0; sub.u32 %x0, %threads, %x0; min.u32 %x0, %x0, 32; sub.u32 %x0, 32, %x0;\n"
            "mov.u32 %mask, 0xffffffff; shr.u32 %mask, %mask, %x0;\n"
            "ld.param.u64 %start, [pin]; mul.lo.u32 %x0, %thread, 37; and.b32 %x0, %x0, 63; mad.wide.u32 %in, %x0, 32, %start;\n"
            "ld.param.u64 %out, [pout]; mad.wide.u32 %out, %thread, " + text_of(output_bytes) + ", %out;\n"
            "ld.param.u64 %scratch, [pscratch]; add.u64 %common, %scratch, " + text_of(scratch_bytes * max_threads) + "; mad.wide.u32 %scratch, %thread, " + text_of(scratch_bytes) + ", %scratch;\n" +
            initial(registers) +
            "mov.u32 %own_shared, own_shared; mad.lo.u32 %own_shared, %t, 32, %own_shared; st.shared.v2.b64 [%own_shared], {%q0, %q1}; st.shared.v2.b64 [%own_shared+16], {%q2, %q3};\n"
            "shl.b32 %x0, %t, 3; mov.u32 %x1, board; add.u32 %x0, %x0, %x1; st.shared.b64 [%x0], %q4; bar.sync 0;\n";
    return text;
}

/// All registers, and what the thread's memory in the CTA holds.
std::string Builder::entry_tail() const {
    std::string text = "$finish:\n";
    unsigned end = 0;
    for (const Place& place : output_places(Registers::of_kernel())) {
        if (place.bytes == 1) text += "selp.u32 %x0, 1, 0, " + place.name + "; st.global.u8 [%out+" + text_of(place.offset) + "], %x0;\n";
        else text += "st.global.b" + text_of(8 * place.bytes) + " [%out+" + text_of(place.offset) + "], " + place.name + ";\n";
        end = place.offset + place.bytes;
    }
    unsigned at = (end + 15) / 16 * 16;
    for (unsigned i = 0; i < local_bytes; i += 16, at += 16) text += "ld.local.v2.b64 {%a0, %a1}, [own+" + text_of(i) + "]; st.global.v2.b64 [%out+" + text_of(at) + "], {%a0, %a1};\n";
    for (unsigned i = 0; i < 32; i += 16, at += 16)
        text += "ld.shared.v2.b64 {%a0, %a1}, [%own_shared+" + text_of(i) + "]; st.global.v2.b64 [%out+" + text_of(at) + "], {%a0, %a1};\n";
    return text + "ret;\n}\n";
}

/// Functions have registers and local memory of their own. The last one calls itself as often as its first argument says.
void Builder::function(unsigned number) {
    const Registers& registers = Registers::of_function();
    in_function_ = true, may_leave_ = true;
    writer_.use(registers);
    const std::string first = initial(registers);
    Situation here;
    here.may_convert = false; // the call may stand under a condition
    block(2 + random_.below(4), here);
    std::string body;
    body.swap(text_);
    const bool recursive = number + 1 == functions;
    const std::string name = "f" + text_of(number);
    std::string& text = functions_;
    text += ".func (.param .b32 result) " + name + argument_list() + "\n{\n" + declarations(registers, local_bytes) +
            "mov.u32 %t, %tid.x; mov.u32 %threads, %ntid.x; mov.u32 %cta, %ctaid.x; ld.param.b64 %in, [data]; ld.param.b64 %scratch, [place]; and.b64 %start, %in, -4096;\n" + first +
            "ld.param.b32 %r0, [first]; ld.param.b64 %q0, [second]; ld.param.b32 %r1, [array+4]; ld.param.b64 %q1, [array+8]; st.param.b32 [result], %r1;\n" + body;
    if (recursive)
        text += "ld.param.b32 %x0, [first]; setp.eq.u32 %n, %x0, 0; @%n bra $bottom;\nsub.u32 %x0, %x0, 1;\n"
                "{ .param .b32 a0; .param .b64 a1; .param .b64 a2; .param .b64 a3; .param .align 8 .b8 a4[16]; .param .b32 r0;\n"
                "st.param.b32 [a0], %x0; st.param.b64 [a1], %q0; st.param.b64 [a2], %in; st.param.b64 [a3], %scratch; st.param.v2.b64 [a4], {%q1, %q2};\n"
                "call (r0), " + name + ", (a0, a1, a2, a3, a4);\nld.param.b32 %x0, [r0]; add.u32 %r1, %r1, %x0; }\n$bottom:\n";
    text += "xor.b32 %r0, %r0, %r1; xor.b32 %r0, %r0, %r2; cvt.u32.u64 %x0, %q0; add.u32 %r0, %r0, %x0; st.param.b32 [result], %r0;\nret;\n}\n";
    in_function_ = may_leave_ = false;
    writer_.use(Registers::of_kernel());
}

} // namespace fuzz
