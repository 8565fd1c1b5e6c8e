// SPDX-License-Identifier: Apache-2.0
// Quotients and remainders of threads' numbers, for which code comes in versions (analysis/shapes/lane_agreement.h): the same in all
// lanes, in some, of numbers that wrap around, by zero and by negative numbers.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <limits>
#include <type_traits>

using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 96, ctas = 2, count = threads * ctas;

/// As the H200 divides: by zero all ones and the dividend's, which is all ones, too.
template <typename T> T quotient(T a, T b) {
    if (b == 0) return T(-1);
    if (std::is_signed_v<T> && b == T(-1)) return T(0 - std::make_unsigned_t<T>(a));
    return T(a / b);
}

/// `start` + the thread's number, divided by `divisor`; then three times the same, `step` further each, in a loop that
/// threads leave after the rounds that the quotient says, modulo 4.
template <typename T> std::uint32_t expected(std::uint32_t thread, T start, T divisor, T step) {
    using U = std::make_unsigned_t<T>;
    T i = T(U(start) + U(thread));
    const T rounds = quotient(i, divisor);
    U sum = U(rounds) * 3;
    for (U k = U(rounds) & 3; k != 0; --k) {
        const T q = quotient(i, divisor);
        sum = sum * 5 + U(q) + (U(i) - U(q) * U(divisor));
        i = T(U(i) + U(step));
    }
    return std::uint32_t(sum);
}

template <typename T> void check(T start, T divisor, T step) {
    const std::string type = std::is_signed_v<T> ? "s32" : "u32";
    Array<std::uint32_t> out(count);
    run("cvt.u32.u64 %r1, %l61; cvt.u32.u64 %r2, %l62; cvt.u32.u64 %r3, %l63; add.u32 %r4, %r62, %r1;\n"
        "div." + type + " %r5, %r4, %r2; mul.lo.u32 %r6, %r5, 3; and.b32 %r7, %r5, 3; setp.eq.u32 %p1, %r7, 0;\n"
        "@%p1 bra DONE;\nLOOP:\n"
        "div." + type + " %r8, %r4, %r2; mul.lo.u32 %r9, %r8, %r2; sub.u32 %r10, %r4, %r9; mad.lo.u32 %r6, %r6, 5, %r8; add.u32 %r6, %r6, %r10;\n"
        "add.u32 %r4, %r4, %r3; sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0;\n@%p1 bra LOOP;\nDONE:\n"
        "mul.wide.u32 %l1, %r62, 4; add.u64 %l1, %l1, %l60; st.global.u32 [%l1], %r6;",
        {ctas}, {threads},
        {out.address(), std::uint64_t(std::uint32_t(start)), std::uint64_t(std::uint32_t(divisor)), std::uint64_t(std::uint32_t(step))});
    const auto results = out.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; ++i) wrong += results[i] != expected<T>(i, start, divisor, step);
    INFO(type << ' ' << start << " / " << divisor << ", " << step);
    CHECK(wrong == 0);
}

} // namespace

TEST_CASE("quotients of threads' numbers, uniform or not", "[kernels][quotients]") {
    using S = std::numeric_limits<std::int32_t>;
    for (std::int32_t divisor : {1000, 64, 7, 1, 0, -1, -64, S::min(), S::max()})
        for (std::int32_t start : {0, 1000, -50, S::max() - 40, S::min(), S::max() - 127}) {
            check<std::int32_t>(start, divisor, 32);
            check<std::uint32_t>(std::uint32_t(start), std::uint32_t(divisor), 77);
        }
}

