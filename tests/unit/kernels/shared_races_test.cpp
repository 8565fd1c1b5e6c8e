// SPDX-License-Identifier: Apache-2.0
// Words of shared memory that are read behind a barrier and written again with no other between, as in block reductions
// that are used twice: all warps read before one writes, as on a GPU.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {
constexpr unsigned threads = 200; ///< seven warps, the last one in part
}

TEST_CASE("all threads read a word before the next round writes it", "[kernels][barriers]") {
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
        setp.ne.u32 %p0, %r60, 0;
    round:
        mad.lo.u32 %r3, %r1, 100, 7;
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [words + 16];
        mad.lo.u32 %r2, %r2, 31, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r2;
    )", {1}, {threads}, {out.address()}, ".shared .align 4 .b8 words[32];\n");
    std::uint32_t expected = 0;
    for (std::uint32_t round = 0; round < 4; ++round) expected = expected * 31 + round * 100 + 7;
    CHECK(out.values() == std::vector<std::uint32_t>(threads, expected));
}

TEST_CASE("all warps read the warps' parts before the next round writes them", "[kernels][barriers]") {
    constexpr unsigned warps = (threads + 31) / 32;
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r10, words;
        and.b32 %r5, %r60, 31;
        shr.u32 %r6, %r60, 5;
        shl.b32 %r7, %r6, 2;
        add.u32 %r7, %r10, %r7;
        shl.b32 %r8, %r5, 2;
        add.u32 %r8, %r10, %r8;
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
        setp.ne.u32 %p0, %r5, 0;
        st.shared.u32 [%r8], 0;
        bar.sync 0;
    round:
        mad.lo.u32 %r3, %r1, 100, %r6;
        @%p0 bra meet;
        st.shared.u32 [%r7], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [%r8];
        mad.lo.u32 %r2, %r2, 31, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r2;
    )", {1}, {threads}, {out.address()}, ".shared .align 4 .b8 words[128];\n");
    const auto results = out.values();
    for (std::uint32_t i = 0; i < threads; ++i) {
        INFO(i);
        std::uint32_t expected = 0;
        for (std::uint32_t round = 0; round < 4; ++round)
            expected = expected * 31 + (i % 32 < warps ? round * 100 + i % 32 : 0);
        CHECK(results[i] == expected);
    }
}

namespace {

/// Each of four rounds: some thread writes `value of the round` to a word, a barrier, all read it; all threads' hashes of
/// what they read must be this.
std::uint32_t hash_of_rounds() {
    std::uint32_t hash = 0;
    for (std::uint32_t round = 0; round < 4; ++round) hash = hash * 31 + round * 100 + 7;
    return hash;
}

/// %r1 counts four rounds, %r3 is what the round writes, %p0 is set in all threads but the first; `round` has the rest and
/// leaves what it read in %r4.
void check_rounds(const std::string& round, const std::string& globals, std::uint32_t dynamic_shared = 0,
                  const std::string& before = "") {
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
        setp.ne.u32 %p0, %r60, 0;
    )" + before + R"(
    round:
        mad.lo.u32 %r3, %r1, 100, 7;
    )" + round + R"(
        mad.lo.u32 %r2, %r2, 31, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r2;
    )", {1}, {threads}, {out.address()}, globals, dynamic_shared);
    CHECK(out.values() == std::vector<std::uint32_t>(threads, hash_of_rounds()));
}

const std::string words = ".shared .align 4 .b8 words[1024];\n";

} // namespace

TEST_CASE("a word is read behind the guard of a loop, and in the loop", "[kernels][barriers][races]") {
    // What compilers make of `x = word; for (i = tid; i < n; i += ntid) use(x)`, and of a loop that keeps the read. No
    // thread goes round more than once more than another; some don't go round at all.
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        bar.sync 0;
        mov.u32 %r4, %r3;
        setp.ge.u32 %p2, %r60, 150;
        @%p2 bra done;
        mov.u32 %r5, %r60;
        ld.shared.u32 %r6, [words + 16];
    walk:
        min.u32 %r4, %r4, %r6;
        add.u32 %r5, %r5, 64;
        setp.lt.u32 %p2, %r5, 150;
        @%p2 bra walk;
    done:
    )", words);
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        bar.sync 0;
        mov.u32 %r4, %r3;
        mov.u32 %r5, %r60;
    walk:
        ld.volatile.shared.u32 %r6, [words + 16];
        min.u32 %r4, %r4, %r6;
        add.u32 %r5, %r5, 64;
        setp.lt.u32 %p2, %r5, 300;
        @%p2 bra walk;
    )", words);
}

