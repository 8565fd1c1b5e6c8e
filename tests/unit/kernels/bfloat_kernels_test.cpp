// SPDX-License-Identifier: Apache-2.0
// bfloats that are chosen, carried around loops and kept across blocks, bit by bit.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

TEST_CASE("bfloats that are only chosen keep their bits", "[kernels][bfloat]") {
    constexpr unsigned threads = 64;
    // Subnormals, zeros of both signs, numbers; pairs of neighbours are compared.
    std::vector<std::uint16_t> values(threads * 2);
    for (unsigned i = 0; i < values.size(); ++i) values[i] = std::uint16_t((i * 37 % 128) | (i % 5 == 0 ? 0x8000 : 0) | (i % 7 == 0 ? 0x3f80 : 0));
    Array<std::uint16_t> in(values), out(threads);
    run(R"(
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l1, %l60, %l0;
        ld.global.b16 %h0, [%l1];
        ld.global.b16 %h1, [%l1+2];
        mov.b16 %h2, %h0;
        and.b32 %r1, %r62, 3;
    again:
        max.bf16 %h3, %h2, %h1;
        and.b32 %r2, %r62, 8;
        setp.eq.u32 %p0, %r2, 0;
        @%p0 bra keep;
        neg.bf16 %h3, %h3;
        abs.bf16 %h3, %h3;
    keep:
        mov.b16 %h2, %h3;
        sub.u32 %r1, %r1, 1;
        setp.gt.s32 %p1, %r1, 0;
        @%p1 bra again;
        mul.wide.u32 %l2, %r62, 2;
        add.u64 %l3, %l61, %l2;
        st.global.b16 [%l3], %h2;
    )", {1}, {threads}, {in.address(), out.address()});
    const auto key = [](std::uint16_t bits) { return bits & 0x8000 ? -int(bits & 0x7fff) - 1 : int(bits); };
    const auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        INFO(i);
        std::uint16_t expected = values[2 * i];
        for (unsigned turn = 0; turn < std::max(1u, i & 3); ++turn) {
            expected = key(expected) > key(values[2 * i + 1]) ? expected : values[2 * i + 1];
            if (i & 8) expected &= 0x7fff;
        }
        CHECK(results[i] == expected);
    }
}
