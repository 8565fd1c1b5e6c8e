// SPDX-License-Identifier: Apache-2.0
// Hostile input: valid files cut short and mutated with fixed seeds. Nothing is expected of the
// verdict, only that there is one: no crash, no endless loop, and DiagnosticError as the only
// exception.
#include "frontend/module_loader.h"
#include "tests/reject/text_files.h"

#include <catch2/catch.hpp>

#include <random>

using namespace ptarmigan;

namespace {

/// Binds everything; true if the text was accepted.
bool survives(const std::string& text) {
    const auto loader =
        ptx::ModuleLoader::load(text, "mutant", {.bind_all_bodies = true, .max_errors = 20});
    loader->diagnostics().render_all();
    if (!loader->ok()) return false;
    ptx::print(*loader);
    return true;
}

/// Valid text with a bit of everything: the base of the mutations even where tests/programs/ptx is
/// missing.
const char* const everything = R"(.version 9.0
.target sm_90
.address_size 64
.file 1 "a.cu"
.global .align 8 .b8 buffer[64] = {1, 2, 3};
.global .u64 table[2] = {generic(buffer)+4, buffer};
.const .v2 .f32 pair = {1.0, 0f40000000};
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 s[16]) { .reg .b32 %t; ld.param.b32 %t, [a]; st.param.b32 [r], %t; ret; }
.visible .entry k(.param .u64 .ptr .global .align 4 p, .param .u32 n) .maxntid 256, 1, 1 .minnctapersm 2
{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %d<9>; .reg .v4 .f32 v;
    .local .align 8 .b8 stack[32];
    .loc 1 3 5
    ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.and.s32 %p1|%p2, %r5, %r1, %p3;
    @%p1 bra $done;
    targets: .branchtargets $one, $done;
    brx.idx %r5, targets;
$one:
    { .param .b32 a; .param .align 8 .b8 s[16]; .param .b32 r;
      st.param.b32 [a], %r1; st.param.v2.b32 [s+8], {%r1, 7};
      call.uni (r), f, (a, s); ld.param.b32 %r6, [r]; }
    proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]);
    ld.global.v4.f32 v, [%d1+16]; mov.f32 %f1, v.w;
    fma.rn.f32 %f2, %f1, 0f3F800000, -1.5;
    mov.b64 {%r7, _}, %d1; mov.b32 %r8, {%h1, %h2};
    atom.global.add.u32 %r1, [%d1+-4], (1<<3)|2;
    shfl.sync.bfly.b32 %r2|%p2, %r3, 16, 31, -1;
    @!%p2 st.shared.u32 [dynamic+4], %r2;
    .pragma "nounroll";
    bar.sync 0;
$done:
    ret;
}
)";

} // namespace

TEST_CASE("mutation: the base text is valid") {
    CHECK(survives(everything));
}

TEST_CASE("mutation: every prefix of a valid text is survived") {
    const std::string text = everything;
    for (std::size_t length = 0; length < text.size(); ++length) survives(text.substr(0, length));
    SUCCEED();
}

TEST_CASE("mutation: removed, repeated and changed bytes are survived") {
    const std::string text = everything;
    std::mt19937 random(20261121);
    static constexpr char characters[] = "{}()[]<>,;:=+-*/%!~&|^?@.\"'#_$ \n\t09afxX\x01\xff";
    const std::string bytes(characters, sizeof characters); // the NUL belongs to them;
    for (int round = 0; round < 4000; ++round) {
        std::string mutant = text;
        for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
            const std::size_t at = random() % mutant.size();
            switch (random() % 4) {
            case 0: mutant[at] = bytes[random() % bytes.size()]; break;
            case 1: mutant.erase(at, 1 + random() % 8); break;
            case 2: mutant.insert(at, 1, bytes[random() % bytes.size()]); break;
            default:
                mutant.insert(at, mutant.substr(random() % mutant.size(), 1 + random() % 40));
                break;
            }
        }
        survives(mutant);
    }
    SUCCEED();
}

TEST_CASE("mutation: swapped tokens of real programs are survived") {
    std::mt19937 random(7);
    for (const test::TextFile& file : test::ptx_files(PTARMIGAN_PTX_DIR)) {
        INFO(file.name);
        CHECK(survives(file.text));
        for (int round = 0; round < 20 && file.text.size() < 200000; ++round) {
            std::string mutant = file.text;
            const std::size_t from = random() % mutant.size(), to = random() % mutant.size();
            mutant.insert(to, mutant.substr(from, 1 + random() % 12));
            mutant.erase(random() % mutant.size(), 1 + random() % 6);
            survives(mutant);
        }
    }
}

TEST_CASE("mutation: nesting and sizes meant to exhaust memory or stack are refused") {
    const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
    auto in_body = [&](const std::string& body) {
        return head + ".entry k()\n{\n" + body + "\nret;\n}\n";
    };
    const std::string deep(100000, '(');
    CHECK_FALSE(survives(in_body(".reg .b32 %r; mov.u32 %r, " + deep + "1;")));
    CHECK_FALSE(survives(in_body(".reg .b32 %r; mov.u32 %r, " + std::string(100000, '-') + "1;")));
    CHECK_FALSE(
        survives(in_body(".reg .b32 %r; ld.global.u32 %r, " + std::string(100000, '[') + "1;")));
    CHECK_FALSE(survives(in_body(std::string(100000, '{'))));
    CHECK_FALSE(survives(in_body(".reg .b32 %r<4000000000>;")));
    CHECK_FALSE(survives(in_body(".reg .b32 %r; mov.u32 %r, " + std::string(5000, '9') + ";")));
    CHECK_FALSE(survives(head + ".global .u32 x = " + std::string(100000, '{') + ";"));
    CHECK_FALSE(survives(head + ".global .b8 x[99999999999999999999];"));
    CHECK_FALSE(survives(head + ".global .b8 x[4000000000][4000000000] = {{1}};"));
    CHECK_FALSE(survives(head + ".global .u32 x<4000000000>;"));
    std::string conditional = "mov.u32 %r, ";
    for (int i = 0; i < 100000; ++i) conditional += "1?1:";
    CHECK_FALSE(survives(in_body(".reg .b32 %r; " + conditional + "1;")));
    CHECK_FALSE(survives(in_body("add" + std::string(100000, '.') + "u32;")));
    std::string words = "add";
    for (int i = 0; i < 1000; ++i) words += ".u32";
    CHECK_FALSE(survives(in_body(words + " %r, %r, %r;")));
}
