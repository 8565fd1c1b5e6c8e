// SPDX-License-Identifier: Apache-2.0
// Reductions in global memory whose lanes lie side by side, in whole rows or in parts, with lanes left out, while other blocks
// add to the same words.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned words = 512, threads = 96, blocks = 40;

/// Where thread `thread` of block `block` adds, and whether it does: rows of `columns` words from an odd place on.
struct Pattern {
    unsigned columns, first, step;
    unsigned word(unsigned block, unsigned thread) const {
        const unsigned row = thread / columns * 7 + block;
        return (first + row * columns + thread % columns * step) % words;
    }
};

/// The address of the element is in %l0, the number to add in %r3; %p1: this thread adds.
std::string body(const Pattern& pattern, unsigned bytes, const std::string& add) {
    const auto n = [](unsigned value) { return std::to_string(value); };
    return "div.u32 %r0, %r60, " + n(pattern.columns) + "; mad.lo.u32 %r0, %r0, 7, %r61; rem.u32 %r1, %r60, " + n(pattern.columns) +
           "; mul.lo.u32 %r1, %r1, " + n(pattern.step) + "; mad.lo.u32 %r1, %r0, " + n(pattern.columns) + ", %r1; add.u32 %r1, %r1, " +
           n(pattern.first) + "; rem.u32 %r1, %r1, " + n(words) + "; mad.wide.u32 %l0, %r1, " + n(bytes) +
           ", %l60; and.b32 %r3, %r62, 3; add.u32 %r3, %r3, 1; rem.u32 %r2, %r60, 11; setp.ne.u32 %p1, %r2, 5;" + add;
}

} // namespace

TEST_CASE("lanes side by side add to global memory", "[kernels][atomics]") {
    for (const Pattern& pattern : {Pattern{32, 0, 1}, Pattern{32, 3, 1}, Pattern{96, 1, 1}, Pattern{4, 0, 1}, Pattern{5, 2, 1}, Pattern{2, 0, 1},
                                   Pattern{32, 0, 2}, Pattern{32, 1, 0}, Pattern{1, 0, 1}}) {
        for (const bool all : {true, false}) {
            const std::string guard = all ? "" : "@%p1 ";
            std::vector<std::uint32_t> expected(words);
            for (unsigned block = 0; block < blocks; ++block)
                for (unsigned thread = 0; thread < threads; ++thread)
                    if (all || thread % 11 != 5) expected[pattern.word(block, thread)] += (block * threads + thread) % 4 + 1;
            const auto run_it = [&](unsigned bytes, const std::string& add, std::uint64_t address) {
                run(body(pattern, bytes, add), {blocks}, {threads}, {address});
            };
            INFO(pattern.columns << " columns from " << pattern.first << ", all " << all);
            Array<std::uint32_t> integers(words);
            run_it(4, guard + "red.global.add.u32 [%l0], %r3;", integers.address());
            CHECK(integers.values() == expected);
            Array<float> floats(words);
            run_it(4, "cvt.rn.f32.u32 %f0, %r3;" + guard + "red.global.add.f32 [%l0], %f0;", floats.address());
            CHECK(floats.values() == std::vector<float>(expected.begin(), expected.end()));
            Array<float> generic(words);
            run_it(4, "cvt.rn.f32.u32 %f0, %r3;" + guard + "red.add.f32 [%l0], %f0;", generic.address());
            CHECK(generic.values() == std::vector<float>(expected.begin(), expected.end()));
            Array<double> doubles(words);
            run_it(8, "cvt.rn.f64.u32 %d0, %r3;" + guard + "red.global.add.f64 [%l0], %d0;", doubles.address());
            CHECK(doubles.values() == std::vector<double>(expected.begin(), expected.end()));
            Array<std::uint64_t> wide(words);
            run_it(8, "cvt.u64.u32 %l1, %r3;" + guard + "red.global.add.u64 [%l0], %l1;", wide.address());
            CHECK(wide.values() == std::vector<std::uint64_t>(expected.begin(), expected.end()));
            // Two halves in a word, and halves alone: numbers that they hold exactly.
            Array<std::uint32_t> pairs(words);
            run_it(4, "cvt.rn.f16.u32 %h0, %r3; mov.b32 %r4, {%h0, %h0};" + guard + "red.global.add.noftz.f16x2 [%l0], %r4;", pairs.address());
            Array<std::uint16_t> halves(words);
            run_it(2, "cvt.rn.f16.u32 %h0, %r3;" + guard + "red.global.add.noftz.f16 [%l0], %h0;", halves.address());
            for (unsigned word = 0; word < words; ++word) CHECK(pairs.values()[word] == halves.values()[word] * 0x10001u);
            Array<float> of_halves(words);
            run("mad.wide.u32 %l0, %r60, 2, %l60; ld.global.b16 %h0, [%l0]; cvt.f32.f16 %f0, %h0; mad.wide.u32 %l1, %r60, 4, %l61;"
                "st.global.f32 [%l1], %f0;",
                {1}, {words}, {halves.address(), of_halves.address()});
            CHECK(of_halves.values() == std::vector<float>(expected.begin(), expected.end()));
            // The largest number that was brought, where any was.
            Array<std::uint32_t> largest(words);
            run_it(4, guard + "red.global.max.u32 [%l0], %r3;", largest.address());
            for (unsigned word = 0; word < words; ++word) CHECK((largest.values()[word] == 0) == (expected[word] == 0));
        }
    }
}
