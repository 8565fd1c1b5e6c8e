// SPDX-License-Identifier: Apache-2.0
// A number widened to double and narrowed again is the number it was, but a signalling NaN, which comes out quiet
// (drop_idle_fences.h). tests/recordings/conversion_chains_h100.txt has every chain with a GPU's results.
#include "statement_runner.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;
using u64 = std::uint64_t;

namespace {

struct Type {
    const char* name;
    unsigned bits, mantissa;
    bool nan(u64 v) const { return (v & ((1ull << (bits - 1)) - 1)) > infinity(); }
    u64 infinity() const { return ((1ull << (bits - 1 - mantissa)) - 1) << mantissa; }
    u64 quiet(u64 v) const { return nan(v) ? v | 1ull << (mantissa - 1) : v; }
};
const Type types[] = {{"f32", 32, 23}, {"f16", 16, 10}, {"bf16", 16, 7}};

/// Signalling and quiet NaNs of both signs, and numbers; with a second operand that is one or zero.
std::vector<Operands> inputs(const Type& type) {
    const u64 sign = 1ull << (type.bits - 1), infinity = type.infinity(), top = 1ull << (type.mantissa - 1);
    std::vector<Operands> all;
    for (u64 choice : {0, 1})
        for (u64 v : {infinity + 1, infinity + top - 1, infinity + top, infinity + top + 1, infinity + 2 * top - 1, infinity, u64(0), u64(1), infinity / 2})
            for (u64 s : {u64(0), sign}) all.push_back({v | s, choice, 0});
    return all;
}

void check(const Type& type, const std::string& between, const std::function<u64(const Operands&)>& reference) {
    const std::string t = type.name;
    check_statement({"{ .reg .f64 w, z; cvt.f64." + t + " w, %a; " + between + " cvt.rn." + t + ".f64 %d, w; }", type.bits, type.bits, 32},
                    inputs(type), reference);
}

} // namespace

TEST_CASE("conversions: a signalling NaN through double comes out quiet", "[conversion]") {
    for (const Type& type : types) {
        const auto quiet = [&](const Operands& o) { return type.quiet(o[0]); };
        check(type, "", quiet);
        check(type, "mov.b64 %l0, w; mov.b64 w, %l0;", quiet);
        check(type, "mov.b64 {%w0, %w1}, w; mov.b64 w, {%w0, %w1};", quiet);
        const u64 sign = 1ull << (type.bits - 1);
        check(type, "neg.f64 w, w;", [&](const Operands& o) { return type.nan(o[0]) ? type.quiet(o[0]) : o[0] ^ sign; });
        check(type, "setp.ne.u32 %p, %b, 0; selp.f64 w, w, 0d3ff0000000000000, %p;",
              [&](const Operands& o) { return o[1] ? type.quiet(o[0]) : type.infinity() >> 1 & ~((1ull << type.mantissa) - 1); });
        check(type, "mov.f64 z, w; setp.ne.u32 %p, %b, 0; @%p bra L; neg.f64 z, w; L: mov.f64 w, z;",
              [&](const Operands& o) { return o[1] || type.nan(o[0]) ? type.quiet(o[0]) : o[0] ^ sign; });
    }
    // Directed rounding, and to another type.
    check_statement({"{ .reg .f64 w; cvt.f64.f32 w, %a; cvt.rp.bf16.f64 %d, w; }", 16, 32}, {{0x7f800001}, {0xff800001}, {0x7f810000}},
                    [](const Operands& o) { return (o[0] | 0x400000) >> 16; });
    check_statement({"{ .reg .f64 w; cvt.f64.f32 w, %a; cvt.rz.f16.f64 %d, w; }", 16, 32}, {{0x7f800001}, {0xff800001}, {0x7f810000}},
                    [](const Operands& o) { return (o[0] >> 16 & 0x8000) | 0x7e00 | (o[0] >> 13 & 0x3ff); });
}
