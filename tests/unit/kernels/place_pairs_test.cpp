// SPDX-License-Identifier: Apache-2.0
// Loads whose lanes choose between two places by one bit (translator/lower/place_pairs.h): every size, guarded or not, and
// neither place is touched unless an active lane wants it.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;

namespace {

constexpr std::uint32_t threads = 96;

/// A word for each thread whose bit 3 is the choice, whose bit 0 lets it load.
std::vector<std::uint32_t> words(unsigned kind) {
    std::vector<std::uint32_t> result(threads);
    for (std::uint32_t t = 0; t < threads; ++t) {
        const std::uint32_t mixed = t * 2654435761u;
        const std::uint32_t choice = kind == 0 ? 0 : kind == 1 ? 8 : mixed >> 9 & 8, loads = kind == 3 ? mixed >> 20 & 1 : kind != 4;
        result[t] = (mixed & ~9u) | choice | loads;
    }
    return result;
}
/// %r1: the word; %p1: it may load; %l2: `table` + (bit 3 ? 1 << shift : 0).
std::string choose(const std::string& table, unsigned shift) {
    return "mul.wide.u32 %l1, %r60, 4; add.u64 %l3, %l1, %l61; ld.global.u32 %r1, [%l3]; and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;\n"
           "shr.u32 %r3, %r1, 3; and.b32 %r4, %r3, 1; cvt.u64.u32 %l2, %r4; shl.b64 %l2, %l2, " +
           std::to_string(shift) + "; add.u64 %l2, %l2, " + table + "; add.u64 %l4, %l1, %l60; mov.u32 %r10, 77;\n";
}

} // namespace

TEST_CASE("loads from one of two places", "[kernels][memory]") {
    std::vector<std::uint32_t> numbers(64);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i * i * 0x01030507 + 7;
    Array<std::uint32_t> table(numbers);
    const unsigned kind = GENERATE(0, 1, 2, 3, 4);
    const std::vector<std::uint32_t> in = words(kind);
    Array<std::uint32_t> choices(in), out(threads);
    const auto check = [&](const char* what, const std::string& load, auto expected) {
        run(choose("%l62", 6) + load + "st.global.u32 [%l4], %r10;", {1}, {threads}, {out.address(), choices.address(), table.address()});
        const auto results = out.values();
        unsigned wrong = 0;
        for (std::uint32_t t = 0; t < threads; ++t) {
            const std::uint32_t* row = numbers.data() + (in[t] & 8 ? 16 : 0);
            wrong += results[t] != (in[t] & 1 ? expected(row) : 77);
        }
        INFO(what << ", kind " << kind);
        CHECK(wrong == 0);
    };
    check("u32", "@%p1 ld.global.u32 %r10, [%l2+4];\n", [](const std::uint32_t* row) { return row[1]; });
    check("u8", "@%p1 ld.global.u8 %r10, [%l2+6];\n", [](const std::uint32_t* row) { return row[1] >> 16 & 255; });
    check("v4.u8", "@%p1 ld.global.v4.u8 {%r11, %r12, %r13, %r14}, [%l2+8];\n@%p1 add.u32 %r10, %r11, %r14;\n",
          [](const std::uint32_t* row) { return (row[2] & 255) + (row[2] >> 24); });
    check("v2.u64 and what follows it",
          "@%p1 ld.global.nc.v2.u64 {%l10, %l11}, [%l2+16];\n@%p1 ld.global.nc.v2.u64 {%l12, %l13}, [%l2+32];\n"
          "@%p1 xor.b64 %l14, %l10, %l13; @%p1 add.u64 %l14, %l14, %l11; @%p1 sub.u64 %l14, %l14, %l12; @%p1 cvt.u32.u64 %r10, %l14;\n",
          [](const std::uint32_t* row) { return (row[4] ^ row[10]) + row[6] - row[8]; });
    check("f64", "@%p1 ld.global.f64 %d1, [%l2+24]; @%p1 mov.b64 %l10, %d1; @%p1 shr.u64 %l10, %l10, 32; @%p1 cvt.u32.u64 %r10, %l10;\n",
          [](const std::uint32_t* row) { return row[7]; });
    if (kind < 3) // everybody loads, without asking
        check("all", "ld.global.u32 %r10, [%l2+4];\n", [](const std::uint32_t* row) { return row[1]; });
}

TEST_CASE("of two places the one that nobody wants is not touched", "[kernels][memory]") {
    Array<std::uint32_t> table(std::vector<std::uint32_t>{5, 6, 7, 8});
    const bool high = GENERATE(false, true);
    Array<std::uint32_t> choices(words(high ? 1 : 0)), out(threads);
    // The other place is 2^44 bytes away.
    const std::uint64_t base = table.address() - (high ? 1ull << 44 : 0);
    run(choose("%l62", 44) + "ld.global.u32 %r10, [%l2+4]; st.global.u32 [%l4], %r10;", {1}, {threads},
        {out.address(), choices.address(), base});
    CHECK(out.values() == std::vector<std::uint32_t>(threads, 6));
}
