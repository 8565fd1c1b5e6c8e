// SPDX-License-Identifier: Apache-2.0
// Arrays in local memory: as registers, interleaved by lane, in one piece per thread where a generic pointer sees them.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 100; ///< not a multiple of the warp

/// What `body` leaves in %r9 of each thread; %r8 is the thread's number, a an array of 64 bytes, b one of 32.
std::vector<std::uint32_t> results_of(const std::string& body) {
    Array<std::uint32_t> out(threads);
    run(".local .align 16 .b8 a[64]; .local .align 16 .b8 b[32];\n"
        "mul.wide.u32 %l0, %r62, 4; add.u64 %l1, %l60, %l0; mov.u32 %r8, %r62;\n" + body +
            "\nst.global.u32 [%l1], %r9;",
        {1}, {threads}, {out.address()});
    return out.values();
}

/// a[i] = 1000 * i + thread for all 16 words, in a loop that the translator does not unroll.
const std::string fill = "mov.u64 %l4, a; mov.u32 %r1, 0; mov.u64 %l5, %l4;\n"
                         "FILL: mad.lo.u32 %r2, %r1, 1000, %r8; st.local.u32 [%l5], %r2;\n"
                         "add.u64 %l5, %l5, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 16; @%p1 bra FILL;\n";

} // namespace

TEST_CASE("constant places of a local array", "[kernels][local]") {
    const auto results = results_of(
        "mov.u64 %l4, a; add.u64 %l5, %l4, 8; cvta.local.u64 %l6, %l5; mul.lo.u32 %r1, %r8, 3;\n"
        "st.local.u32 [%l4], %r8; st.local.u32 [%l5], %r1; setp.gt.u32 %p1, %r8, 50;\n"
        "@%p1 st.local.v2.u32 [%l4+16], {%r1, %r8}; @!%p1 st.local.v2.u32 [a+16], {%r8, 7};\n"
        "ld.u32 %r2, [%l6]; ld.local.v2.u32 {%r3, %r4}, [%l5+8]; ld.local.u32 %r5, [a];\n"
        "mad.lo.u32 %r9, %r2, 1000, %r3; mad.lo.u32 %r9, %r9, 100, %r4; add.u32 %r9, %r9, %r5;");
    for (unsigned i = 0; i < threads; ++i) {
        const unsigned low = i > 50 ? 3 * i : i, high = i > 50 ? i : 7;
        CHECK(results[i] == (3 * i * 1000 + low) * 100 + high + i);
    }
}

TEST_CASE("a local array with an index of its own in each lane", "[kernels][local]") {
    const auto results = results_of(fill + "and.b32 %r3, %r8, 15; mul.wide.u32 %l6, %r3, 4; add.u64 %l7, %l4, %l6;\n"
                                           "ld.local.u32 %r9, [%l7]; xor.b32 %r3, %r3, 5; mad.wide.u32 %l7, %r3, 4, %l4;\n"
                                           "st.local.u32 [%l7], 9; ld.local.u32 %r4, [a+20]; add.u32 %r9, %r9, %r4;");
    for (unsigned i = 0; i < threads; ++i)
        CHECK(results[i] == 1000 * (i & 15) + i + (((i & 15) ^ 5) == 5 ? 9 : 5000 + i));
}

TEST_CASE("elements of several sizes in one local array", "[kernels][local]") {
    const auto results = results_of(
        fill + "and.b32 %r3, %r8, 1; mul.wide.u32 %l6, %r3, 32; add.u64 %l7, %l4, %l6;\n"
               "ld.local.u64 %l8, [%l7+8]; ld.local.v4.u32 {%r10, %r11, %r12, %r13}, [%l7+16];\n"
               "st.local.v4.u8 [%l7+4], {1, 2, 3, 4}; ld.local.u16 %r14, [%l7+5+1]; ld.local.u8 %r15, [%l7+5];\n"
               "cvt.u32.u64 %r16, %l8; shr.u64 %l8, %l8, 32; cvt.u32.u64 %r17, %l8;\n"
               "mad.lo.u32 %r9, %r14, 256, %r15; add.u32 %r9, %r9, %r16; mad.lo.u32 %r9, %r17, 3, %r9;\n"
               "add.u32 %r9, %r9, %r10; mad.lo.u32 %r9, %r11, 5, %r9; mad.lo.u32 %r9, %r12, 7, %r9; mad.lo.u32 %r9, %r13, 11, %r9;");
    for (unsigned i = 0; i < threads; ++i) {
        const auto a = [&](unsigned k) { return 1000 * ((i & 1) * 8 + k) + i; };
        CHECK(results[i] == 0x0403u * 256 + 2 + a(2) + 3 * a(3) + a(4) + 5 * a(5) + 7 * a(6) + 11 * a(7));
    }
}

