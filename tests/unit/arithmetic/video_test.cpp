// SPDX-License-Identifier: Apache-2.0
// Video instructions against the manual's pseudo-code (9.7.18), and corners in which the H200 leaves it ("recorded").
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>

using namespace ptarmigan::test;
using u32 = std::uint32_t;
using s64 = std::int64_t;
using u64 = std::uint64_t;

namespace {

using Primary = std::function<s64(s64, s64)>;

/// Part `index` of `bits` bits, as a number.
s64 part(u64 word, unsigned bits, unsigned index, bool is_signed) {
    u64 raw = word >> bits * index & ((1ull << bits) - 1);
    return is_signed ? s64(raw << (64 - bits)) >> (64 - bits) : s64(raw);
}

s64 clamp(s64 value, unsigned bits, bool is_signed) {
    return is_signed ? std::clamp<s64>(value, -(1ll << (bits - 1)), (1ll << (bits - 1)) - 1)
                     : std::clamp<s64>(value, 0, (1ll << bits) - 1);
}

u32 merged(u64 c, s64 value, unsigned bits, unsigned index) {
    u64 mask = ((1ull << bits) - 1) << bits * index;
    return u32((u64(value) << bits * index & mask) | (c & ~mask));
}

const std::vector<Operands>& triples() {
    static const auto all = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    return all;
}

void check(const std::string& text, const std::function<u32(const Operands&)>& reference) {
    INFO(text);
    check_statement({text, 32, 32, 32, 32}, triples(), reference);
}

s64 average(s64 a, s64 b) { return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1; }
s64 difference(s64 a, s64 b) { return std::abs(a - b); }
s64 least(s64 a, s64 b) { return std::min(a, b); }
s64 greatest(s64 a, s64 b) { return std::max(a, b); }

} // namespace

TEST_CASE("video: words, saturated and with a second operation", "[video]") {
    check("vadd.s32.u32.s32 %d, %a, %b;", [](auto& o) { return u32(o[0] + o[1]); });
    check("vadd.s32.s32.u32.sat %d, %a, %b;",
          [](auto& o) { return u32(clamp(part(o[0], 32, 0, true) + s64(u32(o[1])), 32, true)); });
    check("vsub.u32.u32.u32.sat %d, %a, %b;", [](auto& o) { return u32(clamp(s64(o[0]) - s64(o[1]), 32, false)); });
    // Recorded: the low half of a sum is compared with c.
    check("vsub.s32.u32.u32.min %d, %a, %b, %c;",
          [](auto& o) { return u32(std::min(part(o[0] - o[1], 32, 0, true), part(o[2], 32, 0, true))); });
    check("vabsdiff.u32.s32.s32.add %d, %a, %b, %c;", [](auto& o) {
        return u32(difference(part(o[0], 32, 0, true), part(o[1], 32, 0, true)) + s64(o[2]));
    });
    check("vmin.s32.s32.u32 %d, %a, %b;", [](auto& o) { return u32(least(part(o[0], 32, 0, true), s64(o[1]))); });
    check("vmin.u32.s32.u32.sat.max %d, %a, %b, %c;", [](auto& o) {
        return u32(std::max(clamp(least(part(o[0], 32, 0, true), s64(o[1])), 32, false), s64(o[2])));
    });
    check("vmax.s32.u32.s32.sat.add %d, %a, %b, %c;", [](auto& o) {
        return u32(clamp(greatest(s64(o[0]), part(o[1], 32, 0, true)), 32, true) + s64(o[2]));
    });
}

TEST_CASE("video: parts of words", "[video]") {
    check("vadd.s32.s32.s32 %d.b2, %a.b3, %b.h1, %c;",
          [](auto& o) { return merged(o[2], part(o[0], 8, 3, true) + part(o[1], 16, 1, true), 8, 2); });
    // Recorded: the limit of a part is an unsigned one.
    check("vadd.s32.s32.s32.sat %d.b2, %a.b3, %b.h1, %c;", [](auto& o) {
        return merged(o[2], s64(std::min<u64>(part(o[0], 8, 3, true) + part(o[1], 16, 1, true), 127)), 8, 2);
    });
    // Recorded: the upper half of the result.
    check("vsub.u32.s32.u32 %d.h1, %a.h0, %b.b0, %c;",
          [](auto& o) { return merged(o[2], (part(o[0], 16, 0, true) - part(o[1], 8, 0, false)) >> 16, 16, 1); });
    check("vabsdiff.s32.s32.s32.sat %d.h0, %a.b0, %b.b2, %c;", [](auto& o) {
        return merged(o[2], clamp(difference(part(o[0], 8, 0, true), part(o[1], 8, 2, true)), 16, true), 16, 0);
    });
    check("vmax.u32.u32.u32 %d, %a.b1, %b.h1;",
          [](auto& o) { return u32(greatest(part(o[0], 8, 1, false), part(o[1], 16, 1, false))); });
    check("vset.s32.u32.lt %d.b0, %a.h1, %b.h1, %c;", [](auto& o) {
        return merged(o[2], part(o[0], 16, 1, true) < part(o[1], 16, 1, false), 8, 0);
    });
    check("vset.u32.u32.ne.add %d, %a, %b.b3, %c;",
          [](auto& o) { return u32((u32(o[0]) != part(o[1], 8, 3, false)) + o[2]); });
}

