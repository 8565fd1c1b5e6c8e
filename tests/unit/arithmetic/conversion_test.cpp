// SPDX-License-Identifier: Apache-2.0
// cvt between integers and floating types, against long double arithmetic of the host.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

using namespace ptarmigan::test;

namespace {

struct Integer {
    const char* name;
    unsigned bits;
    bool is_signed;
};
const Integer integers[] = {{"u16", 16, false}, {"s16", 16, true}, {"u32", 32, false},
                            {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

struct Mode {
    const char* name;
    int host;
};
const Mode rounding_modes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
const Mode integer_modes[] = {{"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};

Kind kind_of(unsigned bits) { return bits == 16 ? Kind::bits16 : bits == 32 ? Kind::bits32 : Kind::bits64; }

__int128 value_of(std::uint64_t bits, const Integer& type) {
    unsigned unused = 64 - type.bits;
    return type.is_signed ? __int128(std::int64_t(bits << unused) >> unused) : __int128(bits << unused >> unused);
}

std::uint64_t clamp_to(long double value, const Integer& type) {
    long double low = type.is_signed ? -std::ldexp(1.0L, int(type.bits) - 1) : 0;
    long double high = std::ldexp(1.0L, int(type.bits) - type.is_signed) - 1;
    value = std::clamp(value, low, high);
    return type.is_signed ? std::uint64_t(std::int64_t(value)) : std::uint64_t(value);
}

/// Half and bfloat numbers as double.
double widen(std::uint64_t bits, unsigned mantissa, unsigned bias) {
    unsigned exponent_bits = 15 - mantissa;
    std::uint64_t field = bits >> mantissa & ((1u << exponent_bits) - 1), fraction = bits & ((1u << mantissa) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (field == (1u << exponent_bits) - 1) return fraction ? std::nan("") : sign * INFINITY;
    double number = field ? double(fraction + (1u << mantissa)) : double(fraction);
    return sign * std::ldexp(number, int(field ? field : 1) - int(bias) - int(mantissa));
}
double from_half(std::uint64_t bits) { return widen(bits & 0xffff, 10, 15); }
double from_bfloat(std::uint64_t bits) { return widen(bits & 0xffff, 7, 127); }

/// The 16-bit number next to `exact` in a mode, by search over all of them: slow and plain.
std::uint64_t narrow(long double exact, int mode, double (*decode)(std::uint64_t), std::uint64_t infinity) {
    if (std::isnan(exact)) return 0x7fff;
    std::uint64_t sign = std::signbit(exact) ? 0x8000 : 0;
    long double magnitude = std::fabs(exact);
    std::uint64_t low = 0, high = infinity; // low is the largest that does not exceed the magnitude
    while (high - low > 1) {
        std::uint64_t middle = (low + high) / 2;
        (decode(middle) <= magnitude ? low : high) = middle;
    }
    if (std::isinf(magnitude)) return sign | infinity;
    if (magnitude == decode(low)) return sign | low;
    bool away;
    if (mode == FE_TONEAREST) {
        // The midpoint above the largest finite number is where a next one would make it.
        long double next = low + 1 == infinity ? 2 * (long double)decode(low) - decode(low - 1) : (long double)decode(low + 1);
        long double middle = (decode(low) + next) / 2;
        away = magnitude > middle || (magnitude == middle && low % 2);
    } else {
        away = mode == FE_UPWARD ? !sign : mode == FE_DOWNWARD ? sign != 0 : false;
    }
    return sign | (low + away);
}
std::uint64_t to_half(long double exact, int mode) { return narrow(exact, mode, from_half, 0x7c00); }
std::uint64_t to_bfloat(long double exact, int mode) { return narrow(exact, mode, from_bfloat, 0x7f80); }

} // namespace

TEST_CASE("conversion: integer to integer", "[conversion]") {
    for (const Integer& from : integers)
        for (const Integer& to : integers) {
            auto in = operands(kind_of(from.bits));
            std::string types = std::string(to.name) + "." + from.name + " %d, %a;";
            if (from.bits != to.bits || from.is_signed != to.is_signed)
                check_statement({"cvt." + types, to.bits, from.bits}, in,
                                [&](const Operands& o) { return std::uint64_t(value_of(o[0], from)); });
            bool can_saturate = to.bits - to.is_signed < from.bits - from.is_signed || (from.is_signed && !to.is_signed);
            if (!can_saturate) continue;
            check_statement({"cvt.sat." + types, to.bits, from.bits}, in,
                            [&](const Operands& o) { return clamp_to((long double)(value_of(o[0], from)), to); });
        }
    // 8-bit values live in wider registers.
    check_statement({"cvt.s32.s8 %d, %a;"}, operands(Kind::bits32),
                    [](const Operands& o) { return std::uint64_t(std::int64_t(std::int8_t(o[0]))); });
    check_statement({"cvt.u8.u32 %d, %a;"}, operands(Kind::bits32), [](const Operands& o) { return o[0] & 255; });
    check_statement({"cvt.sat.s8.s32 %d, %a;"}, operands(Kind::bits32), [](const Operands& o) {
        return std::uint64_t(std::int64_t(std::clamp<std::int32_t>(std::int32_t(o[0]), -128, 127)));
    });
}

TEST_CASE("conversion: integer to float and double", "[conversion]") {
    for (const Integer& from : integers)
        for (const Mode& mode : rounding_modes) {
            auto in = operands(kind_of(from.bits));
            auto value = [&](const Operands& o) { return (long double)(value_of(o[0], from)); };
            check_statement({std::string("cvt.") + mode.name + ".f32." + from.name + " %d, %a;", 32, from.bits}, in,
                            [&](const Operands& o) { return in_mode<float>(mode.host, [&] { return value(o); }); });
            check_statement({std::string("cvt.") + mode.name + ".f64." + from.name + " %d, %a;", 64, from.bits}, in,
                            [&](const Operands& o) { return in_mode<double>(mode.host, [&] { return value(o); }); });
        }
}

TEST_CASE("conversion: integer to half and bfloat", "[conversion]") {
    for (const Integer& from : integers)
        for (const Mode& mode : rounding_modes) {
            auto in = operands(kind_of(from.bits));
            auto value = [&](const Operands& o) { return (long double)(value_of(o[0], from)); };
            check_statement({std::string("cvt.") + mode.name + ".f16." + from.name + " %d, %a;", 16, from.bits}, in,
                            [&](const Operands& o) { return to_half(value(o), mode.host); });
            check_statement({std::string("cvt.") + mode.name + ".bf16." + from.name + " %d, %a;", 16, from.bits}, in,
                            [&](const Operands& o) { return to_bfloat(value(o), mode.host); });
        }
}

TEST_CASE("conversion: float and double to integer", "[conversion]") {
    std::vector<Operands> doubles = operands(Kind::f64), floats = operands(Kind::f32);
    for (double limit : {-0x1p31, 0x1p31, 0x1p32})
        for (int i = -8; i <= 8; ++i) {
            doubles.push_back({to_bits(limit + i * 0.25)});
            floats.push_back({to_bits(float(limit)) + unsigned(i)});
        }
    for (const Integer& to : integers)
        for (const Mode& mode : integer_modes) {
            auto integral = [&](double v) {
                std::fesetround(mode.host);
                volatile double result = std::nearbyint(v);
                std::fesetround(FE_TONEAREST);
                return result;
            };
            std::uint64_t top = 1ull << (to.bits - 1);
            check_statement({std::string("cvt.") + mode.name + "." + to.name + ".f32 %d, %a;", to.bits, 32},
                            floats, [&](const Operands& o) {
                                double v = from_bits<float>(o[0]);
                                if (std::isnan(v)) return to.bits == 64 ? top : 0;
                                return clamp_to(integral(v), to);
                            });
            check_statement({std::string("cvt.") + mode.name + "." + to.name + ".f64 %d, %a;", to.bits, 64},
                            doubles, [&](const Operands& o) {
                                double v = from_bits<double>(o[0]);
                                return std::isnan(v) ? top : clamp_to(integral(v), to);
                            });
        }
    check_statement({"cvt.rpi.ftz.s32.f32 %d, %a;"}, operands(Kind::f32), [](const Operands& o) -> std::uint64_t {
        float v = from_bits<float>(o[0]);
        if (std::isnan(v) || std::fpclassify(v) == FP_SUBNORMAL) return 0;
        return clamp_to(std::ceil(v), {"s32", 32, true});
    });
}

TEST_CASE("conversion: between floating types", "[conversion]") {
    for (const Mode& mode : rounding_modes) {
        std::string prefix = std::string("cvt.") + mode.name;
        check_statement({prefix + ".f32.f64 %d, %a;", 32, 64}, operands(Kind::f64), [&](const Operands& o) {
            return in_mode<float>(mode.host, [&] { return from_bits<double>(o[0]); });
        });
        check_statement({prefix + ".f16.f32 %d, %a;", 16, 32}, operands(Kind::f32),
                        [&](const Operands& o) { return to_half(from_bits<float>(o[0]), mode.host); });
        check_statement({prefix + ".bf16.f32 %d, %a;", 16, 32}, operands(Kind::f32),
                        [&](const Operands& o) { return to_bfloat(from_bits<float>(o[0]), mode.host); });
        check_statement({prefix + ".f16.f64 %d, %a;", 16, 64}, operands(Kind::f64),
                        [&](const Operands& o) { return to_half(from_bits<double>(o[0]), mode.host); });
        check_statement({prefix + ".bf16.f64 %d, %a;", 16, 64}, operands(Kind::f64),
                        [&](const Operands& o) { return to_bfloat(from_bits<double>(o[0]), mode.host); });
        check_statement({prefix + ".bf16.f16 %d, %a;", 16, 16}, operands(Kind::f16),
                        [&](const Operands& o) { return to_bfloat(from_half(o[0]), mode.host); });
        check_statement({prefix + ".f16.bf16 %d, %a;", 16, 16}, operands(Kind::bf16),
                        [&](const Operands& o) { return to_half(from_bfloat(o[0]), mode.host); });
    }
    std::vector<Operands> all_halves;
    for (std::uint64_t i = 0; i < 0x10000; ++i) all_halves.push_back({i, 0, 0});
    check_statement({"cvt.f32.f16 %d, %a;", 32, 16}, all_halves,
                    [](const Operands& o) { return canonical_bits(float(from_half(o[0]))); });
    check_statement({"cvt.f32.bf16 %d, %a;", 32, 16}, all_halves,
                    [](const Operands& o) { return o[0] << 16; });
    for (const Mode& mode : integer_modes) {
        auto integral = [&](auto v) {
            std::fesetround(mode.host);
            volatile auto result = std::nearbyint(v);
            std::fesetround(FE_TONEAREST);
            return canonical_bits(decltype(v)(result));
        };
        check_statement({std::string("cvt.") + mode.name + ".f32.f32 %d, %a;"}, operands(Kind::f32),
                        [&](const Operands& o) { return integral(from_bits<float>(o[0])); });
        check_statement({std::string("cvt.") + mode.name + ".f64.f64 %d, %a;", 64, 64}, [] {
            auto in = operands(Kind::f64);
            std::erase_if(in, [](const Operands& o) { return std::isnan(from_bits<double>(o[0])); });
            return in;
        }(), [&](const Operands& o) { return integral(from_bits<double>(o[0])); });
    }
    check_statement({"cvt.sat.f32.f32 %d, %a;"}, operands(Kind::f32), [](const Operands& o) {
        float v = from_bits<float>(o[0]);
        return to_bits(v > 0 ? std::fmin(v, 1.0f) : 0.0f);
    });
}

TEST_CASE("conversion: packed, clamped and tf32", "[conversion]") {
    auto pairs = operands(Kind::f32, Kind::f32);
    check_statement({"cvt.rn.f16x2.f32 %d, %a, %b;", 32, 32, 32}, pairs, [](const Operands& o) {
        return to_half(from_bits<float>(o[0]), FE_TONEAREST) << 16 | to_half(from_bits<float>(o[1]), FE_TONEAREST);
    });
    auto relu = [](std::uint64_t bits) { return (bits & 0x8000) ? 0 : bits; };
    check_statement({"cvt.rz.relu.bf16x2.f32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) {
        return relu(to_bfloat(from_bits<float>(o[0]), FE_TOWARDZERO)) << 16 | relu(to_bfloat(from_bits<float>(o[1]), FE_TOWARDZERO));
    });
    check_statement({"cvt.rn.satfinite.f16.f32 %d, %a;", 16, 32}, operands(Kind::f32), [&](const Operands& o) {
        std::uint64_t bits = to_half(from_bits<float>(o[0]), FE_TONEAREST);
        return (bits & 0x7fff) == 0x7c00 ? bits - 1 : bits;
    });
    check_statement({"cvt.rna.tf32.f32 %d, %a;"}, operands(Kind::f32), [&](const Operands& o) -> std::uint64_t {
        if (std::isnan(from_bits<float>(o[0]))) return o[0] & 0xffffe000;
        return (std::uint32_t(o[0]) + 0x1000) & 0xffffe000; // adding half a unit rounds ties away from zero
    });
    // Of PTX 8.6 and sm_100: numbers too large become the largest tf32.
    const char* later = ".version 8.6\n.target sm_100\n.address_size 64\n";
    check_statement({"cvt.rz.satfinite.tf32.f32 %d, %a;", 32, 32, 0, 0, later}, operands(Kind::f32), [&](const Operands& o) -> std::uint64_t {
        if (std::isnan(from_bits<float>(o[0]))) return 0x7fffe000; // as recorded without .satfinite
        return std::isinf(from_bits<float>(o[0])) ? (o[0] & 0x80000000) | 0x7f7fe000 : o[0] & 0xffffe000;
    });
    check_statement({"cvt.rn.satfinite.relu.tf32.f32 %d, %a;", 32, 32, 0, 0, later}, operands(Kind::f32), [&](const Operands& o) -> std::uint64_t {
        if (std::isnan(from_bits<float>(o[0]))) return 0x7fffe000;
        if (o[0] & 0x80000000) return 0;
        return std::min<std::uint64_t>((std::uint32_t(o[0]) + 0xfff + (o[0] >> 13 & 1)) & 0xffffe000, 0x7f7fe000);
    });
    auto integers_in = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    check_statement({"cvt.pack.sat.s16.s32 %d, %a, %b;", 32, 32, 32}, integers_in, [](const Operands& o) {
        auto field = [](std::uint64_t v) { return std::uint64_t(std::uint16_t(std::clamp<std::int32_t>(std::int32_t(v), -32768, 32767))); };
        return field(o[0]) << 16 | field(o[1]);
    });
    check_statement({"cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, integers_in, [](const Operands& o) {
        auto field = [](std::uint64_t v) { return std::uint64_t(std::clamp<std::int32_t>(std::int32_t(v), 0, 255)); };
        return o[2] << 16 | field(o[0]) << 8 | field(o[1]);
    });
}

namespace {

/// e4m3 and e5m2 codes as numbers; NaN where the code is one.
double from_small(unsigned code, unsigned mantissa, unsigned bias) {
    unsigned magnitude = code & 0x7f, field = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
    double sign = code & 0x80 ? -1 : 1;
    if (mantissa == 3 && magnitude == 0x7f) return std::nan("");
    if (mantissa == 2 && magnitude >= 0x7c) return magnitude == 0x7c ? sign * INFINITY : std::nan("");
    return sign * std::ldexp(double(field ? fraction + (1u << mantissa) : fraction), int(field ? field : 1) - int(bias) - int(mantissa));
}

/// Nearest code, ties to even, clamped to the largest finite one.
std::uint64_t to_small(double value, unsigned mantissa, unsigned bias, unsigned largest) {
    if (std::isnan(value)) return 0x7f;
    unsigned best = 0;
    for (unsigned code = 1; code <= largest; ++code) {
        double distance = std::fabs(std::fabs(value) - from_small(code, mantissa, bias));
        double record = std::fabs(std::fabs(value) - from_small(best, mantissa, bias));
        if (distance < record || (distance == record && code % 2 == 0)) best = code;
    }
    if (std::fabs(value) > from_small(largest, mantissa, bias)) best = largest;
    return best | (std::signbit(value) ? 0x80 : 0);
}

} // namespace

TEST_CASE("conversion: eight-bit floats", "[conversion]") {
    auto in = operands(Kind::f32, Kind::f32);
    for (std::size_t i = 0; i < 1500; ++i) // the formats' own range
        in.push_back({to_bits(float(std::ldexp(1.0 + double(i % 37) / 32, int(i % 28) - 18))), to_bits(-float(i) / 64), 0});
    for (bool wide : {false, true}) {
        unsigned mantissa = wide ? 3 : 2, bias = wide ? 7 : 15, largest = wide ? 0x7e : 0x7b;
        std::string type = wide ? "e4m3x2" : "e5m2x2";
        check_statement({"cvt.rn.satfinite." + type + ".f32 %d, %a, %b;", 16, 32, 32}, in, [&](const Operands& o) {
            return to_small(from_bits<float>(o[0]), mantissa, bias, largest) << 8 | to_small(from_bits<float>(o[1]), mantissa, bias, largest);
        });
        std::vector<Operands> codes;
        for (std::uint64_t i = 0; i < 0x10000; i += 3) codes.push_back({i, 0, 0});
        check_statement({"cvt.rn.f16x2." + type + " %d, %a;", 32, 16}, codes, [&](const Operands& o) {
            return to_half(from_small(unsigned(o[0]) >> 8, mantissa, bias), FE_TONEAREST) << 16 |
                   to_half(from_small(unsigned(o[0]) & 255, mantissa, bias), FE_TONEAREST);
        });
    }
}