TEST_CASE("a local array that a generic pointer sees", "[kernels][local]") {
    const auto results =
        results_of(fill + "cvta.local.u64 %l6, %l4; and.b32 %r3, %r8, 15; mad.wide.u32 %l7, %r3, 4, %l6;\n"
                          "isspacep.local %p2, %l7; selp.u32 %r5, 1, 0, %p2; ld.u32 %r9, [%l7]; add.u32 %r9, %r9, %r5;\n"
                          "mov.u64 %l8, b; setp.lt.u32 %p3, %r8, 40; selp.b64 %l9, %l8, %l4, %p3; st.local.u32 [%l9+4], 77;\n"
                          "ld.local.u32 %r4, [%l4+4]; add.u32 %r9, %r9, %r4;");
    for (unsigned i = 0; i < threads; ++i)
        CHECK(results[i] == 1000 * (i & 15) + i + 1 + (i < 40 ? 1000 + i : 77));
}

TEST_CASE("addresses in a local array that are compared and chosen", "[kernels][local]") {
    const auto results = results_of(fill + "add.u64 %l6, %l4, 40; mov.u64 %l7, %l4; mov.u32 %r9, 0;\n"
                                           "SUM: ld.local.u32 %r3, [%l7]; add.u32 %r9, %r9, %r3; add.s64 %l7, %l7, 4;\n"
                                           "setp.ne.s64 %p1, %l7, %l6; @%p1 bra SUM;\n"
                                           "setp.lt.u32 %p2, %r8, 33; selp.b64 %l8, %l7, %l4, %p2; ld.local.u32 %r4, [%l8+4];\n"
                                           "add.u32 %r9, %r9, %r4;");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == 45000 + 10 * i + (i < 33 ? 11000 + i : 1000 + i));
}

TEST_CASE("loops of lanes' own lengths over a local array", "[kernels][local]") {
    const auto results = results_of(fill + "and.b32 %r3, %r8, 7; add.u32 %r3, %r3, 1; mov.u32 %r9, 0; mov.u64 %l7, %l4;\n"
                                           "NEXT: ld.local.u32 %r4, [%l7]; add.u32 %r9, %r9, %r4; st.local.u32 [%l7], %r9;\n"
                                           "add.u64 %l7, %l7, 4; sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra NEXT;\n"
                                           "ld.local.u32 %r5, [%l7+-4]; ld.local.u32 %r6, [%l7]; sub.u32 %r9, %r6, %r5;");
    for (unsigned i = 0; i < threads; ++i) {
        const unsigned count = (i & 7) + 1;
        CHECK(results[i] == 1000 * count + i - (1000 * (count * (count - 1) / 2) + count * i));
    }
}

TEST_CASE("a local array over barriers", "[kernels][local]") {
    const auto results = results_of(fill + "bar.sync 0; and.b32 %r3, %r8, 3; mad.wide.u32 %l7, %r3, 4, %l4;\n"
                                           "ld.local.u32 %r4, [%l7]; bar.sync 0; st.local.u32 [%l7+4], %r4; bar.sync 0;\n"
                                           "ld.local.u32 %r9, [%l7+4];");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == 1000 * (i & 3) + i);
}