TEST_CASE("all threads add the warps' parts in a loop of four at a time", "[kernels][barriers][races]") {
    constexpr std::uint32_t warps = (threads + 31) / 32;
    Array<std::uint32_t> out(threads);
    const std::string sum = R"({
        @%p0 bra meet;
        st.shared.u32 [%r10], %r3;
    meet:
        bar.sync 0;
        mov.u32 %r4, 0;
        mov.u32 %r5, words;
        mov.u32 %r6, 0;
    four:
        ld.shared.u32 %r7, [%r5];
        add.u32 %r4, %r4, %r7;
        ld.shared.u32 %r7, [%r5 + 4];
        add.u32 %r4, %r4, %r7;
        ld.shared.u32 %r7, [%r5 + 8];
        add.u32 %r4, %r4, %r7;
        ld.shared.u32 %r7, [%r5 + 12];
        add.u32 %r4, %r4, %r7;
        add.u32 %r5, %r5, 16;
        add.u32 %r6, %r6, 4;
        setp.ne.u32 %p1, %r6, 8;
        @%p1 bra four;
    })";
    run(R"(
        shl.b32 %r8, %r60, 2;
        mov.u32 %r9, words;
        setp.gt.u32 %p0, %r60, 7;
        add.u32 %r10, %r9, %r8;
        @!%p0 st.shared.u32 [%r10], 0;
        bar.sync 0;
        and.b32 %r8, %r60, 31;
        setp.ne.u32 %p0, %r8, 0;
        shr.u32 %r8, %r60, 5;
        mov.u32 %r3, %r8;
        shl.b32 %r8, %r8, 2;
        add.u32 %r10, %r9, %r8;
    )" + sum + "add.u32 %r3, %r4, %r3;" + sum + R"(
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r4;
    )", {1}, {threads}, {out.address()}, words);
    const std::uint32_t first = warps * (warps - 1) / 2;
    CHECK(out.values() == std::vector<std::uint32_t>(threads, warps * first + first));
}

TEST_CASE("words in dynamic shared memory, by generic addresses and by atomics", "[kernels][barriers][races]") {
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [dynamic + 64], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [dynamic + 64];
    )", ".extern .shared .align 4 .b8 dynamic[];\n", 128);
    check_rounds(R"(
        @%p0 bra meet;
        st.u32 [%l1 + 64], %r3;
    meet:
        bar.sync 0;
        ld.u32 %r4, [%l1 + 64];
    )", words, 0, "mov.u64 %l1, words; cvta.shared.u64 %l1, %l1;");
    check_rounds(R"(
        @%p0 bra meet;
        atom.shared.exch.b32 %r5, [words], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [words];
    )", words);
    // Read by an atomic of all threads, reset by one.
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [words], %r3;
    meet:
        bar.sync 0;
        atom.shared.max.u32 %r4, [words], 1;
    )", words);
}

TEST_CASE("another warp writes each time", "[kernels][barriers][races]") {
    check_rounds(R"(
        mul.lo.u32 %r5, %r1, 37;
        setp.ne.u32 %p0, %r60, %r5;
        @%p0 bra meet;
        st.shared.u32 [words + 4], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [words + 4];
    )", words);
}

TEST_CASE("threads that have exited are not waited for between a read and a write", "[kernels][barriers][races]") {
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r1, 0;
        mov.u32 %r2, 0;
        setp.ge.u32 %p0, %r60, 77;
        @%p0 bra end;
        setp.ne.u32 %p0, %r60, 0;
    round:
        mad.lo.u32 %r3, %r1, 100, 7;
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [words + 16];
        mad.lo.u32 %r2, %r2, 31, %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r2;
    end:
    )", {1}, {threads}, {out.address()}, words);
    std::vector<std::uint32_t> expected(threads, 0);
    std::fill_n(expected.begin(), 77, hash_of_rounds());
    CHECK(out.values() == expected);
}

TEST_CASE("each thread takes its neighbour's word in place", "[kernels][barriers][races]") {
    Array<std::uint32_t> out(threads);
    run(R"(
        mov.u32 %r10, words;
        mad.lo.u32 %r5, %r60, 4, %r10;
        st.shared.u32 [%r5], %r60;
        add.u32 %r6, %r60, 163;
        rem.u32 %r6, %r6, 200;
        mad.lo.u32 %r6, %r6, 4, %r10;
        mov.u32 %r1, 0;
    round:
        bar.sync 0;
        ld.shared.u32 %r4, [%r6];
        st.shared.u32 [%r5], %r4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 3;
        @%p1 bra round;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r4;
    )", {1}, {threads}, {out.address()}, words);
    const auto results = out.values();
    for (std::uint32_t i = 0; i < threads; ++i) {
        INFO(i);
        CHECK(results[i] == (i + 3 * 163) % threads);
    }
}

