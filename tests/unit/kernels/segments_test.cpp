// SPDX-License-Identifier: Apache-2.0
// What lies between barriers in two versions (analysis/shapes/segment_versions.h): walks through an array by the block's size,
// unrolled as compilers do, whose rounds lanes share or not; and values that all steps load from the same place.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;

namespace {

constexpr std::uint32_t threads = 128;

std::uint32_t step_sum(std::uint32_t sum, std::uint32_t number) {
    return sum * 3 + number;
}

/// A thread's walk from `t` on, as the kernel below does it: rounds modulo 4, then four at a time.
std::uint32_t walk(std::int32_t t, std::int32_t n, const std::vector<std::uint32_t>& in, std::uint32_t sum) {
    if (t >= n) return sum;
    const std::uint32_t distance = std::uint32_t(n) - 1 - std::uint32_t(t);
    const std::uint32_t rounds = (distance >> 7) + 1;
    auto i = std::uint32_t(t);
    for (std::uint32_t k = rounds & 3; k != 0; --k, i += 128) sum = step_sum(sum, in[i & 1023] + i);
    if (distance < 384) return sum;
    for (std::uint32_t k = (rounds >> 2) & 7; k != 0; --k)
        for (unsigned each = 0; each < 4; ++each, i += 128) sum = step_sum(sum, in[i & 1023]);
    return sum;
}

/// One walk, with labels that end in `id`: of thread number %r10, limit %r2, sum %r6. `again`: with the rounds of before.
std::string walk_text(const std::string& id, bool again) {
    const std::string one = "and.b32 %r20, %r5, 1023; mul.wide.u32 %l1, %r20, 4; add.u64 %l1, %l1, %l61; ld.global.u32 %r21, [%l1];\n";
    std::string text = "setp.ge.s32 %p1, %r10, %r2;\n@%p1 bra DONE" + id + ";\n";
    if (!again) text += "not.b32 %r11, %r10; add.s32 %r11, %r11, %r2; shr.u32 %r12, %r11, 7; add.u32 %r12, %r12, 1;\n";
    text += "and.b32 %r13, %r12, 3; setp.eq.u32 %p2, %r13, 0; mov.u32 %r5, %r10;\n@%p2 bra MORE" + id + ";\nFEW" + id + ":\n" + one +
            "add.u32 %r21, %r21, %r5; mad.lo.u32 %r6, %r6, 3, %r21; add.u32 %r5, %r5, 128; sub.u32 %r13, %r13, 1;\n"
            "setp.ne.u32 %p2, %r13, 0;\n@%p2 bra FEW" + id + ";\nMORE" + id + ":\n"
            "setp.lt.u32 %p3, %r11, 384;\n@%p3 bra DONE" + id + ";\nshr.u32 %r14, %r12, 2; and.b32 %r14, %r14, 7; setp.eq.u32 %p3, %r14, 0;\n"
            "@%p3 bra DONE" + id + ";\nFOUR" + id + ":\n";
    for (unsigned each = 0; each < 4; ++each) text += one + "mad.lo.u32 %r6, %r6, 3, %r21; add.u32 %r5, %r5, 128;\n";
    text += "sub.u32 %r14, %r14, 1; setp.ne.u32 %p3, %r14, 0;\n@%p3 bra FOUR" + id + ";\nDONE" + id + ":\n";
    return text;
}

} // namespace

TEST_CASE("walks between barriers by the block's size", "[kernels][barriers][quotients]") {
    std::vector<std::uint32_t> numbers(1024);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i * i + 7;
    Array<std::uint32_t> in(numbers);
    const std::int32_t start = GENERATE(0, 3, -40, 2147483647 - 60, 2147483647 - 127);
    for (const std::int32_t n : {0, 1, 40, 127, 128, 129, 160, 300, 383, 384, 385, 512, 640, 1000, 2900, -5, 2147483647}) {
        Array<std::uint32_t> out(threads);
        // In the second walk the rounds are those of the first one, where the thread came to it; else zero.
        run("cvt.u32.u64 %r2, %l62; cvt.u32.u64 %r1, %l63; add.s32 %r10, %r60, %r1; mov.u32 %r6, 1; mov.u32 %r12, 0; mov.u32 %r11, 0;\n" +
                walk_text("A", false) +
                "mov.u32 %r30, words; shl.b32 %r31, %r60, 2; add.u32 %r30, %r30, %r31; st.shared.u32 [%r30], %r6;\nbar.sync 0;\n"
                "xor.b32 %r32, %r60, 1; shl.b32 %r32, %r32, 2; mov.u32 %r33, words; add.u32 %r33, %r33, %r32; ld.shared.u32 %r34, [%r33];\n"
                "add.u32 %r6, %r6, %r34;\n" +
                walk_text("B", true) + "bar.sync 0;\nmul.wide.u32 %l2, %r60, 4; add.u64 %l2, %l2, %l60; st.global.u32 [%l2], %r6;",
            {1}, {threads}, {out.address(), in.address(), std::uint64_t(std::uint32_t(n)), std::uint64_t(std::uint32_t(start))},
            ".shared .b32 words[128];");
        const auto results = out.values();
        std::vector<std::uint32_t> first(threads);
        const auto number = [&](std::uint32_t t) { return std::int32_t(t + std::uint32_t(start)); };
        for (std::uint32_t t = 0; t < threads; ++t) first[t] = walk(number(t), n, numbers, 1);
        unsigned wrong = 0;
        for (std::uint32_t t = 0; t < threads; ++t) wrong += results[t] != walk(number(t), n, numbers, first[t] + first[t ^ 1]);
        INFO("from " << start << " below " << n);
        CHECK(wrong == 0);
    }
}

