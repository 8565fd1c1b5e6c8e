// SPDX-License-Identifier: Apache-2.0
// Structures that threads read and write word by word (translator/analysis/memory/access_groups.h): made together or not, the
// outcome is that of each thread's own order, and nothing between the words that a kernel names is written.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <sys/mman.h>

using namespace ptarmigan::test;

namespace {

constexpr std::uint32_t block = 96, grid = 3, threads = block * grid;

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

/// %l1 = p0 + %r62 * `bytes`, %l2 = p1 + the same; only threads below p3 go on.
std::string places(unsigned bytes) {
    return "cvt.u32.u64 %r1, %l63; setp.ge.u32 %p1, %r62, %r1; @%p1 bra done;\n"
           "mul.wide.u32 %l3, %r62, " + number(bytes) + "; add.u64 %l1, %l60, %l3; add.u64 %l2, %l61, %l3;\n";
}

/// A kernel's words before and behind.
std::vector<std::uint32_t> result_of(const std::string& body, std::vector<std::uint32_t> words, unsigned stride,
                                     std::uint32_t active, const std::vector<std::uint32_t>& in = {0}) {
    Array<std::uint32_t> out(std::move(words)), other(in);
    run(places(stride * 4) + body + "done:\n", {grid}, {block}, {out.address(), other.address(), 0, active});
    return out.values();
}

std::uint32_t word_of(std::uint32_t thread, unsigned k) {
    return thread * 1000 + k * 7 + 3;
}

} // namespace

TEST_CASE("structures: stores of some of their words", "[kernels][memory]") {
    const std::uint32_t active = GENERATE(0u, 37u, 200u, threads);
    for (unsigned stride : {2u, 3u, 4u, 5u, 6u, 8u, 9u, 16u, 33u})
        for (unsigned count = 2; count <= std::min(stride, 9u); ++count)
            for (unsigned first : {0u, stride - count}) {
                std::string body;
                for (unsigned i = 0; i < count; ++i) { // not in the order of their places
                    const unsigned k = (i * (count > 3 && count % 3 ? 3 : 1) + 1) % count;
                    body += "mad.lo.u32 %r2, %r62, 1000, " + number(k * 7 + 3) + "; st.global.u32 [%l1+" + number((first + k) * 4) +
                            "], %r2;\n";
                }
                std::vector<std::uint32_t> words(threads * stride, 0xabcdef01), expected = words;
                for (std::uint32_t t = 0; t < active; ++t)
                    for (unsigned k = 0; k < count; ++k) expected[t * stride + first + k] = word_of(t, k);
                INFO("stride " << stride << " count " << count << " first " << first << " active " << active);
                CHECK((result_of(body, words, stride, active) == expected));
            }
}

TEST_CASE("structures: words of 8 bytes, in shared memory, and what loads find", "[kernels][memory]") {
    const std::uint32_t active = GENERATE(0u, 37u, 200u, threads);
    for (unsigned stride : {2u, 3u, 4u, 7u})
        for (unsigned count = 2; count <= stride; ++count) {
            std::string body = "mov.u64 %l5, tile; mul.wide.u32 %l4, %r60, " + number(stride * 8) + "; add.u64 %l4, %l4, %l5;\n";
            for (unsigned k = 0; k < count; ++k)
                body += "ld.global.u64 %l" + number(10 + k) + ", [%l2+" + number(8 * k) + "]; st.shared.u64 [%l4+" + number(8 * k) + "], %l" + number(10 + k) + ";\n";
            for (unsigned k = 0; k < count; ++k)
                body += "ld.shared.u64 %l" + number(20 + k) + ", [%l4+" + number(8 * (count - 1 - k)) + "]; st.global.u64 [%l1+" + number(8 * k) + "], %l" + number(20 + k) + ";\n";
            std::vector<std::uint64_t> words(threads * stride, 5), in, expected = words;
            for (std::uint64_t i = 0; i < words.size(); ++i) in.push_back(i * 0x123456789abcdefull);
            for (std::uint32_t t = 0; t < active; ++t)
                for (unsigned k = 0; k < count; ++k) expected[t * stride + k] = in[t * stride + count - 1 - k];
            Array<std::uint64_t> out(words), other(in);
            run(places(stride * 8) + body + "done:\n", {grid}, {block}, {out.address(), other.address(), 0, active},
                ".shared .align 8 .b8 tile[" + number(block * stride * 8) + "];\n");
            INFO("stride " << stride << " count " << count << " active " << active);
            CHECK((out.values() == expected));
        }
}