TEST_CASE("kernels on fibers: barriers with results, named ones, and such that not all meet",
          "[kernels][barriers][races][order]") {
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        barrier.cta.red.popc.u32 %r5, 0, %p0;
        ld.shared.u32 %r4, [words + 16];
    )", words);
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        bar.sync 3;
        ld.shared.u32 %r4, [words + 16];
    )", words);
    check_rounds(R"(
        setp.gt.u32 %p2, %r60, 40;
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
    meet:
        @%p2 bra elsewhere;
        barrier.sync 0;
        bra met;
    elsewhere:
        barrier.sync 0;
    met:
        ld.shared.u32 %r4, [words + 16];
    )", words);
}

TEST_CASE("no thread is kept from what another waits for", "[kernels][barriers][races][order]") {
    // The second warp waits for a word that the first one writes behind its read and its write.
    check_rounds(R"(
        @%p0 bra meet;
        st.shared.u32 [words + 16], %r3;
        mov.u32 %r5, 0;
        st.volatile.shared.u32 [words + 20], %r5;
    meet:
        bar.sync 0;
        ld.shared.u32 %r4, [words + 16];
        setp.ne.u32 %p2, %r60, 40;
        @%p2 bra past;
    wait:
        ld.volatile.shared.u32 %r6, [words + 20];
        setp.ne.u32 %p2, %r6, %r3;
        @%p2 bra wait;
    past:
        @%p0 bra done;
        mov.u32 %r5, 1234;
        st.shared.u32 [words + 16], %r5;
        st.volatile.shared.u32 [words + 20], %r3;
    done:
        bar.sync 0;
    )", words);
}

TEST_CASE("lanes that store in an arm come to the vote behind it", "[kernels][barriers][races]") {
    constexpr unsigned full_warps = 64;
    Array<std::uint32_t> out(full_warps);
    run(R"(
        mov.u32 %r10, words;
        mad.lo.u32 %r1, %r60, 4, %r10;
        st.shared.u32 [%r1], %r60;
        bar.sync 0;
        ld.global.u32 %r2, [zero];
        add.u32 %r2, %r2, %r1;
        ld.shared.u32 %r3, [%r2]; // its own word, which only the launch knows
        and.b32 %r4, %r60, 1;
        setp.ne.u32 %p0, %r4, 0;
        @!%p0 bra skip;
        st.volatile.shared.u32 [%r1], 1000;
    skip:
        vote.sync.ballot.b32 %r5, %p0, 0xffffffff;
        add.u32 %r3, %r3, %r5;
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r3;
    )", {1}, {full_warps}, {out.address()}, ".shared .align 4 .b8 words[256];\n.global .u32 zero = 0;\n");
    const auto results = out.values();
    for (std::uint32_t i = 0; i < full_warps; ++i) CHECK(results[i] == 0xaaaaaaaa + i);
}

TEST_CASE("a scan in place: threads read what others write in the same arm", "[kernels][barriers][races][order]") {
    for (const std::string step : {"add.u32 %r1, %r1, %r1;", "add.u32 %r1, %r1, 7;"}) {
        INFO(step);
        Array<std::uint32_t> out(threads);
        run(R"(
        mov.u32 %r10, words;
        mad.lo.u32 %r5, %r60, 4, %r10;
        mad.lo.u32 %r2, %r60, 3, 1;
        st.shared.u32 [%r5], %r2;
        mov.u32 %r1, 1;
    round:
        bar.sync 0;
        setp.lt.u32 %p0, %r60, %r1;
        @%p0 bra meet;
        sub.u32 %r6, %r60, %r1;
        mad.lo.u32 %r6, %r6, 4, %r10;
        ld.shared.u32 %r4, [%r6];
        ld.shared.u32 %r7, [%r5];
        add.u32 %r7, %r7, %r4;
        st.shared.u32 [%r5], %r7;
    meet:
        bar.sync 0;
    )" + step + R"(
        setp.lt.u32 %p1, %r1, 200;
        @%p1 bra round;
        ld.shared.u32 %r4, [%r5];
        mad.wide.u32 %l0, %r60, 4, %l60;
        st.global.u32 [%l0], %r4;
    )", {1}, {threads}, {out.address()}, words);
        std::vector<std::uint32_t> expected(threads);
        for (std::uint32_t i = 0; i < threads; ++i) expected[i] = i * 3 + 1;
        for (std::uint32_t by = 1; by < threads; by = step.find("7;") == step.npos ? by * 2 : by + 7)
            for (std::uint32_t i = threads; i-- > by;) expected[i] += expected[i - by];
        CHECK(out.values() == expected);
    }
}

