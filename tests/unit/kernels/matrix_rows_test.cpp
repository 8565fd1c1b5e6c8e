// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix and movmatrix (manual 9.7.14.5.15 to 17) in kernels of any width.
#include "kernel.h"
#include "tests/recordings/random.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned lanes = 32, block = 64, shared_words = 2048; ///< two warps; each has half of the shared memory

const std::string shared = ".shared .align 16 .b32 memory[" + std::to_string(shared_words) + "];\n";

std::string to_string(unsigned value) {
    return std::to_string(value);
}

std::string registers(unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += (i ? ", %r" : "%r") + to_string(20 + i);
    return text + "}";
}

/// %r10: where the thread's row is (p1 holds its place), in the window; %l10: likewise, generic.
const std::string rows_of_threads = "mul.wide.u32 %l1, %r60, 4; add.u64 %l2, %l1, %l61; ld.global.u32 %r9, [%l2];\n"
                                    "mov.u32 %r10, memory; add.u32 %r10, %r10, %r9; cvt.u64.u32 %l10, %r10; cvta.shared.u64 %l10, %l10;\n";

/// Copies between memory (p0, all words) and shared memory, by all threads.
std::string copy(bool to_shared) {
    const std::string move = to_shared ? "ld.global.u32 %r1, [%l3]; st.shared.u32 [%r2], %r1;\n"
                                       : "ld.shared.u32 %r1, [%r2]; st.global.u32 [%l3], %r1;\n";
    return std::string("bar.sync 0; mov.u32 %r3, %r60;\n") + (to_shared ? "IN" : "OUT") +
           ": shl.b32 %r4, %r3, 2; mov.u32 %r2, memory; add.u32 %r2, %r2, %r4;\n"
           "mul.wide.u32 %l3, %r3, 4; add.u64 %l3, %l3, %l60;\n" +
           move + "add.u32 %r3, %r3, " + to_string(block) + "; setp.lt.u32 %p1, %r3, " + to_string(shared_words) + "; @%p1 bra " +
           (to_shared ? "IN" : "OUT") + ";\nbar.sync 0;\n";
}

/// Rows of 16 bytes, all different, at random places of the warp's half.
Words random_rows(recordings::Random& random, bool may_coincide) {
    Words places(block);
    for (unsigned warp = 0; warp < 2; ++warp) {
        std::vector<unsigned> free(shared_words / 8);
        for (unsigned i = 0; i < free.size(); ++i) free[i] = warp * shared_words * 2 + 16 * i;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const auto i = random.below(std::uint32_t(free.size()));
            places[warp * lanes + lane] = free[i];
            if (!may_coincide) free.erase(free.begin() + i);
        }
    }
    return places;
}

std::uint32_t half(const Words& words, unsigned index) {
    return words[index / 2] >> 16 * (index % 2) & 0xffff;
}

/// The manual's rule: half j of lane 4 g + t is element (g, 2 t + j), transposed (2 t + j, g).
unsigned row_of(unsigned lane, unsigned j, bool transposed) {
    return transposed ? lane % 4 * 2 + j : lane / 4;
}
unsigned column_of(unsigned lane, unsigned j, bool transposed) {
    return transposed ? lane / 4 : lane % 4 * 2 + j;
}

} // namespace

TEST_CASE("ldmatrix: rows of shared memory") {
    recordings::Random random(1);
    Words memory(shared_words);
    for (std::uint32_t& word : memory) word = std::uint32_t(random.bits());
    for (const unsigned count : {1u, 2u, 4u})
        for (const bool transposed : {false, true})
            for (const bool generic : {false, true}) {
                INFO(count << transposed << generic);
                Words places = random_rows(random, true);
                // Nobody looks at these lanes' addresses.
                for (unsigned thread = 0; thread < block; ++thread)
                    if (thread % lanes >= 8 * count) places[thread] = 0x40001 + thread;
                const Array<std::uint32_t> in(memory), rows(places), out(std::size_t(block) * count);
                const std::string words = std::string("ldmatrix.sync.aligned.m8n8.x") + to_string(count) + (transposed ? ".trans" : "") +
                                          (generic ? ".b16 " : ".shared.b16 ") + registers(count) + (generic ? ", [%l10];\n" : ", [%r10];\n");
                std::string stores = "add.u64 %l4, %l1, %l62;\n";
                for (unsigned m = 0; m < count; ++m)
                    stores += "st.global.u32 [%l4+" + to_string(m * block * 4) + "], %r" + to_string(20 + m) + ";\n";
                run(copy(true) + rows_of_threads + words + stores, {1}, {block}, {in.address(), rows.address(), out.address()}, shared);
                const Words result = out.values();
                for (unsigned m = 0; m < count; ++m)
                    for (unsigned thread = 0; thread < block; ++thread)
                        for (unsigned j = 0; j < 2; ++j) {
                            const unsigned lane = thread % lanes;
                            const unsigned owner = thread - lane + 8 * m + row_of(lane, j, transposed);
                            const std::uint32_t expected = half(memory, places[owner] / 2 + column_of(lane, j, transposed));
                            REQUIRE(half(result, 2 * (m * block + thread) + j) == expected);
                        }
            }
}

