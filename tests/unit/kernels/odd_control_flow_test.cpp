// SPDX-License-Identifier: Apache-2.0
// Control flow that compilers seldom write and fuzzers find: what is left when branches are known, registers that are
// written and read under one predicate only, functions that are called from dead code only. Values are an H100's.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 32;

/// What `body` leaves in %r9 of each thread. %l1 is where that is stored, %r60 %tid.x, `tab` two words of constants.
std::vector<std::uint32_t> results_of(const std::string& body, const std::string& globals = "") {
    Array<std::uint32_t> out(threads);
    run("mul.wide.u32 %l0, %r62, 4; add.u64 %l1, %l60, %l0;\n" + body + "\nst.global.u32 [%l1], %r9;", {1}, {threads},
        {out.address()}, globals);
    return out.values();
}

const std::string table = ".global .align 8 .u32 tab[2] = {1000, 7};\n";

/// A recursive function: 7 + n + ... + 1.
const std::string recursive = ".func (.reg .b32 r) rec(.reg .b32 n) { .reg .pred p; .reg .b32 m; setp.eq.u32 p, n, 0;\n"
                              "mov.u32 r, 7; @p bra DONE; sub.u32 m, n, 1; call (m), rec, (m); add.u32 r, m, n;\nDONE: }\n";

/// A loop that is entered at MIDDLE by `enter` with three rounds to go and left with 7 added at each later one.
std::string entered_in_its_middle(const std::string& enter) {
    return "ld.global.u32 %r3, [tab+4]; mov.u32 %r2, 3; mov.u32 %r9, 0;\n" + enter +
           "\nTOP: setp.lt.u32 %p2, %r3, 77; @!%p2 bra MIDDLE; add.u32 %r9, %r9, %r3;\n"
           "MIDDLE: sub.u32 %r2, %r2, 1; setp.ne.u32 %p0, %r2, 0; @%p0 bra TOP;";
}

} // namespace

TEST_CASE("a temporary that is written and read under one predicate in a loop", "[kernels][flow]") {
    const std::string begin = "ld.global.u32 %r11, [tab]; ld.global.u32 %r13, [tab+4]; mov.u32 %r2, 3;\n";
    const std::string round = "sub.u32 %r2, %r2, 1; setp.ne.u32 %p0, %r2, 0; @%p0 bra TOP;";
    SECTION("uniform: the lanes' distances change sign at each round") {
        const auto results = results_of(begin + "setp.lt.u32 %p1, %r13, 100; mov.u32 %r9, %r60;\n"
                                                "TOP: @%p1 sub.s32 %r5, %r11, %r9; @%p1 mov.b32 %r9, %r5;\n" + round,
                                        table);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 1000 - t);
    }
    SECTION("the same for some lanes") {
        const auto results = results_of(begin + "setp.lt.u32 %p1, %r60, 10; mov.u32 %r9, %r60;\n"
                                                "TOP: @%p1 sub.s32 %r5, %r11, %r9; @%p1 mov.b32 %r9, %r5;\n" + round,
                                        table);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == (t < 10 ? 1000 - t : t));
    }
    SECTION("two that hand each other their values") {
        const auto results = results_of(
            begin + "setp.lt.u32 %p1, %r13, 100; mov.u32 %r9, %r60;\n"
                    "TOP: @%p1 add.s32 %r5, %r9, %r9; @%p1 sub.s32 %r6, %r5, %r13; @%p1 mov.b32 %r9, %r6;\n" + round,
            table);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 8 * t - 7 * 7);
    }
    SECTION("64 bits, an address") {
        const auto results = results_of(begin + "setp.lt.u32 %p1, %r13, 100; mul.wide.u32 %l2, %r60, 8;\n"
                                                "TOP: @%p1 sub.s64 %l3, 4096, %l2; @%p1 mov.b64 %l2, %l3;\n" + round +
                                            "\ncvt.u32.u64 %r9, %l2;",
                                        table);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 4096 - 8 * t);
    }
}

TEST_CASE("a loop entered in its middle by a branch that is always taken", "[kernels][flow]") {
    for (const char* enter : {"setp.eq.u32 %p1, %r2, 3; @%p1 bra MIDDLE;",                   // a constant
                              "mov.u32 %r5, %ntid.y; setp.eq.u32 %p1, %r5, 1; @%p1 bra MIDDLE;", // the block's shape
                              "setp.lt.u32 %p1, %r60, 32; @%p1 bra MIDDLE;",                 // the threads' numbers
                              "bra MIDDLE;"}) {
        INFO(enter);
        const auto results = results_of(entered_in_its_middle(enter), table);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 14);
    }
}