TEST_CASE("a word of the block in global memory is read by all before one writes it again", "[kernels][barriers][races]") {
    Array<std::uint32_t> scratch(4);
    check_rounds(R"(
        @%p0 bra meet;
        st.global.u32 [%l1], %r3;
    meet:
        bar.sync 0;
        ld.global.u32 %r4, [%l1];
    )", "", 0, "mul.wide.u32 %l1, %r61, 4; add.u64 %l1, %l1, " + std::to_string(scratch.address()) + ";");
}

TEST_CASE("functions that are called for real read a word and write it", "[kernels][barriers][races][order]") {
    // Through pointers: one that writes, waits and reads, and one for each of them.
    const std::string whole = ".visible .func (.reg .b32 r) f(.reg .b32 a) { .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x;\n"
                              "setp.eq.u32 p, t, 0; @p st.shared.u32 [words + 8], a; bar.sync 0;\n"
                              "ld.shared.u32 r, [words + 8]; }\n";
    check_rounds("call (%r4), %l1, (%r3), shape;", words + whole, 0,
                 "shape: .callprototype (.reg .b32 _) _ (.reg .b32 _); mov.u64 %l1, f;");
    const std::string writer = ".visible .func (.reg .b32 r) f(.reg .b32 a) { .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x;\n"
                               "setp.eq.u32 p, t, 0; @p st.shared.u32 [words + 8], a; mov.u32 r, a; }\n";
    check_rounds("call (%r5), %l1, (%r3), shape; bar.sync 0; ld.shared.u32 %r4, [words + 8];", words + writer, 0,
                 "shape: .callprototype (.reg .b32 _) _ (.reg .b32 _); mov.u64 %l1, f;");
    const std::string reader = ".visible .func (.reg .b32 r) f(.reg .b32 a) { ld.shared.u32 r, [words + 8]; }\n";
    check_rounds("@%p0 bra meet; st.shared.u32 [words + 8], %r3; meet: bar.sync 0; call (%r4), %l1, (%r3), shape;",
                 words + reader, 0, "shape: .callprototype (.reg .b32 _) _ (.reg .b32 _); mov.u64 %l1, f;");
}

TEST_CASE("a warp comes to a write by one of two ways, and some of its threads don't", "[kernels][barriers]") {
    constexpr unsigned two_warps = 64;
    for (unsigned negative = 0; negative < 4; ++negative) { // warps whose word is negative
        const std::vector<std::uint32_t> words{negative & 1 ? ~0u : 0, negative & 2 ? ~0u : 0};
        Array<std::uint32_t> out(two_warps), in(words);
        run(R"(
            mov.u32 %r1, board; mad.lo.u32 %r1, %r60, 4, %r1; st.shared.u32 [%r1], %r60; bar.sync 0;
            and.b32 %r5, %r60, 3; ld.global.u32 %r6, [%l61]; setp.eq.u32 %p1, %r6, 7; mov.u32 %r4, 0; mov.u32 %r9, 0;
            setp.eq.u32 %p0, %r6, 1; @%p0 bra ROUND; xor.b32 %r3, %r1, 128; ld.shared.u32 %r4, [%r3];
        ROUND:
            @%p1 bra END;
            sub.u32 %r5, %r5, 1; setp.gt.s32 %p2, %r5, 0; @%p2 bra ROUND;
            shr.u32 %r7, %r60, 5; mad.wide.u32 %l1, %r7, 4, %l61; ld.global.u32 %r8, [%l1];
            setp.lt.s32 %p3, %r8, 0; mov.u32 %r9, 5; @%p3 bra JOIN;
            mov.u32 %r9, 4; setp.eq.s32 %p4, %r5, -1; @%p4 bra END;
        JOIN:
            st.shared.u32 [%r1], %r9; ld.shared.u32 %r9, [%r1]; add.u32 %r9, %r9, 100;
        END:
            add.u32 %r4, %r4, %r9; mad.wide.u32 %l1, %r60, 4, %l60; st.global.u32 [%l1], %r4;
        )", {1}, {two_warps}, {out.address(), in.address()}, ".shared .align 256 .b8 board[256];\n");
        const auto results = out.values();
        for (unsigned i = 0; i < two_warps; ++i) {
            const bool is_negative = negative >> i / 32 & 1, leaves = !is_negative && i % 4 == 0;
            CHECK(results[i] == (i ^ 32) + (is_negative ? 5 : 4) + (leaves ? 0 : 100));
        }
    }
}