TEST_CASE("remainders, stores and loads behind uniform quotients in a loop", "[kernels][quotients]") {
    const std::uint32_t columns = GENERATE(128u, 40u, 3u);
    Array<std::uint32_t> out(700);
    std::vector<std::uint32_t> numbers(128);
    for (std::uint32_t i = 0; i < 128; ++i) numbers[i] = i * i + 1;
    Array<std::uint32_t> in(numbers);
    // out[i] = in[i % columns] + i / columns, the grid twice over what it is long.
    run("cvt.u32.u64 %r2, %l62; mov.u32 %r4, %r62; mov.u32 %r20, %nctaid.x; mov.u32 %r21, %ntid.x; mul.lo.u32 %r20, %r20, %r21;\nLOOP:\n"
        "rem.u32 %r5, %r4, %r2; div.u32 %r6, %r4, %r2; mul.wide.u32 %l1, %r5, 4; add.u64 %l1, %l1, %l61; ld.global.u32 %r7, [%l1];\n"
        "add.u32 %r7, %r7, %r6; mul.wide.u32 %l2, %r4, 4; add.u64 %l2, %l2, %l60; st.global.u32 [%l2], %r7;\n"
        "add.u32 %r4, %r4, %r20; setp.lt.u32 %p1, %r4, 700;\n@%p1 bra LOOP;",
        {ctas}, {threads}, {out.address(), in.address(), columns});
    const auto results = out.values();
    unsigned wrong = 0;
    for (std::uint32_t i = 0; i < 700; ++i) wrong += results[i] != numbers[i % columns] + i / columns;
    CHECK(wrong == 0);
}

TEST_CASE("quotients by any reciprocal, of numbers that wrap, too", "[kernels][quotients]") {
    for (std::uint32_t start : {0u, 1000u, 0x7fffffe0u, 0x7fffff90u, 0x80000000u, 0xffffffe0u, 0xffffff50u})
        for (std::uint32_t factor : {0u, 1u, 0x24924925u, 0x80000000u, 0xffffffffu})
            for (std::uint32_t shift : {0u, 3u, 6u, 31u, 32u, 77u}) {
                Array<std::uint32_t> out(2 * count);
                // As nvcc writes it, and as ptxas' machine code is read: in both a sum that may wrap.
                run("cvt.u32.u64 %r1, %l61; cvt.u32.u64 %r2, %l62; cvt.u32.u64 %r3, %l63; add.u32 %r4, %r62, %r1; mul.hi.u32 %r5, %r4, %r2;\n"
                    "add.u32 %r5, %r5, %r4; shr.u32 %r5, %r5, %r3; mad.lo.u32 %r6, %r5, 77, %r4; add.u32 %r4, %r4, 5; mov.b64 %l1, {0, %r4};\n"
                    "mad.wide.u32 %l1, %r4, %r2, %l1; mov.b64 {%r7, %r8}, %l1; shr.u32 %r8, %r8, %r3; mad.lo.u32 %r9, %r8, 77, %r4;\n"
                    "mul.wide.u32 %l2, %r62, 8; add.u64 %l2, %l2, %l60; st.global.v2.u32 [%l2], {%r6, %r9};",
                    {ctas}, {threads}, {out.address(), start, factor, shift});
                const auto results = out.values();
                unsigned wrong = 0;
                for (std::uint32_t t = 0; t < 2 * count; ++t) {
                    const std::uint32_t i = start + t / 2 + 5 * (t % 2), sum = std::uint32_t(std::uint64_t(i) * factor >> 32) + i;
                    wrong += results[t] != (shift > 31 ? 0 : sum >> shift) * 77 + i;
                }
                INFO(start << " by " << factor << ", " << shift);
                CHECK(wrong == 0);
            }
}

