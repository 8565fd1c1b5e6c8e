// SPDX-License-Identifier: Apache-2.0
// Sums of matrices whose strides are parameters, one element a thread or several: launches that are as most are have code of their own
// (analysis/loops/launch_version.h), and no other launch may run it.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>

using namespace ptarmigan::test;

namespace {

enum class Loop { none, plain, counted }; ///< counted: the rounds are computed before, as compilers do that unroll
enum class Division { plain, by_bits };   ///< by_bits: by masks and shifts where columns are a power of two, as CuPy divides

/// for (i = thread + start; i < n; i += threads of the grid)
///     out[i's element] = a[...] + b[...] + (the number of an element, as a number of 64 bits that may wrap before it is one)
std::string text(Loop loop, bool is_wide, Division division) {
    const std::string type = is_wide ? "s64" : "s32", r = is_wide ? "%l" : "%r";
    std::string parameters = ".param .u64 o, .param .u64 a, .param .u64 b, .param .s32 n, .param .s32 columns, .param .s32 start, .param .s32 far";
    std::string body;
    const std::string names[] = {"o", "a", "b"};
    for (unsigned i = 0; i < 3; ++i) {
        parameters += ", .param ." + type + " row_" + names[i] + ", .param ." + type + " column_" + names[i];
        body += "ld.param.u64 %l" + std::to_string(50 + i) + ", [" + names[i] + "]; ld.param." + type + " " + r + std::to_string(40 + i) +
                ", [row_" + names[i] + "]; ld.param." + type + " " + r + std::to_string(44 + i) + ", [column_" + names[i] + "];\n";
    }
    body += "ld.param.u32 %r1, [n]; ld.param.u32 %r2, [columns]; ld.param.u32 %r3, [start]; ld.param.u32 %r4, [far];\n"
            "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, %tid.x; mad.lo.s32 %r8, %r5, %r6, %r7; add.s32 %r8, %r8, %r3;\n"
            "setp.ge.s32 %p1, %r8, %r1;\n@%p1 bra DONE;\nmov.u32 %r9, %nctaid.x; mul.lo.s32 %r9, %r9, %r6;\n";
    if (loop == Loop::counted)
        body += "add.s32 %r10, %r9, %r1; add.s32 %r11, %r8, %r9; not.b32 %r11, %r11; add.s32 %r11, %r10, %r11; div.u32 %r11, %r11, %r9; add.s32 %r12, %r11, 1;\n";
    const std::string divide = "div.s32 %r13, %r8, %r2; mul.lo.s32 %r14, %r13, %r2; sub.s32 %r14, %r8, %r14;\n";
    if (division == Division::plain)
        body += "LOOP:\n" + divide;
    else
        body += "add.s32 %r20, %r2, -1; and.b32 %r21, %r20, %r2; popc.b32 %r22, %r20;\nLOOP:\nsetp.eq.s32 %p3, %r21, 0;\n@%p3 bra BITS;\n" + divide +
                "bra.uni DIVIDED;\nBITS:\nand.b32 %r14, %r20, %r8; shr.u32 %r13, %r8, %r22;\nDIVIDED:\n";
    if (is_wide) body += "cvt.s64.s32 %l13, %r13; cvt.s64.s32 %l14, %r14;\n";
    for (unsigned i = 0; i < 3; ++i) { // addresses in %l20 to %l22
        const std::string k = std::to_string(i);
        body += "mul.lo." + type + " " + r + "15, " + r + "13, " + r + "4" + k + "; mad.lo." + type + " " + r + "15, " + r + "14, " + r +
                std::to_string(44 + i) + ", " + r + "15;\n";
        body += (is_wide ? std::string("mov.u64 %l16, %l15;") : std::string("mul.wide.s32 %l16, %r15, 8;")) + " add.s64 %l2" + k + ", %l5" + k + ", %l16;\n";
    }
    body += "ld.global.u64 %l1, [%l21]; ld.global.u64 %l2, [%l22]; add.s64 %l1, %l1, %l2;\n";
    body += is_wide ? "cvt.u32.u64 %r16, %l45;" : "mov.u32 %r16, %r45;";
    body += "mad.lo.s32 %r16, %r14, %r16, %r4; cvt.s64.s32 %l3, %r16; add.s64 %l1, %l1, %l3; st.global.u64 [%l20], %l1;\nadd.s32 %r8, %r8, %r9;\n";
    if (loop == Loop::plain) body += "setp.lt.s32 %p2, %r8, %r1;\n@%p2 bra LOOP;\n";
    if (loop == Loop::counted) body += "add.s32 %r12, %r12, -1; setp.ne.s32 %p2, %r12, 0;\n@%p2 bra LOOP;\n";
    return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(" + parameters + ")\n{\n.reg .pred %p<4>;\n.reg .b32 %r<64>;\n.reg .b64 %l<64>;\n" +
           body + "DONE:\nret;\n}\n";
}

struct Strides {
    std::int32_t row, column, first; ///< in elements; `first`: where element 0 lies
};

constexpr std::int32_t most = 512, size = 4 * most;

void check(ptarmigan::Module& kernel, bool is_wide, std::uint32_t ctas, std::uint32_t threads, std::int32_t n, std::int32_t columns, std::int32_t start, std::int32_t far,
           const Strides& o, const Strides& a, const Strides& b, bool in_place) {
    std::vector<std::uint64_t> in_a(size), in_b(size), out(size, 0xeeee);
    for (std::int32_t i = 0; i < size; ++i) {
        in_a[std::size_t(i)] = std::uint64_t(i) * 3 + 1;
        in_b[std::size_t(i)] = std::uint64_t(i) << 20;
    }
    const Array<std::uint64_t> of_a(in_a), of_b(in_b), of_out(out);
    const auto at = [&](const Array<std::uint64_t>& array, const Strides& strides) { return array.address() + std::uint64_t(strides.first) * 8; };
    const auto run = [&](auto number) {
        using T = decltype(number);
        const auto s = [](std::int32_t stride) { return T(sizeof(T) == 8 ? std::int64_t(stride) * 8 : stride); };
        kernel.launch("k", {ctas}, {threads},
                      {at(in_place ? of_a : of_out, o), at(of_a, a), at(of_b, b), n, columns, start, far, s(o.row), s(o.column), s(a.row), s(a.column), s(b.row),
                       s(b.column)});
    };
    if (is_wide) run(std::int64_t());
    else run(std::int32_t());
    ptarmigan::synchronize();
    std::vector<std::uint64_t>& expected = in_place ? in_a : out;
    for (std::int32_t i = start; i < n; ++i) {
        const std::int32_t row = i / columns, column = i % columns;
        const auto place = [&](const Strides& strides) { return std::size_t(strides.first + row * strides.row + column * strides.column); };
        const auto number = std::int32_t(std::uint32_t(column) * std::uint32_t(is_wide ? a.column * 8 : a.column) + std::uint32_t(far));
        expected[place(o)] = in_a[place(a)] + in_b[place(b)] + std::uint64_t(std::int64_t(number));
    }
    const std::vector<std::uint64_t> results = (in_place ? of_a : of_out).values();
    unsigned wrong = 0;
    for (std::size_t i = 0; i < results.size(); ++i) wrong += results[i] != expected[i];
    CHECK(wrong == 0);
}

} // namespace

TEST_CASE("sums of matrices by strides of the launch", "[kernels][lanes][launch_version]") {
    const bool is_wide = GENERATE(false, true);
    const Division division = GENERATE(Division::plain, Division::by_bits);
    for (const Loop loop : {Loop::none, Loop::plain, Loop::counted}) {
        if (loop == Loop::counted && division == Division::by_bits) continue;
        ptarmigan::Module kernel(text(loop, is_wide, division), "test.ptx");
        for (const std::uint32_t threads : {32u, 128u})
            for (const std::int32_t columns : {1, 7, 40, 64, 128, 96, most})
                for (const std::int32_t n : {most, 384, 129, 5}) {
                    const std::int32_t rows = (n + columns - 1) / columns;
                    const Strides plain{columns, 1, 0}, row{0, 1, 3}, column{1, 0, 5}, wide{columns * 2, 2, 0}, turned{1, rows, 0},
                        back{-columns, -1, columns * rows - 1}, one{0, 0, 9};
                    for (const std::uint32_t share : {1u, 3u}) { // of what is needed: threads have several elements then
                        const std::uint32_t needed = (std::uint32_t(n) + threads - 1) / threads;
                        const std::uint32_t ctas = loop == Loop::none ? needed : (needed + share - 1) / share;
                        CAPTURE(is_wide, int(division), int(loop), threads, columns, n, ctas);
                        const auto each = [&](const Strides& o, const Strides& a, const Strides& b, bool in_place = false) {
                            check(kernel, is_wide, ctas, threads, n, columns, 0, 0, o, a, b, in_place);
                        };
                        each(plain, plain, row);
                        each(plain, row, column);
                        each(plain, plain, turned);
                        each(wide, plain, plain);
                        each(plain, wide, one);
                        each(back, back, plain);
                        each(plain, plain, back, true);
                        if (loop == Loop::none) break;
                    }
                }
        // One element stored by many threads: all of them store the same.
        check(kernel, is_wide, 4, 128, 500, 100, 0, 0, {1, 0, 0}, {1, 0, 0}, {1, 0, 7}, false);
    }
}

TEST_CASE("sums of matrices whose numbers wrap in some lanes", "[kernels][lanes][launch_version]") {
    using S = std::numeric_limits<std::int32_t>;
    const bool is_wide = GENERATE(false, true);
    const Division division = GENERATE(Division::plain, Division::by_bits);
    for (const Loop loop : {Loop::none, Loop::plain, Loop::counted}) {
        if (loop == Loop::counted && division == Division::by_bits) continue;
        ptarmigan::Module kernel(text(loop, is_wide, division), "test.ptx");
        for (const std::int32_t far : {S::max() - 511, S::max() - 100, S::max() - 33, S::max(), S::min(), -1, -70, -512})
            for (const std::int32_t start : {0, 1, 31, 100}) {
                CAPTURE(is_wide, int(division), int(loop), far, start);
                check(kernel, is_wide, 4, 128, most, 128, start, far, {128, 1, 0}, {128, 1, 0}, {0, 1, 0}, false);
            }
        // What a row's number is multiplied by does not matter where there is one row.
        check(kernel, is_wide, 4, 128, most, most, 0, 0, {S::max(), 1, 0}, {S::min(), 1, 0}, {S::max() / 3, 1, 0}, false);
    }
}
