// SPDX-License-Identifier: Apache-2.0
// Tables of 256 words in shared memory (llvm/table_look_ups.h): looked up in registers on CPUs where that is quicker
// than gathers, as long as nothing may write them.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 128, rounds = 5;

enum class Kind { plain, written, late };

/// Each thread mixes a word through `look_ups` look-ups a round. The table lies behind another variable. Written: the first half of the table is new in each round; late: an index comes out of the look-up before.
std::string mixing_text(unsigned look_ups, Kind kind, bool guarded) {
    const auto number = [](unsigned n) { return std::to_string(n); };
    std::string text = "mov.u32 %r7, before; st.shared.u32 [%r7], 7; mov.u32 %r1, table; shl.b32 %r2, %r60, 2; add.u32 %r3, %r1, %r2; mul.wide.u32 %l1, %r60, 4; add.u64 %l2, %l60, %l1;\n"
                       "ld.global.u32 %r4, [%l2]; st.shared.u32 [%r3], %r4; ld.global.u32 %r4, [%l2+512]; st.shared.u32 [%r3+512], %r4;\n"
                       "bar.sync 0;\nadd.u64 %l3, %l61, %l1; ld.global.u32 %r10, [%l3]; mov.u32 %r5, 0;\n";
    if (guarded) text += "and.b32 %r6, %r60, 3; setp.eq.u32 %p2, %r6, 1; @%p2 bra done;\n";
    text += "loop:\nmov.u32 %r11, %r5;\n";
    for (unsigned i = 0; i < look_ups; ++i) {
        const std::string source = kind == Kind::late && i % 3 == 2 ? "%r11" : "%r10";
        // Bits 8 * (i % 4) to + 7, times four, in one of the two ways that compilers write.
        const unsigned first = i % 4 * 8;
        if (first < 2)
            text += "shl.b32 %r12, " + source + ", 2; and.b32 %r12, %r12, 1020;\n";
        else if (i % 8 < 4)
            text += "shr.u32 %r12, " + source + ", " + number(first - 2) + "; and.b32 %r12, %r12, 1020;\n";
        else
            text += "bfe.u32 %r12, " + source + ", " + number(first) + ", 8; shl.b32 %r12, %r12, 2;\n";
        text += "add.u32 %r12, %r12, %r1; ld.shared.u32 %r13, [%r12]; shf.l.wrap.b32 %r13, %r13, %r13, " + number(i + 1) + "; xor.b32 %r11, %r11, %r13;\n";
    }
    text += "xor.b32 %r10, %r10, %r11;\n";
    if (kind == Kind::written) text += "bar.sync 0; st.shared.u32 [%r3], %r10; bar.sync 0;\n";
    text += "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, " + number(rounds) + "; @%p1 bra loop;\ndone:\nst.global.u32 [%l3], %r10;\n";
    return text;
}

std::uint32_t rotated(std::uint32_t word, unsigned by) {
    return word << by | word >> (32 - by);
}

} // namespace

TEST_CASE("tables of words in shared memory", "[kernels][barriers][memory][products]") {
    const unsigned look_ups = GENERATE(1u, 3u, 4u, 7u, 8u, 10u), words_before = GENERATE(0u, 5u);
    const Kind kind = GENERATE(Kind::plain, Kind::written, Kind::late);
    const bool guarded = GENERATE(false, true);
    if (guarded && kind == Kind::written) return; // threads that leave would not come to the barrier
    CAPTURE(look_ups, words_before, int(kind), guarded);
    std::mt19937 random(look_ups);
    std::vector<std::uint32_t> table(256), words(threads);
    for (std::uint32_t& word : table) word = std::uint32_t(random());
    for (std::uint32_t& word : words) word = std::uint32_t(random());
    Array<std::uint32_t> device_table(table), device_words(words);
    run(mixing_text(look_ups, kind, guarded), {1}, {threads}, {device_table.address(), device_words.address()},
        ".shared .align 4 .b32 before[" + std::to_string(words_before + 1) + "];\n.shared .align 4 .b32 table[256];\n");
    for (unsigned round = 0; round < rounds; ++round) {
        for (unsigned t = 0; t < threads; ++t) {
            if (guarded && t % 4 == 1) continue;
            std::uint32_t mixed = round;
            for (unsigned i = 0; i < look_ups; ++i) {
                const std::uint32_t source = kind == Kind::late && i % 3 == 2 ? mixed : words[t];
                mixed ^= rotated(table[source >> i % 4 * 8 & 255], i + 1);
            }
            words[t] ^= mixed;
        }
        if (kind == Kind::written) std::copy(words.begin(), words.end(), table.begin());
    }
    CHECK(device_words.values() == words);
}