TEST_CASE("elements of matrices by reciprocals and strides, two a thread", "[kernels][quotients]") {
    // columns, and bytes from column to column
    const auto [columns, stride] = GENERATE(table<std::uint32_t, std::uint32_t>({{64, 4}, {64, 0}, {64, 8}, {128, 4}, {40, 4}, {40, 0}, {7, 4}, {7, 12}, {1, 4}, {300, 4}}));
    std::uint32_t shift = 0;
    while ((1u << shift) < columns) ++shift;
    const auto factor = std::uint32_t((std::uint64_t(1) << 32) * ((std::uint64_t(1) << shift) - columns) / columns + 1);
    const std::uint32_t n = GENERATE(384u, 383u, 300u, 200u, 5u);
    std::vector<std::uint32_t> numbers(2048);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i * i + 1;
    Array<std::uint32_t> in(numbers), out(384);
    // if (i < n) out[i] = in[column * stride + row]; i += 192; again
    const std::string element = "mul.hi.u32 %r5, %r4, %r2; add.u32 %r5, %r5, %r4; shr.u32 %r5, %r5, %r3; mul.lo.u32 %r6, %r5, %r7; sub.u32 %r6, %r4, %r6;\n"
                                "mul.lo.u32 %r6, %r6, %r8; mad.lo.u32 %r6, %r5, 4, %r6; cvt.u64.u32 %l1, %r6; add.s64 %l1, %l61, %l1; ld.global.u32 %r9, [%l1];\n"
                                "mul.wide.s32 %l2, %r4, 4; add.s64 %l2, %l60, %l2; st.global.u32 [%l2], %r9; add.s32 %r4, %r4, 192;\n";
    run("cvt.u32.u64 %r2, %l62; shr.u64 %l3, %l62, 32; cvt.u32.u64 %r1, %l3; cvt.u32.u64 %r3, %l63; and.b32 %r7, %r3, 65535; shr.u32 %r8, %r3, 16;\n"
        "shr.u64 %l3, %l63, 32; cvt.u32.u64 %r3, %l3; mov.u32 %r4, %r62; setp.ge.s32 %p1, %r4, %r1;\n@%p1 bra SECOND;\n" +
            element + "SECOND:\nsetp.ge.s32 %p2, %r4, %r1;\n@%p2 bra DONE;\n" + element + "DONE:",
        {ctas}, {threads},
        {out.address(), in.address(), factor | std::uint64_t(n) << 32, columns | stride << 16 | std::uint64_t(shift) << 32});
    const auto results = out.values();
    unsigned wrong = 0;
    for (std::uint32_t i = 0; i < 384; ++i) wrong += results[i] != (i < n ? numbers[i % columns * stride / 4 + i / columns] : 0);
    INFO(columns << " columns " << stride << " bytes apart, " << n);
    CHECK(wrong == 0);
}

TEST_CASE("quotients that all threads of a CTA share, or those of a step, or none", "[kernels][quotients]") {
    // columns; threads of a CTA; the first thread's number
    const std::uint32_t columns = GENERATE(1u, 7u, 32u, 64u, 96u, 100u, 1000u, 0x40000000u, 0u);
    const std::uint32_t of_cta = GENERATE(64u, 96u, 100u), start = GENERATE(0u, 37u, 0x7fffffc0u, 0xffffffb0u);
    const std::uint32_t n = 3 * of_cta, bound = start + 2 * of_cta + 9;
    std::vector<std::uint32_t> numbers(1024);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i * i + 1;
    Array<std::uint32_t> in(numbers), out(2 * n);
    // i = start + thread; if (i < bound) out[2 * thread] = in[i % columns % 1024] + i / columns; else out[2 * thread + 1] = i
    run("cvt.u32.u64 %r1, %l62; cvt.u32.u64 %r2, %l63; shr.u64 %l1, %l63, 32; cvt.u32.u64 %r3, %l1; add.u32 %r4, %r62, %r1;\n"
        "mul.wide.u32 %l2, %r62, 8; add.u64 %l2, %l2, %l60; setp.ge.u32 %p1, %r4, %r3;\n@%p1 bra BEYOND;\n"
        "div.u32 %r5, %r4, %r2; rem.u32 %r6, %r4, %r2; and.b32 %r6, %r6, 1023; mul.wide.u32 %l3, %r6, 4; add.u64 %l3, %l3, %l61;\n"
        "ld.global.u32 %r7, [%l3]; add.u32 %r7, %r7, %r5; st.global.u32 [%l2], %r7; bra.uni DONE;\n"
        "BEYOND:\nst.global.u32 [%l2+4], %r4;\nDONE:",
        {3}, {of_cta}, {out.address(), in.address(), start, columns | std::uint64_t(bound) << 32});
    const auto results = out.values();
    unsigned wrong = 0;
    for (std::uint32_t t = 0; t < n; ++t) {
        const std::uint32_t i = start + t, q = quotient(i, columns), rest = columns == 0 ? 0xffffffffu : i - q * columns;
        wrong += results[2 * t] != (i < bound ? numbers[rest & 1023] + q : 0) || results[2 * t + 1] != (i < bound ? 0 : i);
    }
    INFO(columns << " columns, CTAs of " << of_cta << " from " << start);
    CHECK(wrong == 0);
}

