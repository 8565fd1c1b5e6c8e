// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 arithmetic against exact sums and products rounded once.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;

namespace {

struct Format {
    const char* name;
    Kind kind;
    unsigned mantissa;
    int bias;
    std::uint64_t infinity() const { return ((1u << (15 - mantissa)) - 1) << mantissa; }

    double decode(std::uint64_t bits) const {
        std::uint64_t magnitude = bits & 0x7fff, field = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
        double sign = bits & 0x8000 ? -1 : 1;
        if (magnitude >= infinity()) return magnitude == infinity() ? sign * INFINITY : std::nan("");
        double number = double(field ? fraction + (1u << mantissa) : fraction);
        return sign * std::ldexp(number, int(field ? field : 1) - bias - int(mantissa));
    }

    /// `sum` + `rest` (exact, |rest| far below |sum|) rounded to nearest even.
    std::uint64_t encode(double sum, double rest) const {
        if (std::isnan(sum)) return 0x7fff;
        std::uint64_t sign = std::signbit(sum) ? 0x8000 : 0;
        double magnitude = std::fabs(sum);
        if (sign) rest = -rest;
        if (std::isinf(magnitude)) return sign | infinity();
        if (magnitude == 0) return sign;
        int exponent = std::max(std::ilogb(magnitude), 1 - bias) - int(mantissa);
        // At a power of two the exact sum may lie below it.
        double units = std::ldexp(magnitude, -exponent), floor = std::floor(units), fraction = units - floor;
        bool up = fraction > 0.5 || (fraction == 0.5 && (rest > 0 || (rest == 0 && std::fmod(floor, 2) == 1)));
        double rounded = std::ldexp(floor + up, exponent);
        if (rounded > decode(infinity() - 1)) return sign | infinity();
        if (rounded == 0) return sign;
        int field = std::max(std::ilogb(rounded), 1 - bias);
        std::uint64_t bits = std::uint64_t(std::ldexp(rounded, int(mantissa) - field));
        return sign | (std::uint64_t(field + bias - 1) * (1u << mantissa) + bits);
    }
    std::uint64_t add(double a, double b) const {
        double sum = a + b, part = sum - a;
        double rest = (a - (sum - part)) + (b - part);
        return encode(sum, std::isfinite(rest) ? rest : 0);
    }
};

const Format formats[] = {{"f16", Kind::f16, 10, 15}, {"bf16", Kind::bf16, 7, 127}};

} // namespace

TEST_CASE("half: sums, products, fused", "[half]") {
    for (const Format& format : formats) {
        std::string type = format.name;
        auto pairs = operands(format.kind, format.kind);
        auto value = [&](const Operands& o, unsigned i) { return format.decode(o[i]); };
        check_statement({"add." + type + " %d, %a, %b;", 16, 16, 16}, pairs,
                        [&](const Operands& o) { return format.add(value(o, 0), value(o, 1)); });
        check_statement({"sub." + type + " %d, %a, %b;", 16, 16, 16}, pairs,
                        [&](const Operands& o) { return format.add(value(o, 0), -value(o, 1)); });
        check_statement({"mul." + type + " %d, %a, %b;", 16, 16, 16}, pairs,
                        [&](const Operands& o) { return format.encode(value(o, 0) * value(o, 1), 0); });
        auto triples = operands(format.kind, format.kind, format.kind);
        check_statement({"fma.rn." + type + " %d, %a, %b, %c;", 16, 16, 16, 16}, triples,
                        [&](const Operands& o) { return format.add(value(o, 0) * value(o, 1), value(o, 2)); });
        check_statement({"fma.rn.relu." + type + " %d, %a, %b, %c;", 16, 16, 16, 16}, triples, [&](const Operands& o) {
            std::uint64_t bits = format.add(value(o, 0) * value(o, 1), value(o, 2));
            return bits & 0x8000 ? 0 : bits;
        });
        if (type == "f16")
            check_statement({"fma.rn.sat.f16 %d, %a, %b, %c;", 16, 16, 16, 16}, triples, [&](const Operands& o) -> std::uint64_t {
                std::uint64_t bits = format.add(value(o, 0) * value(o, 1), value(o, 2));
                double number = format.decode(bits);
                return !(number > 0) ? 0 : number > 1 ? 0x3c00 : bits;
            });
        // Packed: the low half of the product of swapped operands as well.
        check_statement({"mov.b32 %w0, {%a, %b}; mov.b32 %w1, {%b, %a}; add." + type + "x2 %d, %w0, %w1;", 32, 16, 16}, pairs,
                        [&](const Operands& o) { return format.add(value(o, 0), value(o, 1)) * 0x10001; });
        // A chain, whose NaNs are looked at behind it only.
        check_statement({"mov.b32 %w0, {%a, %b}; mov.b32 %w1, {%b, %a}; mov.b32 %w2, {%c, %c}; fma.rn." + type + "x2 %w3, %w0, %w1, %w2; fma.rn." +
                             type + "x2 %d, %w3, %w0, %w2;", 32, 16, 16, 16},
                        triples, [&](const Operands& o) {
                            const double sum = format.decode(format.add(value(o, 0) * value(o, 1), value(o, 2)));
                            return format.add(sum * value(o, 0), value(o, 2)) | format.add(sum * value(o, 1), value(o, 2)) << 16;
                        });
    }
}

TEST_CASE("half: minima, signs, comparisons", "[half]") {
    for (const Format& format : formats) {
        std::string type = format.name;
        auto pairs = operands(format.kind, format.kind);
        auto value = [&](const Operands& o, unsigned i) { return format.decode(o[i]); };
        check_statement({"min." + type + " %d, %a, %b;", 16, 16, 16}, pairs, [&](const Operands& o) -> std::uint64_t {
            double a = value(o, 0), b = value(o, 1);
            if (std::isnan(a) && std::isnan(b)) return 0x7fff;
            if (std::isnan(a)) return o[1];
            if (std::isnan(b)) return o[0];
            if (a == b) return std::signbit(a) ? o[0] : o[1];
            return a < b ? o[0] : o[1];
        });
        check_statement({"max.NaN." + type + " %d, %a, %b;", 16, 16, 16}, pairs, [&](const Operands& o) -> std::uint64_t {
            double a = value(o, 0), b = value(o, 1);
            if (std::isnan(a) || std::isnan(b)) return 0x7fff;
            if (a == b) return std::signbit(a) ? o[1] : o[0];
            return a > b ? o[0] : o[1];
        });
        check_statement({"neg." + type + " %d, %a;", 16, 16}, operands(format.kind),
                        [&](const Operands& o) { return std::isnan(value(o, 0)) ? 0x7fff : o[0] ^ 0x8000; });
        check_statement({"setp.gtu." + type + " %p, %a, %b; selp.b32 %d, 1, 0, %p;", 32, 16, 16}, pairs,
                        [&](const Operands& o) { return !(value(o, 0) <= value(o, 1)); });
        check_statement({"mov.b32 %w0, {%a, %b}; mov.b32 %w1, {%b, %b}; set.lt.u32." + type + "x2 %d, %w0, %w1;", 32, 16, 16}, pairs,
                        [&](const Operands& o) { return value(o, 0) < value(o, 1) ? 0xffff : 0; });
        check_statement({"mov.b32 %w0, {%a, %b}; mov.b32 %w1, {%b, %a}; setp.lt." + type + "x2 %p|%q, %w0, %w1; selp.b32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", 32, 16, 16},
                        pairs, [&](const Operands& o) { return (value(o, 0) < value(o, 1)) + 2 * (value(o, 1) < value(o, 0)); });
    }
}
