// SPDX-License-Identifier: Apache-2.0
// Rows of a sparse matrix as nvcc unrolls them: n % 4 single rounds, then rounds of four (analysis/loops/reroll_loops).
#include "kernel.h"

#include <catch2/catch.hpp>

#include <bit>
#include <random>

using namespace ptarmigan;
using namespace ptarmigan::test;

TEST_CASE("rows of every length have the sums of their elements in order", "[kernels][reroll]") {
    constexpr unsigned threads = 200;
    std::mt19937 engine(5);
    std::vector<std::uint32_t> rows{0};
    for (unsigned row = 0; row < threads; ++row) rows.push_back(rows.back() + (row < 20 ? row : engine() % 23));
    std::vector<std::uint32_t> columns(rows.back());
    for (std::uint32_t& column : columns) column = engine() % threads;
    std::vector<float> x(threads);
    for (float& value : x) value = float(engine()) * 1e-3f;
    Array<std::uint32_t> row_array(rows), column_array(columns);
    Array<float> values(x);
    Array<std::uint32_t> results(2 * threads);
    run(R"(
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l1, %l60, %l0;
        ld.global.u32 %r1, [%l1];
        ld.global.u32 %r2, [%l1+4];
        mov.f32 %f0, 0f00000000;
        mov.u32 %r7, %r1;
        setp.ge.s32 %p0, %r1, %r2;
        @%p0 bra done;
        add.s32 %r3, %r1, 1;
        max.s32 %r4, %r2, %r3;
        sub.s32 %r5, %r4, %r1;
        and.b32 %r6, %r5, 3;
        setp.eq.s32 %p1, %r6, 0;
        mov.f32 %f0, 0f00000000;
        @%p1 bra between;
        mul.wide.s32 %l2, %r1, 4;
        add.s64 %l3, %l61, %l2;
        mov.f32 %f0, 0f00000000;
    single:
        ld.global.u32 %r8, [%l3];
        mul.wide.s32 %l4, %r8, 4;
        add.s64 %l5, %l62, %l4;
        ld.global.f32 %f1, [%l5];
        add.f32 %f0, %f0, %f1;
        add.s32 %r7, %r7, 1;
        add.s64 %l3, %l3, 4;
        add.s32 %r6, %r6, -1;
        setp.ne.s32 %p2, %r6, 0;
        @%p2 bra single;
    between:
        not.b32 %r9, %r1;
        add.s32 %r10, %r4, %r9;
        setp.lt.u32 %p3, %r10, 3;
        @%p3 bra done;
        mul.wide.s32 %l6, %r7, 4;
        add.s64 %l7, %l6, 8;
        add.s64 %l8, %l61, %l7;
    several:
        ld.global.u32 %r8, [%l8+-8];
        mul.wide.s32 %l4, %r8, 4;
        add.s64 %l5, %l62, %l4;
        ld.global.f32 %f1, [%l5];
        add.f32 %f0, %f0, %f1;
        ld.global.u32 %r8, [%l8+-4];
        mul.wide.s32 %l4, %r8, 4;
        add.s64 %l5, %l62, %l4;
        ld.global.f32 %f1, [%l5];
        add.f32 %f0, %f0, %f1;
        ld.global.u32 %r8, [%l8];
        mul.wide.s32 %l4, %r8, 4;
        add.s64 %l5, %l62, %l4;
        ld.global.f32 %f1, [%l5];
        add.f32 %f0, %f0, %f1;
        ld.global.u32 %r8, [%l8+4];
        mul.wide.s32 %l4, %r8, 4;
        add.s64 %l5, %l62, %l4;
        ld.global.f32 %f1, [%l5];
        add.f32 %f0, %f0, %f1;
        add.s64 %l8, %l8, 16;
        add.s32 %r7, %r7, 4;
        setp.lt.s32 %p4, %r7, %r2;
        @%p4 bra several;
    done:
        add.u64 %l9, %l63, %l0;
        st.global.f32 [%l9], %f0;
        st.global.u32 [%l9+800], %r7;
    )", {1}, {threads}, {row_array.address(), column_array.address(), values.address(), results.address()});
    const auto result = results.values();
    for (unsigned row = 0; row < threads; ++row) {
        float sum = 0;
        for (std::uint32_t j = rows[row]; j < rows[row + 1]; ++j) sum += x[columns[j]];
        CHECK(result[row] == std::bit_cast<std::uint32_t>(sum));
        CHECK(result[threads + row] == rows[row + 1]); // where the index ends
    }
}
