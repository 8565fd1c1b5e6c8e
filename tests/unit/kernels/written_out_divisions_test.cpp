// SPDX-License-Identifier: Apache-2.0
// Divisions as ptxas writes them out (analysis/arithmetic/restore_divisions.cpp): what they leave is the quotient and the remainder for all numbers, zero
// and the most negative one included.
#include "kernel.h"
#include "written_out_division.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <random>

using namespace ptarmigan::test;

namespace {

std::vector<std::uint32_t> operands() {
    std::vector<std::uint32_t> values;
    for (const std::uint32_t near : {0u, 256u, 0x7fffffu, 0x1000000u, 0x7fffffffu, 0x80000000u, 0xaaaaaaaau, 0xffffffffu})
        for (const std::uint32_t by : {0u, 1u, 2u, 3u}) {
            values.push_back(near + by);
            values.push_back(near - by);
        }
    std::mt19937 random(7);
    while (values.size() < 128) values.push_back(random() >> random() % 32);
    return values;
}

/// Quotients, then remainders, of each number by each.
std::vector<std::uint32_t> divided(const std::string& division) {
    const std::vector<std::uint32_t> values = operands();
    const unsigned count = unsigned(values.size());
    Array<std::uint32_t> in(values), out(2 * count * count);
    run(R"(
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l0, %l0, %l60;
        ld.global.u32 %r1, [%l0];
        mul.wide.u32 %l1, %r61, 4;
        add.u64 %l1, %l1, %l60;
        ld.global.u32 %r2, [%l1];
        )" + division + R"(
        mul.wide.u32 %l2, %r62, 4;
        add.u64 %l2, %l2, %l61;
        st.global.u32 [%l2], %r12;
        st.global.u32 [%l2+)" + std::to_string(4 * count * count) + R"(], %r14;
    )", {count}, {count}, {in.address(), out.address()});
    return out.values();
}

} // namespace

TEST_CASE("divisions that are written out leave quotients and remainders", "[kernels][quotients]") {
    const std::vector<std::uint32_t> values = operands();
    const std::size_t count = values.size();
    for (const bool is_signed : {false, true}) {
        const std::vector<std::uint32_t> whole = divided(written_out_division(is_signed)), statement = divided(
            is_signed ? "div.s32 %r12, %r1, %r2; rem.s32 %r14, %r1, %r2;" : "div.u32 %r12, %r1, %r2; rem.u32 %r14, %r1, %r2;");
        CHECK(whole == statement);
        std::size_t wrong = 0;
        for (std::size_t b = 0; b < count; ++b)
            for (std::size_t a = 0; a < count; ++a) {
                const std::int64_t x = is_signed ? std::int32_t(values[a]) : std::int64_t(values[a]);
                const std::int64_t y = is_signed ? std::int32_t(values[b]) : std::int64_t(values[b]);
                const std::size_t i = b * count + a;
                wrong += whole[i] != (y == 0 ? 0xffffffffu : std::uint32_t(x / y));
                wrong += whole[count * count + i] != (y == 0 ? 0xffffffffu : std::uint32_t(x % y));
            }
        CHECK(wrong == 0);
    }
}

TEST_CASE("divisions that are written out without a test for zero leave two and the dividend there", "[kernels][quotients]") {
    const std::vector<std::uint32_t> values = operands(), bare = divided(written_out_division(false, false));
    const std::size_t count = values.size();
    std::size_t wrong = 0;
    for (std::size_t b = 0; b < count; ++b)
        for (std::size_t a = 0; a < count; ++a) {
            const std::uint32_t x = values[a], y = values[b];
            wrong += bare[b * count + a] != (y == 0 ? 2 : x / y);
            wrong += bare[count * count + b * count + a] != (y == 0 ? x : x % y);
        }
    CHECK(wrong == 0);
    // The same without being recognised: a step of the estimate has another form, with the same value.
    CHECK(divided(replaced(written_out_division(false, false), "sub.s32 %r7, 0, %r2;", "not.b32 %r7, %r2; add.s32 %r7, %r7, 1;")) == bare);
}
