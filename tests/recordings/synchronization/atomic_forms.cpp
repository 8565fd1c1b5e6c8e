// SPDX-License-Identifier: Apache-2.0
// atom and red: every operation and type, in every space, on edge values and random ones. A case's line is a hash of what the
// instructions return and leave in memory. Recorded on an H200 (2026-11-22): atomic_forms LIBCUDA --record > atomic_forms_h200.txt
#include "tests/recordings/random.h"
#include "tests/recordings/synchronization/cases.h"

#include <cstring>
#include <iterator>

using namespace recordings;

namespace {

constexpr unsigned tuples = 4096, threads = 256, slot = 16; ///< bytes of a tuple's old value, b, c

struct Form {
    std::string name; ///< opcode and words, without operands
    std::string type;
    unsigned bits = 32, count = 1;
    bool has_c = false, has_result = true, cache_hint = false;
};

bool is(const Form& form, const char* text) { return form.name.find(text) != std::string::npos; }

/// The letter of the registers that hold elements, and the type to move them by.
std::string registers(const Form& form) {
    if (form.bits == 128) return "%q";
    if (form.type == "f32") return "%f";
    if (form.type == "f64") return "%d";
    return form.bits == 16 ? "%h" : form.bits == 64 ? "%l" : "%r";
}

/// One register, or a braced list of them, from number `first` on.
std::string operand(const Form& form, unsigned first) {
    std::string text;
    for (unsigned i = 0; i < form.count; ++i) text += (i ? "," : "") + registers(form) + std::to_string(first + i);
    return form.count == 1 ? text : "{" + text + "}";
}

/// Loads or stores of all elements one by one.
std::string moves(const Form& form, bool load, const std::string& address, unsigned first) {
    std::string text;
    const std::string type = form.type == "f32" || form.type == "f64" ? "." + form.type : ".b" + std::to_string(form.bits);
    for (unsigned i = 0; i < form.count; ++i) {
        const std::string reg = registers(form) + std::to_string(first + i), at = "[" + address + "+" + std::to_string(i * form.bits / 8) + "]";
        text += load ? "ld.global" + type + " " + reg + "," + at + "; " : "st.global" + type + " " + at + "," + reg + "; ";
    }
    return text;
}

std::string kernel(const Form& form) {
    const bool shared = is(form, ".shared");
    return R"(.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .shared .align 16 .b8 places[4096];
    .reg .b16 %h<40>; .reg .b32 %r<40>; .reg .b64 %l<40>; .reg .f32 %f<40>; .reg .f64 %d<40>; .reg .b128 %q<20>; .reg .pred %p<2>;
    .reg .b32 %n<20>; .reg .b64 %a<20>; .reg .b32 %w<5>;
    ld.param.u64 %a1,[in]; ld.param.u64 %a2,[out];
    mov.u32 %n1,%tid.x; mov.u32 %n3,places; shl.b32 %n4,%n1,4; add.u32 %n3,%n3,%n4;
    createpolicy.fractional.L2::evict_last.b64 %a9,0f3f800000;
LOOP:
    mul.wide.u32 %a3,%n1,48; add.u64 %a4,%a1,%a3;
    mul.wide.u32 %a5,%n1,32; add.u64 %a6,%a2,%a5; add.u64 %a7,%a6,16;
    ld.global.v4.b32 {%w1,%w2,%w3,%w4},[%a4];
)" + std::string(shared ? "    st.shared.v4.b32 [%n3],{%w1,%w2,%w3,%w4};\n" : "    st.global.v4.b32 [%a7],{%w1,%w2,%w3,%w4};\n") +
           "    add.u64 %a8,%a4,16; " + moves(form, true, "%a8", 8) + (form.has_c ? "add.u64 %a8,%a4,32; " + moves(form, true, "%a8", 16) : "") +
           "\n    " + form.name + " " + (form.has_result ? operand(form, 0) + "," : "") + (shared ? "[%n3]," : "[%a7],") + operand(form, 8) +
           (form.has_c ? "," + operand(form, 16) : "") + (form.cache_hint ? ",%a9" : "") + ";\n    " +
           (form.has_result ? moves(form, false, "%a6", 0) : "") +
           (shared ? "\n    ld.shared.v4.b32 {%w1,%w2,%w3,%w4},[%n3]; st.global.v4.b32 [%a7],{%w1,%w2,%w3,%w4};" : "") + R"(
    add.u32 %n1,%n1,256; setp.lt.u32 %p1,%n1,4096; @%p1 bra LOOP;
    ret;
}
)";
}

std::uint64_t edge(const Form& form, Random& random) {
    static constexpr std::uint64_t halves[] = {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe55, 0x7fff, 0x3555, 0x0401};
    static constexpr std::uint64_t bfloats[] = {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffd5, 0x7fff, 0x3eab, 0x0081};
    static constexpr std::uint64_t floats[] = {0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffc12345, 0x7fffffff, 0x3eaaaaab, 0x807fffff, 0x00800001};
    static constexpr std::uint64_t doubles[] = {0, 1ull << 63, 1, 0x800000000000000f, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3fd5555555555555};
    static constexpr std::uint64_t integers[] = {0, 1, 2, 3, ~0ull, ~1ull, 0x7fffffff, 0x80000000, 0x80000001, 1ull << 63, (1ull << 63) - 1, 77, 0xffff, 0x8000};
    const auto pick = [&](const auto& list) { return list[random.below(static_cast<unsigned>(std::size(list)))]; };
    const bool half = is(form, ".f16"), bfloat = is(form, ".bf16");
    if (half) return pick(halves);
    if (bfloat) return pick(bfloats);
    if (form.type == "f32") return pick(floats);
    if (form.type == "f64") return pick(doubles);
    return pick(integers);
}

