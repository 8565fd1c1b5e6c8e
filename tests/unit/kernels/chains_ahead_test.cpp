// SPDX-License-Identifier: Apache-2.0
// Loops whose rounds begin with a chain of multiply-adds of what they load and go on with sums that they keep
// (llvm/chains_ahead.h): each round's score is its own, also the last one's, behind which no row may be read.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64, width = 20, sums = 40;

/// score = query . row; old = rest of the sums' weight; sum[i] = score * (i + 1) + sum[i] * old. `rounds`: in %r10.
/// `is_shared`: rows are read from shared memory, which they fill.
std::string scores_text(bool is_shared, bool is_written, bool leaves_alone) {
    const auto number = [](unsigned n) { return std::to_string(n); };
    std::string text = ".reg .f32 %w<32>, %s<64>; mov.u32 %r1, rows; mul.wide.u32 %l1, %r60, 4; mov.u64 %l2, %l60; mov.u32 %r2, %r60;\n";
    // Rows of all rounds into shared memory: 16 rows.
    text += "fill:\nmul.wide.u32 %l3, %r2, 4; add.u64 %l3, %l3, %l60; ld.global.f32 %f1, [%l3]; shl.b32 %r3, %r2, 2; add.u32 %r3, %r3, %r1; st.shared.f32 [%r3], %f1;\n"
            "add.u32 %r2, %r2, " + number(threads) + "; setp.lt.u32 %p1, %r2, " + number(16 * width) + "; @%p1 bra fill;\nbar.sync 0;\n"
            "ld.global.u32 %r10, [%l62];\n";
    if (leaves_alone) text += "and.b32 %r11, %r60, 3; sub.u32 %r10, %r10, %r11; max.s32 %r10, %r10, 1;\n";
    for (unsigned i = 0; i < width; ++i) text += "cvt.rn.f32.u32 %w" + number(i) + ", %r60; mul.rn.f32 %w" + number(i) + ", %w" + number(i) + ", 0f3c" + (i < 10 ? "0" : "1") + number(i % 10) + "0000;\n";
    for (unsigned i = 0; i < sums; ++i) text += "mov.f32 %s" + number(i) + ", 0f00000000;\n";
    text += "mov.u32 %r4, 0;\nloop:\n";
    if (is_shared)
        text += "mul.lo.u32 %r5, %r4, " + number(4 * width) + "; add.u32 %r5, %r5, %r1;\n";
    else
        text += "mul.wide.u32 %l4, %r4, " + number(4 * width) + "; add.u64 %l4, %l4, %l60;\n";
    text += "mov.f32 %f2, 0f00000000;\n";
    for (unsigned i = 0; i < width; ++i)
        text += std::string(is_shared ? "ld.shared.f32 %f1, [%r5+" : "ld.global.f32 %f1, [%l4+") + number(4 * i) + "]; fma.rn.f32 %f2, %w" + number(i) + ", %f1, %f2;\n";
    if (is_written) text += "st.shared.f32 [%r5], %f2;\n"; // the row's first word, which no later round reads
    text += "mul.rn.f32 %f3, %s0, 0f3f400000; add.rn.f32 %f3, %f3, 0f3e800000; mul.rn.f32 %f3, %f3, 0f3e800000;\n";
    for (unsigned i = 0; i < sums; ++i)
        text += "mul.rn.f32 %f4, %s" + number(i) + ", %f3; cvt.rn.f32.u32 %f5, %r4; add.rn.f32 %f5, %f5, 0f3f800000; fma.rn.f32 %s" + number(i) + ", %f2, %f5, %f4; mul.rn.f32 %s" + number(i) + ", %s" + number(i) + ", 0f3f000000;\n";
    text += "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r10; @%p1 bra loop;\n"
            "mul.wide.u32 %l1, %r60, " + number(4 * sums) + "; add.u64 %l1, %l1, %l61;\n";
    for (unsigned i = 0; i < sums; ++i) text += "st.global.f32 [%l1+" + number(4 * i) + "], %s" + number(i) + ";\n";
    return text;
}

float of_bits(std::uint32_t word) {
    float value;
    std::memcpy(&value, &word, 4);
    return value;
}

} // namespace

TEST_CASE("scores of rows and sums that hang on the rounds before", "[kernels][barriers][memory][products]") {
    const bool is_shared = GENERATE(true, false), is_written = GENERATE(false, true), leaves_alone = GENERATE(false, true);
    const unsigned rounds = GENERATE(1u, 2u, 7u, 16u);
    if (is_written && (!is_shared || leaves_alone)) return;
    CAPTURE(is_shared, is_written, leaves_alone, rounds);
    std::mt19937 random(rounds);
    std::uniform_real_distribution<float> numbers(-1, 1);
    std::vector<float> rows(16 * width);
    for (float& each : rows) each = numbers(random);
    // Exactly the rows: what lies behind the last one may not be read.
    Array<float> device_rows(rows), out(threads * sums);
    Array<std::uint32_t> device_rounds(std::vector<std::uint32_t>{rounds});
    run(scores_text(is_shared, is_written, leaves_alone), {1}, {is_written ? 1u : threads}, {device_rows.address(), out.address(), device_rounds.address()},
        ".shared .align 4 .f32 rows[" + std::to_string(16 * width) + "];\n");
    const std::vector<float> got = out.values();
    unsigned wrong = 0;
    for (unsigned t = 0; t < (is_written ? 1u : threads); ++t) {
        float sum[sums] = {};
        const int own = leaves_alone ? std::max(1, int(rounds) - int(t & 3)) : int(rounds);
        for (int j = 0; j < own; ++j) {
            float score = 0;
            for (unsigned i = 0; i < width; ++i) {
                const unsigned digits = 0x3c000000u + (i / 10 << 20) + (i % 10 << 16);
                score = std::fma(float(t) * of_bits(digits), rows[unsigned(j) * width + i], score);
            }
            const float old = (sum[0] * 0.75f + 0.25f) * 0.25f;
            for (float& each : sum) each = std::fma(score, float(j) + 1, each * old) * 0.5f;
        }
        for (unsigned i = 0; i < sums; ++i) wrong += sum[i] != got[t * sums + i];
    }
    CHECK(wrong == 0);
}