TEST_CASE("stmatrix: rows of shared memory") {
    recordings::Random random(2);
    for (const unsigned count : {1u, 2u, 4u})
        for (const bool transposed : {false, true})
            for (const bool generic : {false, true}) {
                INFO(count << transposed << generic);
                Words memory(shared_words), source(std::size_t(block) * count), places = random_rows(random, false);
                for (std::uint32_t& word : memory) word = std::uint32_t(random.bits());
                for (std::uint32_t& word : source) word = std::uint32_t(random.bits());
                const Array<std::uint32_t> in(memory), rows(places), values(source);
                std::string words = "add.u64 %l4, %l1, %l62;\n";
                for (unsigned m = 0; m < count; ++m)
                    words += "ld.global.u32 %r" + to_string(20 + m) + ", [%l4+" + to_string(m * block * 4) + "];\n";
                words += std::string("stmatrix.sync.aligned.m8n8.x") + to_string(count) + (transposed ? ".trans" : "") +
                         (generic ? ".b16 [%l10], " : ".shared.b16 [%r10], ") + registers(count) + ";\n";
                run(copy(true) + rows_of_threads + words + copy(false), {1}, {block}, {in.address(), rows.address(), values.address()}, shared);
                for (unsigned m = 0; m < count; ++m)
                    for (unsigned thread = 0; thread < block; ++thread)
                        for (unsigned j = 0; j < 2; ++j) {
                            const unsigned lane = thread % lanes;
                            const unsigned owner = thread - lane + 8 * m + row_of(lane, j, transposed);
                            const unsigned at = places[owner] / 2 + column_of(lane, j, transposed);
                            std::uint32_t& word = memory[at / 2];
                            const std::uint32_t value = half(source, 2 * (m * block + thread) + j);
                            word = (word & ~(0xffffu << 16 * (at % 2))) | value << 16 * (at % 2);
                        }
                REQUIRE(in.values() == memory);
            }
}

TEST_CASE("movmatrix: a matrix in registers is transposed") {
    recordings::Random random(3);
    Words source(block);
    for (std::uint32_t& word : source) word = std::uint32_t(random.bits());
    const Array<std::uint32_t> in(source), out(block);
    run("mul.wide.u32 %l1, %r60, 4; add.u64 %l2, %l1, %l60; add.u64 %l3, %l1, %l61; ld.global.u32 %r1, [%l2];\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; st.global.u32 [%l3], %r2;",
        {1}, {block}, {in.address(), out.address()});
    const Words result = out.values();
    for (unsigned thread = 0; thread < block; ++thread)
        for (unsigned j = 0; j < 2; ++j) {
            const unsigned lane = thread % lanes, row = lane % 4 * 2 + j, column = lane / 4;
            REQUIRE(half(result, 2 * thread + j) == half(source, 2 * (thread - lane + 4 * row + column / 2) + column % 2));
        }
}

TEST_CASE("ldmatrix: a warp that has come through a branch of its own, in a loop") {
    // Warp 0 goes round twice, warp 1 once; the condition is one that lanes could disagree on as far as the code tells.
    recordings::Random random(4);
    Words memory(shared_words), places = random_rows(random, true);
    for (std::uint32_t& word : memory) word = std::uint32_t(random.bits());
    const Array<std::uint32_t> in(memory), rows(places), out(block);
    run(copy(true) + rows_of_threads +
            "mov.u32 %r30, 0; mov.u32 %r31, 0; ld.global.u32 %r32, [%l2]; shr.u32 %r32, %r32, 12; and.b32 %r32, %r32, 1;\n"
            "ROUND: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r10];\n"
            "add.u32 %r30, %r30, %r20; add.u32 %r30, %r30, %r21; add.u32 %r30, %r30, %r22; add.u32 %r30, %r30, %r23;\n"
            "add.u32 %r31, %r31, 1; setp.le.u32 %p2, %r31, %r32; @%p2 bra ROUND;\n"
            "add.u64 %l4, %l1, %l62; st.global.u32 [%l4], %r30;",
        {1}, {block}, {in.address(), rows.address(), out.address()}, shared);
    const Words result = out.values();
    for (unsigned thread = 0; thread < block; ++thread) {
        std::uint32_t sum = 0;
        for (unsigned m = 0; m < 4; ++m) sum += memory[places[thread / lanes * lanes + 8 * m + thread % lanes / 4] / 4 + thread % 4];
        REQUIRE(result[thread] == sum * (1 + (places[thread] >> 12 & 1)));
    }
}

TEST_CASE("ldmatrix, stmatrix: nobody looks at the rows of lanes beyond the matrices") {
    // Wrong rows that count are faults, which a process keeps (translator/lower/README.md, 2026-11-26).
    struct Case {
        unsigned count, lane, offset;
    };
    for (const bool loads : {true, false})
        for (const bool generic : {false, true})
            for (const Case& given : {Case{1, 9, 8}, Case{1, 9, 1 << 20}, Case{2, 16, 8}, Case{2, 31, 1 << 20}}) {
                std::string text = "mov.u32 %r1, memory; shl.b32 %r2, %r60, 4; add.u32 %r1, %r1, %r2; add.u32 %r3, %r1, " + to_string(given.offset) +
                                   "; setp.eq.u32 %p1, %r60, " + to_string(given.lane) + "; selp.b32 %r1, %r3, %r1, %p1;\n"
                                   "cvt.u64.u32 %l1, %r1; cvta.shared.u64 %l1, %l1;\n";
                for (unsigned i = 0; i < given.count; ++i) text += "mov.u32 %r" + to_string(20 + i) + ", " + to_string(i) + ";\n";
                const std::string address = generic ? "[%l1]" : "[%r1]", of_registers = registers(given.count);
                text += std::string(loads ? "ldmatrix" : "stmatrix") + ".sync.aligned.m8n8.x" + to_string(given.count) + (generic ? ".b16 " : ".shared.b16 ") +
                        (loads ? of_registers + ", " + address : address + ", " + of_registers) + ";\nst.global.u32 [%l60], %r20;\n";
                const Array<std::uint32_t> global(4);
                INFO(loads << generic << given.count << " " << given.offset);
                REQUIRE_NOTHROW(run(text, {1}, {lanes}, {global.address()}, shared));
            }
}