/// 16 bytes of elements; halves in pairs where elements are packed.
void fill(const Form& form, Random& random, bool edges, unsigned char* to) {
    const unsigned bytes = is(form, "f16x2") ? 2 : form.bits >= 64 ? 8 : form.bits / 8;
    for (unsigned at = 0; at < slot; at += bytes) {
        std::uint64_t value = edges ? edge(form, random) : random.bits();
        if (form.type == "f64" && !edges) value &= 0xffefffffffffffff; // which of two NaNs f64 sums give is another matter
        std::memcpy(to + at, &value, bytes);
    }
}

std::string run_form(Driver& driver, const Form& form) {
    void* module = driver.load(kernel(form));
    std::vector<unsigned char> in(tuples * 48), out(tuples * 32);
    Random random(hash_bytes(form.type.data(), form.type.size()) + form.bits);
    for (unsigned i = 0; i < tuples; ++i)
        for (unsigned part = 0; part < 3; ++part) {
            unsigned char* to = &in[i * 48 + part * 16];
            fill(form, random, i % 2 == 0, to);
            if (part == 1 && form.has_c && i % 3 != 0) std::memcpy(to, to - 16, 16); // comparisons that hold
        }
    Address from = driver.allocate(in.size()), to = driver.allocate(out.size());
    driver.upload(from, in.data(), in.size());
    driver.call<Address, unsigned char, std::size_t>("cuMemsetD8_v2", to, 0, out.size());
    void* parameters[] = {&from, &to};
    driver.launch(module, "k", 1, threads, 1, parameters);
    driver.call("cuCtxSynchronize");
    driver.download(out.data(), to, out.size());
    driver.call<Address>("cuMemFree_v2", from);
    driver.call<Address>("cuMemFree_v2", to);
    driver.unload(module);
    return hex(hash_bytes(out.data(), out.size()));
}

struct Operation {
    const char* words;
    std::vector<std::pair<const char*, unsigned>> types;
    bool has_c = false, has_red = true;
};

std::vector<Form> forms() {
    std::vector<Form> all;
    const std::vector<Operation> operations = {
        {".and", {{"b32", 32}, {"b64", 64}}}, {".or", {{"b32", 32}, {"b64", 64}}}, {".xor", {{"b32", 32}, {"b64", 64}}},
        {".add", {{"u32", 32}, {"s32", 32}, {"u64", 64}, {"f32", 32}, {"f64", 64}}}, {".inc", {{"u32", 32}}}, {".dec", {{"u32", 32}}},
        {".min", {{"u32", 32}, {"s32", 32}, {"u64", 64}, {"s64", 64}}}, {".max", {{"u32", 32}, {"s32", 32}, {"u64", 64}, {"s64", 64}}},
        {".add.noftz", {{"f16", 16}, {"f16x2", 32}, {"bf16", 16}, {"bf16x2", 32}}},
        {".exch", {{"b32", 32}, {"b64", 64}, {"b128", 128}}, false, false}, {".cas", {{"b16", 16}, {"b32", 32}, {"b64", 64}, {"b128", 128}}, true, false}};
    for (const Operation& operation : operations)
        for (const auto& [type, bits] : operation.types)
            for (const char* space : {"", ".global", ".shared", ".shared::cta", ".shared::cluster"}) {
                const std::string words = std::string(space) + operation.words + "." + type;
                all.push_back({"atom" + words, type, bits, 1, operation.has_c});
                if (operation.has_red) all.push_back({"red" + words, type, bits, 1, false, false});
            }
    const std::pair<const char*, unsigned> packed[] = {{"f16", 16}, {"bf16", 16}, {"f16x2", 32}, {"bf16x2", 32}};
    for (const unsigned count : {2u, 4u, 8u}) {
        const std::string vector = ".v" + std::to_string(count);
        for (const bool result : {true, false}) {
            const std::string opcode = result ? "atom.global" : "red.global";
            if (count < 8) all.push_back({opcode + ".add" + vector + ".f32", "f32", 32, count, false, result});
            for (const char* op : {".add", ".min", ".max"})
                for (const auto& [type, bits] : packed)
                    if (bits * count <= 128) all.push_back({opcode + op + ".noftz" + vector + "." + type, type, bits, count, false, result});
        }
    }
    for (const char* order : {".relaxed.cta", ".acquire.cluster", ".release.gpu", ".acq_rel.sys"}) {
        all.push_back({"atom" + std::string(order) + ".global.add.u32", "u32", 32});
        all.push_back({"atom" + std::string(order) + ".shared.cas.b64", "b64", 64, 1, true});
    }
    for (const char* order : {".relaxed.cluster", ".release.sys"}) all.push_back({"red" + std::string(order) + ".max.s32", "s32", 32, 1, false, false});
    all.push_back({"atom.global.add.L2::cache_hint.u32", "u32", 32, 1, false, true, true});
    all.push_back({"red.global.xor.L2::cache_hint.b64", "b64", 64, 1, false, false, true});
    all.push_back({"atom.global.exch.L2::cache_hint.b128", "b128", 128, 1, false, true, true});
    all.push_back({"red.global.add.L2::cache_hint.v4.f32", "f32", 32, 4, false, false, true});
    return all;
}

} // namespace

int main(int count, char** arguments) {
    std::vector<Case> cases;
    for (const Form& form : forms())
        cases.push_back({form.name, [form](Driver& driver) { return run_form(driver, form); }});
    return run_cases(count, arguments, cases);
}