TEST_CASE("bytes that are stored as words and loaded as bytes", "[kernels]") {
    Array<std::uint32_t> out(threads);
    run(".local .align 8 .b8 own[16]; mul.lo.u32 %r0, %r60, 7; cvt.u16.u32 %h0, %r0; add.u16 %h0, %h0, 3; cvt.u32.u8 %r1, %h0;\n"
        "st.local.u32 [own], %r1; ld.local.u8 %r2, [own]; st.local.u32 [own+4], %r2; ld.local.u8 %r3, [own+4];\n"
        "cvt.s64.s8 %l0, %h0; st.local.u64 [own+8], %l0; ld.local.s16 %r4, [own+8]; mad.lo.u32 %r3, %r4, 1000, %r3;\n"
        "mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; st.global.u32 [%l1], %r3;\n",
        {1}, {threads}, {out.address()});
    for (std::uint32_t t = 0; t < threads; ++t) {
        const std::uint32_t byte = (t * 7 + 3) & 255;
        CHECK(out.values()[t] == std::uint32_t(std::int32_t(std::int8_t(byte))) * 1000 + byte);
    }
}

TEST_CASE("local memory: pairs of words and words of pairs", "[kernels]") {
    const std::uint32_t threads = 64;
    Array<std::uint32_t> out(6 * threads);
    run(R"(
        .local .align 8 .b8 a[24];
        mul.wide.u32 %l0, %r60, 24;
        add.u64 %l0, %l0, %l60;
        mov.b64 %l1, {%r60, 7};
        setp.lt.u32 %p0, %r60, 40;
        st.local.u64 [a], %l1;
        @%p0 st.local.u32 [a+4], 9;
        ld.local.u32 %r0, [a];
        ld.local.u64 %l2, [a];
        st.local.u64 [a+8], 0x500000006;
        @!%p0 st.local.u64 [a+8], %l2;
        ld.local.u32 %r1, [a+12];
        ld.local.u64 %l3, [a+4];
        st.global.u32 [%l0], %r0;
        mov.b64 {%r2, %r3}, %l2;
        st.global.u32 [%l0+4], %r3;
        st.global.u32 [%l0+8], %r1;
        mov.b64 {%r4, %r5}, %l3;
        st.global.u32 [%l0+12], %r4;
        st.global.u32 [%l0+16], %r5;
        st.global.u32 [%l0+20], %r2;
    )", {1}, {threads}, {out.address()});
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < threads; ++i) {
        const std::uint32_t upper = i < 40 ? 9 : 7;
        for (const std::uint32_t word : {i, upper, i < 40 ? 5u : upper, upper, i < 40 ? 6u : i, i}) expected.push_back(word);
    }
    CHECK(out.values() == expected);
}

TEST_CASE("local memory: a part of every size at every place over pairs of words, then another one", "[kernels]") {
    struct Part {
        unsigned size, place;
    };
    std::vector<Part> parts;
    for (unsigned size : {1u, 2u, 4u, 8u})
        for (unsigned place = 0; place + size <= 16; place += std::max(size, 2u)) parts.push_back({size, place});
    const std::uint64_t pairs[2] = {0x8877665544332211, 0x0f0e0d0c0b0a0908}, written = 0xf1f2f3f4f5f6f7f8;
    const auto type = [](const Part& part) { return "u" + std::to_string(8 * part.size); };
    std::string body;
    std::vector<std::uint64_t> expected;
    for (const Part& store : parts)
        for (const Part& load : parts) {
            const std::string name = "a" + std::to_string(expected.size());
            const auto at = [&](unsigned place) { return "[" + name + "+" + std::to_string(place) + "]"; };
            body += ".local .align 8 .b8 " + name + "[16]; st.local.u64 " + at(0) + ", " + std::to_string(pairs[0]) +
                    "; st.local.u64 " + at(8) + ", " + std::to_string(pairs[1]) + "; mov.u64 %l1, " +
                    std::to_string(written) + "; st.local." + type(store) + " " + at(store.place) + ", %l1; ld.local." +
                    type(load) + " %l2, " + at(load.place) + "; st.global.u64 [%l60+" +
                    std::to_string(8 * expected.size()) + "], %l2;\n";
            std::uint8_t bytes[16];
            std::memcpy(bytes, pairs, 16);
            std::memcpy(bytes + store.place, &written, store.size);
            expected.push_back(0);
            std::memcpy(&expected.back(), bytes + load.place, load.size);
        }
    Array<std::uint64_t> out(expected.size());
    run(body, {1}, {1}, {out.address()});
    CHECK(out.values() == expected);
}