TEST_CASE("structures: words that are read and written in turns", "[kernels][memory]") {
    const std::uint32_t active = GENERATE(37u, threads);
    constexpr unsigned stride = 5;
    std::vector<std::uint32_t> words(threads * stride + stride);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i * i + 11;
    const auto expected = [&](auto&& change) {
        std::vector<std::uint32_t> result = words;
        for (std::uint32_t t = 0; t < active; ++t) change(result.data() + t * stride);
        return result;
    };
    std::string body;
    SECTION("each is changed") {
        for (unsigned k = 0; k < 4; ++k)
            body += "ld.global.u32 %r2, [%l1+" + number(4 * k) + "]; mad.lo.u32 %r2, %r2, 3, 1; st.global.u32 [%l1+" + number(4 * k) + "], %r2;\n";
        CHECK((result_of(body, words, stride, active) == expected([](std::uint32_t* p) {
            for (unsigned k = 0; k < 4; ++k) p[k] = p[k] * 3 + 1;
        })));
    }
    SECTION("each takes the next, and the last the changed first") {
        for (unsigned k = 0; k < 4; ++k)
            body += "ld.global.u32 %r2, [%l1+" + number(4 * k) + "]; ld.global.u32 %r3, [%l1+" + number((k + 1) % 4 * 4) +
                    "]; mad.lo.u32 %r2, %r2, 3, %r3; st.global.u32 [%l1+" + number(4 * k) + "], %r2;\n";
        CHECK((result_of(body, words, stride, active) == expected([](std::uint32_t* p) {
            for (unsigned k = 0; k < 4; ++k) p[k] = p[k] * 3 + p[(k + 1) % 4];
        })));
    }
    SECTION("a word is written twice") {
        body = "st.global.u32 [%l1], 1; st.global.u32 [%l1+4], 2; st.global.u32 [%l1+4], 3; st.global.u32 [%l1+8], 4; st.global.u32 [%l1], 5;\n";
        CHECK((result_of(body, words, stride, active) == expected([](std::uint32_t* p) { p[0] = 5, p[1] = 3, p[2] = 4; })));
    }
    SECTION("by another register of the same place") {
        body = "add.u64 %l5, %l1, 4; st.global.u32 [%l1], 77; ld.global.u32 %r2, [%l5+-4]; st.global.u32 [%l1+4], %r2;\n"
               "ld.global.u32 %r3, [%l1+8]; st.global.u32 [%l5+8], 78; ld.global.u32 %r4, [%l1+12]; add.u32 %r3, %r3, %r4; st.global.u32 [%l1+16], %r3;\n";
        CHECK((result_of(body, words, stride, active) == expected([](std::uint32_t* p) {
            p[0] = p[1] = 77, p[3] = 78, p[4] = p[2] + 78;
        })));
    }
    SECTION("a load that could be made earlier, but for a store before") {
        body = "st.global.u32 [%l1+4], 9; ld.global.u32 %r2, [%l1]; st.global.u32 [%l1+8], %r2; ld.global.u32 %r3, [%l1+4]; st.global.u32 [%l1+12], %r3;\n";
        CHECK((result_of(body, words, stride, active) == expected([](std::uint32_t* p) { p[1] = 9, p[2] = p[0], p[3] = 9; })));
    }
    SECTION("vectors of the same memory") {
        body = "and.b32 %r5, %r62, 3; setp.ne.u32 %p2, %r5, 0; @%p2 bra done;\n" // whose structures are aligned
               "st.global.u32 [%l1], 9; ld.global.v2.u32 {%r2, %r3}, [%l1]; st.global.u32 [%l1+4], %r2; st.global.v2.u32 [%l1+8], {%r3, %r2}; st.global.u32 [%l1+12], 4;\n";
        std::vector<std::uint32_t> wanted = words;
        for (std::uint32_t t = 0; t < active; t += 4) {
            std::uint32_t* p = wanted.data() + t * stride;
            const std::uint32_t second = p[1];
            p[0] = p[1] = 9, p[2] = second, p[3] = 4;
        }
        CHECK((result_of(body, words, stride, active) == wanted));
    }
}

TEST_CASE("structures: of one warp, words that the next lane has, too", "[kernels][memory]") {
    // Lanes one word apart, two words each: the second store of a lane comes behind the first one of the next.
    std::vector<std::uint32_t> expected(33);
    for (std::uint32_t i = 0; i < 33; ++i) expected[i] = i == 0 ? word_of(0, 0) : word_of(i - 1, 1);
    Array<std::uint32_t> out(33);
    run("mul.wide.u32 %l3, %r60, 4; add.u64 %l1, %l60, %l3; mad.lo.u32 %r2, %r60, 1000, 3; st.global.u32 [%l1], %r2;\n"
        "bar.warp.sync -1; add.u32 %r2, %r2, 7; st.global.u32 [%l1+4], %r2;",
        {1}, {32}, {out.address()});
    CHECK(out.values() == expected);
}

TEST_CASE("structures: numbers of words that wrap", "[kernels][memory]") {
    // 4 * (8 * thread + p1) as a 32-bit number that wraps within a step: 2^34 bytes lie between the lanes then.
    constexpr std::uint64_t distance = std::uint64_t{1} << 34, size = distance + 8192;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto* words = static_cast<std::uint32_t*>(memory);
    constexpr std::uint32_t first = 0u - 32 * 8 + 4 * 8; // the fifth last thread of a warp wraps
    const std::uint64_t base = std::uint64_t(memory) + 4096;
    run("cvt.u32.u64 %r1, %l61; shl.b32 %r2, %r60, 3; add.u32 %r2, %r2, %r1; mul.wide.u32 %l1, %r2, 4; add.u64 %l1, %l60, %l1;\n"
        "mad.lo.u32 %r3, %r60, 1000, 3; st.global.u32 [%l1], %r3; add.u32 %r3, %r3, 7; st.global.u32 [%l1+4], %r3; add.u32 %r3, %r3, 7; st.global.u32 [%l1+8], %r3;",
        {1}, {32}, {base, first});
    unsigned wrong = 0;
    for (std::uint32_t t = 0; t < 32; ++t)
        for (unsigned k = 0; k < 4; ++k)
            wrong += words[1024 + std::uint64_t(first + t * 8) + k] != (k < 3 ? word_of(t, k) : 0);
    CHECK(wrong == 0);
    munmap(memory, size);
}