TEST_CASE("bounds that lanes pass together, in part, or not at all", "[kernels][quotients]") {
    std::vector<std::uint32_t> numbers(count + 2);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i * 7 + 3;
    Array<std::uint32_t> in(numbers);
    const auto [low, high] = GENERATE(table<int, int>({{0, int(count)}, {1, int(count) - 1}, {5, 9}, {40, 150}, {64, 128}, {-3, 1000}, {100, 20}}));
    Array<std::uint32_t> out(count);
    // if (i >= low && i < high) out[i] = in[i] + in[i + 1] + in[i + 2]
    run("cvt.u32.u64 %r2, %l62; cvt.u32.u64 %r3, %l63; setp.ge.s32 %p1, %r62, %r2; setp.lt.s32 %p2, %r62, %r3; and.pred %p1, %p1, %p2;\n"
        "@!%p1 bra DONE;\nadd.s32 %r5, %r62, 1; mul.wide.s32 %l1, %r62, 4; mul.wide.s32 %l2, %r5, 4; add.s64 %l3, %l61, %l1; add.s64 %l4, %l61, %l2;\n"
        "ld.global.u32 %r6, [%l3]; ld.global.u32 %r7, [%l4]; ld.global.u32 %r8, [%l4+4]; add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8;\n"
        "add.s64 %l5, %l60, %l1; st.global.u32 [%l5], %r6;\nDONE:",
        {ctas}, {threads}, {out.address(), in.address(), std::uint64_t(std::uint32_t(low)), std::uint64_t(std::uint32_t(high))});
    const auto results = out.values();
    unsigned wrong = 0;
    for (int i = 0; i < int(count); ++i)
        wrong += results[i] != (i >= low && i < high ? numbers[i] + numbers[i + 1] + numbers[i + 2] : 0);
    CHECK(wrong == 0);
}

TEST_CASE("indices that wrap in some lanes of a step", "[kernels][quotients]") {
    const std::uint32_t from = GENERATE(0u, 10u, 32u, 50u, 150u), start = 0u - from; // thread `from` has index 0
    Array<std::uint32_t> before(count), behind(count);
    // Elements at start + thread: of one array below zero, of the other from zero on.
    run("cvt.u32.u64 %r2, %l62; add.u32 %r4, %r62, %r2; setp.lt.u32 %p1, %r62, 1000;\n@!%p1 bra DONE;\n"
        "mul.wide.u32 %l1, %r4, 4; setp.lt.u32 %p3, %r4, 100000; selp.b64 %l2, %l61, %l60, %p3; add.s64 %l2, %l2, %l1; st.global.u32 [%l2], %r62;\nDONE:",
        {ctas}, {threads}, {before.address() - 4 * std::uint64_t(start), behind.address(), start});
    const auto low = before.values(), high = behind.values();
    unsigned wrong = 0;
    for (std::uint32_t i = 0; i < count; ++i) wrong += i < from ? low[i] != i : high[i - from] != i;
    CHECK(wrong == 0);
}

TEST_CASE("atomics of whole steps in shared memory, lanes at any words", "[kernels][quotients][atomics]") {
    Array<std::uint32_t> out(128);
    // 64 bins at (t * t) % 64 and what each addition found, summed; the second half beyond the first.
    run("shl.b32 %r1, %r60, 2; mov.u32 %r2, bins; add.u32 %r1, %r1, %r2; mov.b32 %r3, 0; st.shared.u32 [%r1], %r3; st.shared.u32 [%r1+256], %r3; bar.sync 0;\n"
        "mul.lo.u32 %r4, %r60, %r60; and.b32 %r4, %r4, 63; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r2;\n"
        "atom.shared.add.u32 %r5, [%r4], 3; red.shared.max.u32 [%r4+256], %r60; bar.sync 0;\n"
        "mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; ld.shared.u32 %r6, [%r1]; ld.shared.u32 %r7, [%r1+256]; mad.lo.u32 %r6, %r6, 1000, %r7;\n"
        "st.global.u32 [%l1], %r6; rem.u32 %r5, %r5, 3; st.global.u32 [%l1+256], %r5;",
        {1}, {64}, {out.address()}, ".shared .align 4 .b32 bins[128];");
    const auto results = out.values();
    std::vector<std::uint32_t> sums(64), highest(64);
    for (std::uint32_t t = 0; t < 64; ++t) sums[t * t % 64] += 3, highest[t * t % 64] = t;
    for (std::uint32_t t = 0; t < 64; ++t) {
        CHECK(results[t] == sums[t] * 1000 + highest[t]);
        CHECK(results[64 + t] == 0);
    }
}
