// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes by tiles in shared memory (llvm/join_byte_products.h): signed and unsigned ones, with words
// that all lanes share on either side.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <random>

using namespace ptarmigan::test;

namespace {

constexpr unsigned side = 16, pitch = 17, rounds = 3;

/// 16 x 16 threads, a result each: C = A * B' of words along k, `words` of a tile's 16 per round, some of them twice.
/// `is_turned`: A's word differs from lane to lane and B's is that of all.
std::string product_text(const std::string& types, unsigned words, bool twice, bool is_turned) {
    const auto number = [](unsigned n) { return std::to_string(n); };
    std::string text = "and.b32 %r1, %r60, 15; shr.u32 %r2, %r60, 4; mov.u32 %r3, tile_a; mov.u32 %r4, tile_b; mov.u32 %r10, 0;\n"
                       "mad.lo.u32 %r5, %r2, " + number(pitch) + ", %r1; shl.b32 %r5, %r5, 2; add.u32 %r6, %r4, %r5; add.u32 %r5, %r3, %r5;\n"
                       "mad.lo.u32 %r7, %r2, " + number(pitch * 4) + ", %r3; mad.lo.u32 %r8, %r1, " + number(pitch * 4) + ", %r4;\n"
                       "mad.lo.u32 %r11, %r2, " + number(side * rounds) + ", %r1; mul.wide.u32 %l1, %r11, 4; add.u64 %l2, %l1, %l61; add.u64 %l1, %l1, %l60;\n"
                       "mul.wide.u32 %l3, %r60, 4; add.u64 %l3, %l3, %l62; ld.global.u32 %r20, [%l3];\n"
                       "loop:\nld.global.u32 %r21, [%l1]; st.shared.u32 [%r5], %r21; ld.global.u32 %r21, [%l2]; st.shared.u32 [%r6], %r21; bar.sync 0;\n";
    for (unsigned k = 0; k < words; ++k) {
        text += "ld.shared.u32 %r22, [%r7+" + number(4 * k) + "]; ld.shared.u32 %r23, [%r8+" + number(4 * k) + "];\n";
        const std::string product = "dp4a" + types + (is_turned ? " %r20, %r23, %r22, %r20;\n" : " %r20, %r22, %r23, %r20;\n");
        text += product + (twice && k % 5 == 1 ? product : "");
    }
    text += "bar.sync 0; add.u64 %l1, %l1, 64; add.u64 %l2, %l2, 64; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, " + number(rounds) + "; @%p1 bra loop;\n"
            "st.global.u32 [%l3], %r20;\n";
    return text;
}

std::int32_t byte(std::uint32_t word, unsigned i, bool is_signed) {
    const auto bits = std::uint8_t(word >> 8 * i);
    return is_signed ? std::int8_t(bits) : bits;
}

} // namespace

TEST_CASE("tiles of products of bytes", "[kernels][barriers][memory][products]") {
    const bool a_signed = GENERATE(true, false), b_signed = GENERATE(true, false), is_turned = GENERATE(false, true);
    const unsigned words = GENERATE(16u, 15u, 4u);
    const bool twice = GENERATE(false, true);
    CAPTURE(a_signed, b_signed, is_turned, words, twice);
    std::mt19937 random(words + 2 * twice);
    std::vector<std::uint32_t> a(side * side * rounds), b(a.size()), c(side * side);
    for (auto* each : {&a, &b, &c})
        for (std::uint32_t& word : *each) word = std::uint32_t(random());
    for (unsigned k = 0; k < side * rounds; ++k) a[k] = 0x80808080, b[k] = k % 2 ? 0x80808080 : 0x7fff0180; // the largest
    Array<std::uint32_t> device_a(a), device_b(b), device_c(c);
    run(product_text(std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32"), words, twice, is_turned), {1}, {side * side},
        {device_a.address(), device_b.address(), device_c.address()},
        ".shared .align 4 .u32 tile_a[272];\n.shared .align 4 .u32 tile_b[272];\n");
    const std::vector<std::uint32_t> got = device_c.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < side; ++i)
        for (unsigned j = 0; j < side; ++j) {
            std::uint32_t sum = c[i * side + j];
            for (unsigned k = 0; k < side * rounds; ++k) {
                if (k % side >= words) continue;
                std::uint32_t row = a[i * side * rounds + k], column = b[j * side * rounds + k];
                if (is_turned) std::swap(row, column);
                for (unsigned n = 0; n < (twice && k % side % 5 == 1 ? 8u : 4u); ++n)
                    sum += std::uint32_t(byte(row, n % 4, a_signed) * byte(column, n % 4, b_signed));
            }
            wrong += sum != got[i * side + j];
        }
    CHECK(wrong == 0);
}

TEST_CASE("sums of products of bytes that are taken from others", "[kernels][products]") {
    const std::string other = GENERATE(".s32.s32", ".u32.u32", ".u32.s32", ".s32.u32"), first = GENERATE(".s32.s32", ".u32.u32"), last = GENERATE(".u32.s32", ".s32.u32");
    const std::string operation = GENERATE("sub", "add");
    const bool is_behind = GENERATE(false, true);
    CAPTURE(other, first, last, operation, is_behind);
    constexpr unsigned threads = 64;
    std::mt19937 random(7);
    std::vector<std::uint32_t> words(4 * threads);
    for (std::uint32_t& word : words) word = std::uint32_t(random());
    Array<std::uint32_t> in(words), out(threads);
    const std::string apart = "dp4a" + other + " %r5, %r2, %r3, %r4;\n", chain = "dp4a" + first + " %r6, %r1, %r2, %r3; dp4a" + last + " %r6, %r3, %r4, %r6;\n";
    run("mul.wide.u32 %l1, %r60, 16; add.u64 %l1, %l1, %l60; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%l1];\n" + (is_behind ? chain + apart : apart + chain) +
            operation + ".u32 %r7, %r5, %r6; mul.wide.u32 %l2, %r60, 4; add.u64 %l2, %l2, %l61; st.global.u32 [%l2], %r7;\n",
        {1}, {threads}, {in.address(), out.address()});
    const auto sum = [](const std::string& types, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        for (unsigned n = 0; n < 4; ++n) c += std::uint32_t(byte(a, n, types[1] == 's') * byte(b, n, types[5] == 's'));
        return c;
    };
    const std::vector<std::uint32_t> got = out.values();
    unsigned wrong = 0;
    for (unsigned t = 0; t < threads; ++t) {
        const std::uint32_t* w = &words[4 * t];
        const std::uint32_t chained = sum(last, w[2], w[3], sum(first, w[0], w[1], w[2])), alone = sum(other, w[1], w[2], w[3]);
        wrong += got[t] != (operation == "sub" ? alone - chained : alone + chained);
    }
    CHECK(wrong == 0);
}
