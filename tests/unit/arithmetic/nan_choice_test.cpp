// SPDX-License-Identifier: Apache-2.0
// Which NaN survives chains of double arithmetic, where it is seen, whatever the pass list does (defer_nan_choice.h).
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>

using namespace ptarmigan::test;
using u64 = std::uint64_t;

namespace {

bool nan(u64 bits) { return std::isnan(from_bits<double>(bits)); }
u64 quiet(u64 bits) { return bits | 0x8000000000000; }

template <typename F> u64 binary(u64 a, u64 b, F operation) {
    if (nan(b)) return quiet(b);
    return nan(a) ? quiet(a) : to_bits(operation(from_bits<double>(a), from_bits<double>(b)));
}
u64 add(u64 a, u64 b) { return binary(a, b, std::plus<double>()); }
u64 sub(u64 a, u64 b) { return binary(a, b, std::minus<double>()); }
u64 mul(u64 a, u64 b) { return binary(a, b, std::multiplies<double>()); }
u64 fma(u64 a, u64 b, u64 c) {
    for (u64 operand : {b, c, a})
        if (nan(operand)) return quiet(operand);
    return to_bits(std::fma(from_bits<double>(a), from_bits<double>(b), from_bits<double>(c)));
}

/// NaNs of several kinds, what makes NaNs, and numbers, crossed.
std::vector<Operands> inputs() {
    const u64 values[] = {0x7ff8000000000001, 0xfff8123400000000, 0x7ff0000000000002, 0xfff0000000000003,
                          0x7ff0000000000000, 0xfff0000000000000, 0, 0x3ff0000000000000, 0xc004000000000000};
    std::vector<Operands> all;
    for (u64 a : values)
        for (u64 b : values)
            for (u64 c : values) all.push_back({a, b, c});
    return all;
}

void check(const std::string& text, const std::function<u64(const Operands&)>& reference) {
    check_statement({"{.reg .f64 t, u; .reg .u32 i; " + text + "}", 64, 64, 64, 64}, inputs(), reference);
    // Steps without any NaN, too.
    std::vector<Operands> numbers(100, {0x3ff0000000000000, 0x4008000000000000, 0xc010000000000000});
    check_statement({"{.reg .f64 t, u; .reg .u32 i; " + text + "}", 64, 64, 64, 64}, numbers, reference);
}

} // namespace

TEST_CASE("double: the NaN that survives a chain", "[float]") {
    check("fma.rn.f64 t, %a, %b, %c; sub.f64 u, t, %a; mul.rn.f64 t, u, %b; add.f64 %d, t, %c;",
          [](const Operands& o) { return add(mul(sub(fma(o[0], o[1], o[2]), o[0]), o[1]), o[2]); });
    check("add.f64 t, %a, %b; sqrt.rn.f64 u, t; neg.f64 u, u; fma.rn.f64 %d, %c, u, t;", [](const Operands& o) {
        u64 t = add(o[0], o[1]), u = nan(t) ? t : to_bits(std::sqrt(from_bits<double>(t)));
        return fma(o[2], nan(u) ? u : u ^ 0x8000000000000000, t); // neg leaves the sign of a NaN
    });
}

TEST_CASE("double: a NaN that is seen in the middle of a chain", "[float]") {
    check("mul.f64 t, %a, %b; mov.b64 %l0, t; add.f64 u, t, %c; mov.b64 %l1, u; shl.b64 %l1, %l1, 1; xor.b64 %d, %l0, %l1;",
          [](const Operands& o) { return mul(o[0], o[1]) ^ add(mul(o[0], o[1]), o[2]) << 1; });
    check("sub.f64 t, %a, %b; setp.eq.b64 %p, %c, 0; @%p add.f64 t, t, %a; mul.f64 %d, %b, t;", [](const Operands& o) {
        u64 t = sub(o[0], o[1]);
        return mul(o[1], o[2] == 0 ? add(t, o[0]) : t);
    });
}

TEST_CASE("double: the NaN that survives a loop", "[float]") {
    check("mov.f64 t, %a; mov.u32 i, 0; L: fma.rn.f64 t, t, %b, %c; add.u32 i, i, 1; setp.lt.u32 %p, i, 3; @%p bra L; "
          "add.f64 %d, %a, t;",
          [](const Operands& o) {
        u64 t = o[0];
        for (int i = 0; i < 3; ++i) t = fma(t, o[1], o[2]);
        return add(o[0], t);
    });
}