TEST_CASE("video: shifts", "[video]") {
    auto in = operands(Kind::bits32, Kind::shift, Kind::bits32);
    check_statement({"vshl.u32.u32.u32.clamp %d, %a, %b;", 32, 32, 32}, in,
                    [](auto& o) { return u32(u32(o[1]) >= 32 ? 0 : o[0] << o[1]); });
    check_statement({"vshl.s32.s32.u32.wrap.add %d, %a, %b, %c;", 32, 32, 32, 32}, in,
                    [](auto& o) { return u32((o[0] << (o[1] & 31)) + o[2]); });
    check_statement({"vshr.s32.s32.u32.clamp %d.b1, %a.h1, %b, %c;", 32, 32, 32, 32}, in, [](auto& o) {
        return merged(o[2], part(o[0], 16, 1, true) >> std::min(u32(o[1]), 32u), 8, 1);
    });
    check_statement({"vshr.u32.u32.u32.wrap.max %d, %a, %b, %c;", 32, 32, 32, 32}, in,
                    [](auto& o) { return std::max(u32(o[0]) >> (o[1] & 31), u32(o[2])); });
}

// Recorded: words are signed factors whatever their types, and so is c.
TEST_CASE("video: products", "[video]") {
    check("vmad.s32.s32.u32.sat %d, %a, %b, -%c;", [](auto& o) {
        return u32(clamp(part(o[0], 32, 0, true) * part(o[1], 32, 0, true) - part(o[2], 32, 0, true), 32, true));
    });
    check("vmad.u32.u32.u32.shr15 %d, %a.h0, %b.h1, %c;", [](auto& o) {
        return u32((part(o[0], 16, 0, false) * part(o[1], 16, 1, false) + part(o[2], 32, 0, true)) >> 15);
    });
    check("vmad.s32.s32.s32.po.shr7 %d, %a.b1, %b, %c;", [](auto& o) {
        return u32((part(o[0], 8, 1, true) * part(o[1], 32, 0, true) + part(o[2], 32, 0, true) + 1) >> 7);
    });
    check("vmad.u32.u32.u32.sat %d, %a.h1, %b.b0, %c;", [](auto& o) {
        return u32(clamp(part(o[0], 16, 1, false) * part(o[1], 8, 0, false) + part(o[2], 32, 0, true), 32, false));
    });
    check("vmad.u32.u32.u32 %d, -%a, %b, %c;", [](auto& o) { return u32(o[2] - o[0] * o[1]); });
}

// Every element of the packed forms: selectors of both sources, masks, merged or summed.
TEST_CASE("video: packed forms", "[video]") {
    struct Operation {
        const char* name;
        Primary primary;
    };
    const Operation operations[] = {{"vadd", std::plus<s64>()}, {"vsub", std::minus<s64>()}, {"vavrg", average},
                                    {"vabsdiff", difference},   {"vmin", least},              {"vmax", greatest}};
    struct Shape {
        unsigned count;
        const char *d, *a, *b;
        std::vector<unsigned> chosen_a, chosen_b;
        unsigned mask;
    };
    const Shape shapes[] = {{2, "", "", "", {0, 1}, {2, 3}, 3},
                            {4, "", "", "", {0, 1, 2, 3}, {4, 5, 6, 7}, 15},
                            {2, ".h1", ".h31", ".h02", {1, 3}, {2, 0}, 2},
                            {4, ".b310", ".b7014", ".b2256", {4, 1, 0, 7}, {6, 5, 2, 2}, 11}};
    for (const Operation& operation : operations)
        for (const Shape& shape : shapes)
            for (const char* second : {"", ".sat", ".add"}) {
                bool accumulate = second[1] == 'a', sat = second[1] == 's';
                unsigned bits = 32 / shape.count;
                std::string text = operation.name + std::to_string(shape.count) + ".u32.s32.u32" + second + " %d" +
                                   shape.d + ", %a" + shape.a + ", %b" + shape.b + ", %c;";
                check(text, [&](const Operands& o) {
                    u32 result = u32(o[2]);
                    u64 both = u64(u32(o[0])) | o[1] << 32;
                    for (unsigned i = 0; i < shape.count; ++i) {
                        if (!(shape.mask >> i & 1)) continue;
                        s64 value = operation.primary(part(both, bits, shape.chosen_a[i], true),
                                                      part(both, bits, shape.chosen_b[i], false));
                        if (sat) value = clamp(value, bits, false);
                        result = accumulate ? u32(result + value) : merged(result, value, bits, i);
                    }
                    return result;
                });
            }
}

TEST_CASE("video: packed comparisons", "[video]") {
    check("vset4.u32.s32.ge %d.b20, %a, %b, %c;", [](auto& o) {
        u32 result = merged(o[2], part(o[0], 8, 0, false) >= part(o[1], 8, 0, true), 8, 0);
        return merged(result, part(o[0], 8, 2, false) >= part(o[1], 8, 2, true), 8, 2);
    });
    check("vset2.s32.s32.eq.add %d, %a.h10, %b.h01, %c;", [](auto& o) {
        return u32(o[2] + (part(o[0], 16, 0, true) == part(o[0], 16, 1, true)) * 2);
    });
    check("vset4.s32.s32.le.add %d.b3, %a, %b, %c;",
          [](auto& o) { return u32(o[2] + (part(o[0], 8, 3, true) <= part(o[1], 8, 3, true))); });
    check("vset2.u32.u32.gt %d, %a, %b, %c;", [](auto& o) {
        u32 result = merged(0, part(o[0], 16, 0, false) > part(o[1], 16, 0, false), 16, 0);
        return merged(result, part(o[0], 16, 1, false) > part(o[1], 16, 1, false), 16, 1);
    });
}