TEST_CASE("what all steps load between two barriers, and some of them write", "[kernels][barriers]") {
    // Every thread adds up row[lane % 16 + 16 k]; with `writes` the threads of the third step change row[0] first.
    const bool writes = GENERATE(false, true);
    Array<std::uint32_t> out(threads);
    std::string sums;
    for (unsigned k = 0; k < 8; ++k) sums += "ld.shared.u32 %r5, [%r3+" + std::to_string(64 * k) + "]; mad.lo.u32 %r6, %r6, 7, %r5;\n";
    run("mov.u32 %r1, row; shl.b32 %r2, %r60, 2; add.u32 %r2, %r1, %r2; mul.lo.u32 %r4, %r60, %r60; st.shared.u32 [%r2], %r4;\nbar.sync 0;\n" +
            std::string(writes ? "setp.lt.u32 %p1, %r60, 64;\n@%p1 bra READ;\nmov.u32 %r7, 5; st.shared.u32 [%r1], %r7;\nREAD:\n" : "") +
            "and.b32 %r3, %r60, 15; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r1; mov.u32 %r6, 0;\n" + sums +
            "bar.sync 0;\nmul.wide.u32 %l2, %r60, 4; add.u64 %l2, %l2, %l60; st.global.u32 [%l2], %r6;",
        {1}, {threads}, {out.address()}, ".shared .b32 row[128];");
    const auto results = out.values();
    unsigned wrong = 0;
    for (std::uint32_t t = 0; t < threads; ++t) {
        std::uint32_t sum = 0, changed = 0;
        for (std::uint32_t k = 0; k < 8; ++k) {
            const std::uint32_t at = t % 16 + 16 * k;
            sum = sum * 7 + at * at;
            changed = changed * 7 + (at == 0 ? 5 : at * at);
        }
        // Others may have written before or not: either is right, but for those that wrote themselves.
        wrong += writes && t >= 64 ? results[t] != changed : results[t] != sum && !(writes && results[t] == changed);
    }
    CHECK(wrong == 0);
}

TEST_CASE("stores that leave out elements, by whole steps and parts", "[kernels][memory]") {
    // Thread t < limit stores 32 or 64 bits to every `stride`-th element, of global and of shared memory; what lies between stays.
    const auto [stride, limit, wide] = GENERATE(table<unsigned, unsigned, bool>(
        {{2, 96, false}, {3, 96, false}, {4, 96, false}, {5, 96, false}, {2, 50, false}, {4, 7, false}, {2, 96, true}, {3, 70, true}}));
    const unsigned words = wide ? 2 : 1, count = 96 * stride * words;
    std::vector<std::uint32_t> before(count);
    for (unsigned i = 0; i < count; ++i) before[i] = 1000000 + i;
    Array<std::uint32_t> out(before), copy(before);
    const std::string store = wide ? "u64 [%l1], %l9" : "u32 [%l1], %r60", shared_store = wide ? "u64 [%r5], %l9" : "u32 [%r5], %r60";
    const std::string bytes = std::to_string(4 * stride * words);
    run("cvt.u32.u64 %r2, %l62; mov.u32 %r3, place; mov.u32 %r4, %r60;\n"
        "mov.b64 %l9, {%r60, %r60};\nFILL:\nmul.wide.u32 %l3, %r4, 4; add.u64 %l3, %l3, %l61; ld.global.u32 %r6, [%l3]; shl.b32 %r7, %r4, 2; add.u32 %r7, %r7, %r3;\n"
        "st.shared.u32 [%r7], %r6; add.u32 %r4, %r4, 96; setp.lt.u32 %p1, %r4, " + std::to_string(count) + ";\n@%p1 bra FILL;\nbar.sync 0;\n"
        "setp.ge.u32 %p2, %r60, %r2;\n@%p2 bra AFTER;\nmul.wide.u32 %l1, %r60, " + bytes + "; add.u64 %l1, %l1, %l60; st.global." + store + ";\n"
        "mad.lo.u32 %r5, %r60, " + bytes + ", %r3; st.shared." + shared_store + ";\nAFTER:\nbar.sync 0;\nmov.u32 %r4, %r60;\n"
        "BACK:\nmul.wide.u32 %l3, %r4, 4; add.u64 %l3, %l3, %l61; shl.b32 %r7, %r4, 2; add.u32 %r7, %r7, %r3; ld.shared.u32 %r6, [%r7]; st.global.u32 [%l3], %r6;\n"
        "add.u32 %r4, %r4, 96; setp.lt.u32 %p1, %r4, " + std::to_string(count) + ";\n@%p1 bra BACK;",
        {1}, {96}, {out.address(), copy.address(), limit}, ".shared .align 8 .b32 place[" + std::to_string(count) + "];");
    const auto stored = out.values(), from_shared = copy.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned t = i / words / stride;
        const bool is_target = i / words % stride == 0 && t < limit;
        const std::uint32_t expected = is_target ? t : before[i];
        wrong += stored[i] != expected;
        wrong += from_shared[i] != expected;
    }
    CHECK(wrong == 0);
}