TEST_CASE("a loop of which the entry at its top is never taken, lanes leave at different rounds", "[kernels][flow]") {
    const auto results = results_of("mov.u32 %r2, 0; mov.u32 %r9, 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra MIDDLE;\n"
                                    "TOP: add.u32 %r9, %r9, 1; and.b32 %r3, %r9, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra MIDDLE;\n"
                                    "add.u32 %r9, %r9, 10;\n"
                                    "MIDDLE: add.u32 %r2, %r2, 1; setp.le.u32 %p0, %r2, %r60; @%p0 bra TOP;");
    for (unsigned t = 0; t < threads; ++t) {
        std::uint32_t sum = 0;
        for (unsigned round = 0; round < t; ++round) sum += (sum + 1) & 1 ? 11 : 1;
        CHECK(results[t] == sum);
    }
}

TEST_CASE("functions that are called from dead code only", "[kernels][flow]") {
    const std::string call = "call (%r9), rec, (%r1);";
    for (const char* skip : {"mov.u32 %r5, %ntid.y; setp.gt.u32 %p1, %r5, 1; @!%p1 bra BEHIND;",
                             "setp.ge.u32 %p1, %r60, 32; @!%p1 bra BEHIND;",
                             "mov.u32 %r5, 0; setp.gt.u32 %p1, %r5, 1; @!%p1 bra BEHIND;"}) {
        INFO(skip);
        const auto results = results_of(std::string("mov.u32 %r1, 3; mov.u32 %r9, 5;\n") + skip + call + "\nBEHIND:", recursive);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 5);
    }
    SECTION("and from live code, too") {
        const auto results = results_of("mov.u32 %r1, 3; mov.u32 %r5, %ntid.y; setp.gt.u32 %p1, %r5, 1; @!%p1 bra BEHIND;\n" +
                                            call + "\nBEHIND: " + call,
                                        recursive);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 13);
    }
    SECTION("from dead code of another one that is called for real") {
        const std::string outer = recursive + ".func (.reg .b32 r) outer(.reg .b32 n) { .reg .pred p; .reg .b32 m; mov.u32 m, %ntid.y;\n"
                                              "setp.gt.u32 p, m, 1; @p call (r), rec, (n); setp.eq.u32 p, n, 0; mov.u32 r, 1; @p bra DONE;\n"
                                              "sub.u32 m, n, 1; call (r), outer, (m); add.u32 r, r, 1;\nDONE: }\n";
        const auto results = results_of("mov.u32 %r1, 3; call (%r9), outer, (%r1);", outer);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 4);
    }
    SECTION("through a pointer") {
        const auto results = results_of("P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\nmov.u32 %r1, 3; mov.u32 %r9, 5; mov.u64 %l4, rec;\n"
                                        "mov.u32 %r5, %ntid.y; setp.gt.u32 %p1, %r5, 1; @!%p1 bra BEHIND; call (%r9), %l4, (%r1), P;\nBEHIND:",
                                        recursive);
        for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 5);
    }
}

TEST_CASE("a sum of doubles that is used before and behind a test for NaNs", "[kernels][flow]") {
    // The loop's fma is the one before it, with its factors the other way round.
    Array<double> in(64), out(threads);
    std::vector<double> numbers;
    for (unsigned i = 0; i < 64; ++i) numbers.push_back(i + 0.5);
    Array<double> filled(numbers);
    run("mul.wide.u32 %l2, %r60, 8; add.u64 %l3, %l60, %l2; add.u64 %l4, %l61, %l2;\n"
        "ld.global.f64 %d0, [%l60]; ld.global.f64 %d5, [%l60+16]; ld.global.f64 %d2, [%l3];\n"
        "cvt.rzi.s32.f64 %r1, %d0; setp.lt.s32 %p6, %r1, 5; setp.lt.s32 %p2, %r1, 9; mov.u32 %r3, %ntid.x;\n"
        "cvt.rn.f64.u32 %d1, %r60; fma.rn.f64 %d3, %d2, %d2, %d0; bar.warp.sync -1; fma.rn.f64 %d0, %d5, %d3, %d1;\n"
        "@%p6 bra MIDDLE;\n"
        "TOP: selp.f64 %d4, 0d7ff8000000000000, %d0, %p2; st.global.f64 [%l4], %d4;\n"
        "MIDDLE: fma.rn.f64 %d0, %d3, %d5, %d1; sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra TOP;\n"
        "st.global.f64 [%l4], %d0;",
        {1}, {threads}, {filled.address(), out.address()});
    const auto results = out.values();
    for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 2.5 * ((t + 0.5) * (t + 0.5) + 0.5) + t);
}

TEST_CASE("a select of floats from integer registers with a distance from lane to lane", "[kernels][flow]") {
    const auto results =
        results_of("ld.global.u32 %r11, [tab]; setp.gt.s32 %p1, %r11, 5; selp.f32 %r9, %r60, %r60, %p1;\n"
                   "setp.lt.s32 %p2, %r11, 5; add.u32 %r5, %r60, 64; @%p1 selp.f32 %r9, %r9, %r5, %p2;",
                   table);
    for (unsigned t = 0; t < threads; ++t) CHECK(results[t] == 64 + t);
}