// Loops that run without choices and once more with them if a NaN comes out (nan_free_loops.h).
TEST_CASE("double: the NaN that survives loops of many shapes", "[float]") {
    // Lanes go round different numbers of times, and one chain crosses the other.
    check("mov.f64 t, %a; mov.f64 u, %c; mov.b64 %l0, %b; and.b64 %l0, %l0, 3; cvt.u32.u64 i, %l0; "
          "L: mul.f64 t, t, u; add.f64 u, u, %b; sub.u32 i, i, 1; setp.gt.s32 %p, i, 0; @%p bra L; sub.f64 %d, t, u;",
          [](const Operands& o) {
        u64 t = o[0], u = o[2];
        int i = int(o[1] & 3);
        do {
            t = mul(t, u);
            u = add(u, o[1]);
        } while (--i > 0);
        return sub(t, u);
    });
    // Comparisons leave the loop, and choose.
    check("mov.f64 t, %a; mov.f64 u, %b; mov.u32 i, 0; L: fma.rn.f64 t, t, %b, %c; setp.gt.f64 %p, t, 0d3FF0000000000000; @%p bra E; "
          "setp.nan.f64 %p, t, u; selp.f64 u, %c, t, %p; add.u32 i, i, 1; setp.lt.u32 %p, i, 4; @%p bra L; add.f64 t, t, u; E: add.f64 %d, u, t;",
          [](const Operands& o) {
        u64 t = o[0], u = o[1];
        for (int i = 0;;) {
            t = fma(t, o[1], o[2]);
            if (from_bits<double>(t) > 1) break;
            u = nan(t) || nan(u) ? o[2] : t;
            if (++i == 4) {
                t = add(t, u);
                break;
            }
        }
        return add(u, t);
    });
    // Bits are seen within, and decide.
    check("mov.f64 t, %a; mov.u32 i, 0; mov.b64 %l1, 0; L: add.f64 t, t, %b; mov.b64 %l0, t; and.b64 %l0, %l0, 1; setp.eq.b64 %p, %l0, 0; "
          "@%p add.f64 t, %c, t; add.u32 i, i, 1; setp.lt.u32 %p, i, 3; @%p bra L; mov.b64 %d, t;",
          [](const Operands& o) {
        u64 t = o[0];
        for (int i = 0; i < 3; ++i) {
            t = add(t, o[1]);
            if ((t & 1) == 0) t = add(o[2], t);
        }
        return t;
    });
    // A loop in a loop; a NaN that nobody sees any more.
    check("mov.f64 t, %a; mov.f64 u, 0d0000000000000000; mov.u32 i, 0; L: sub.f64 t, %b, t; K: mul.f64 u, t, %c; add.u32 i, i, 1; "
          "and.b32 %w0, i, 1; setp.ne.u32 %p, %w0, 0; @%p bra K; add.f64 t, t, %a; setp.lt.u32 %p, i, 6; @%p bra L; setp.nan.f64 %p, t, t; "
          "selp.f64 t, %b, t, %p; add.f64 %d, u, t;",
          [](const Operands& o) {
        u64 t = o[0], u = 0;
        for (int i = 0; i < 6;) {
            t = sub(o[1], t);
            do u = mul(t, o[2]);
            while (++i & 1);
            t = add(t, o[0]);
        }
        return add(u, nan(t) ? o[1] : t);
    });
}

TEST_CASE("double: operations that are no more than their operand quiet it, and leave its sign", "[float]") {
    const auto zero = [](u64 b) { return b == 0 || b == 0x8000000000000000; };
    for (u64 b : {u64(0), u64(0x8000000000000000), u64(0x3ff0000000000000), u64(0xbff0000000000000)}) {
        char digits[24];
        std::snprintf(digits, sizeof digits, "0d%016llx", static_cast<unsigned long long>(b));
        const std::string number = digits;
        if (zero(b)) {
            check("add.rn.f64 %d, %a, " + number + ";", [b](const Operands& o) { return add(o[0], b); });
            check("add.rn.f64 %d, " + number + ", %a;", [b](const Operands& o) { return add(b, o[0]); });
            check("sub.rn.f64 %d, %a, " + number + ";", [b](const Operands& o) { return sub(o[0], b); });
            check("sub.rn.f64 %d, " + number + ", %a;", [b](const Operands& o) { return sub(b, o[0]); });
            continue;
        }
        check("mul.rn.f64 %d, %a, " + number + ";", [b](const Operands& o) { return mul(o[0], b); });
        check("mul.rn.f64 %d, " + number + ", %a;", [b](const Operands& o) { return mul(b, o[0]); });
        check("div.rn.f64 %d, %a, " + number + ";", [b](const Operands& o) { return binary(o[0], b, std::divides<double>()); });
        check("fma.rn.f64 %d, %a, " + number + ", 0d8000000000000000;",
              [b](const Operands& o) { return fma(o[0], b, 0x8000000000000000); });
        check("fma.rn.f64 %d, " + number + ", %a, %b;", [b](const Operands& o) { return fma(b, o[0], o[1]); });
    }
}