TEST_CASE("tiles that are stored transposed", "[kernels][barriers][memory]") {
    // 16 x 16 threads: tile[x][y + 16 i] = in[256 i + 16 y + x] + 1, a row of 64 words for each x; with `meets` also tile[0][y + 32] = 5 or
    // a read of what others store; then the tile is read row by row.
    const unsigned pitch = GENERATE(64u, 65u), meets = GENERATE(0u, 1u, 2u);
    std::vector<std::uint32_t> numbers(1024);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i * 7 + 1;
    Array<std::uint32_t> in(numbers), out(1024), seen(256);
    std::string body = "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r3, %r2, 16, %r1; mov.u32 %r4, tile;\n"
                       "mul.lo.u32 %r5, %r1, " + std::to_string(4 * pitch) + "; add.u32 %r5, %r5, %r4; shl.b32 %r6, %r2, 2; add.u32 %r5, %r5, %r6;\n"
                       "mul.wide.u32 %l1, %r3, 4; add.u64 %l1, %l1, %l61; mul.wide.u32 %l2, %r3, 4; add.u64 %l2, %l2, %l60; mul.wide.u32 %l3, %r3, 4; add.u64 %l3, %l3, %l62;\n";
    for (unsigned i = 0; i < 4; ++i) {
        body += "ld.global.u32 %r7, [%l1+" + std::to_string(1024 * i) + "]; add.u32 %r7, %r7, 1; st.shared.u32 [%r5+" + std::to_string(64 * i) + "], %r7;\n";
        if (i == 2 && meets == 1) body += "add.u32 %r8, %r4, %r6; mov.u32 %r9, 5; st.shared.u32 [%r8+128], %r9;\n";
    }
    if (meets == 2) body += "ld.shared.u32 %r9, [%r5+64]; st.global.u32 [%l3], %r9;\n";
    body += "bar.sync 0;\nshl.b32 %r8, %r3, 2; add.u32 %r8, %r8, %r4;\n";
    // Words 256 i + 16 y + x of what is one array of `pitch` words a row.
    for (unsigned i = 0; i < 4; ++i)
        body += "ld.shared.u32 %r9, [%r8+" + std::to_string(1024 * i) + "]; st.global.u32 [%l2+" + std::to_string(1024 * i) + "], %r9;\n";
    run(body, {1}, {16, 16}, {out.address(), in.address(), seen.address()}, ".shared .align 4 .b32 tile[1040];");
    std::vector<std::uint32_t> tile(1040, 0);
    std::vector<bool> known(1040, false);
    for (unsigned i = 0; i < 4; ++i)
        for (unsigned y = 0; y < 16; ++y)
            for (unsigned x = 0; x < 16; ++x) {
                const unsigned at = x * pitch + y + 16 * i;
                tile[at] = numbers[256 * i + 16 * y + x] + 1;
                known[at] = true;
            }
    for (unsigned at = 32; at < 48 && meets == 1; ++at) tile[at] = 5; // by the thread that has stored the other, too
    const auto results = out.values(), own = seen.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < 1024; ++i) wrong += known[i] && results[i] != tile[i];
    for (unsigned t = 0; t < 256 && meets == 2; ++t) wrong += own[t] != tile[t % 16 * pitch + t / 16 + 16];
    INFO(pitch << ' ' << meets);
    CHECK(wrong == 0);
}
