// SPDX-License-Identifier: Apache-2.0
// Conversions that the H200 doesn't have (manual 9.7.9.21): bfloat pairs to and from 8, 6 and 4 bits, fixed point, powers of
// two, scale factors, stochastic rounding. References search tables of all numbers that a format has.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace ptarmigan::test;
using u64 = std::uint64_t;

namespace {

constexpr const char* sm_100a = ".version 8.7\n.target sm_100a\n.address_size 64\n";
constexpr const char* sm_120a = ".version 9.2\n.target sm_120a\n.address_size 64\n";

/// A floating format of 1 + exponent + mantissa bits.
struct Format {
    std::string name;
    int mantissa, bias;
    unsigned largest, overflow, nan, bits;

    unsigned sign_bit() const { return 1u << (bits - 1); }
    double number(unsigned code) const {
        unsigned magnitude = code & (sign_bit() - 1), field = magnitude >> mantissa;
        double fraction = magnitude & ((1u << mantissa) - 1);
        double value = std::ldexp(field ? fraction + std::ldexp(1, mantissa) : fraction, int(field ? field : 1) - bias - mantissa);
        if (magnitude > largest) value = magnitude == overflow ? INFINITY : std::nan("");
        return code & sign_bit() ? -value : value;
    }
    /// The code of the largest number that is not above `magnitude`.
    unsigned below(double magnitude) const {
        unsigned low = 0, high = largest;
        while (low < high) {
            unsigned middle = (low + high + 1) / 2;
            number(middle) <= magnitude ? low = middle : high = middle - 1;
        }
        return low;
    }
    /// One unit above `below`, as if there were no largest number.
    double unit(double magnitude) const {
        int exponent = magnitude > 0 ? std::ilogb(magnitude) : 1 - bias;
        return std::ldexp(1, std::max(exponent, 1 - bias) - mantissa);
    }
};

const Format e4m3{"e4m3", 3, 7, 0x7e, 0x80, 0x7f, 8}, e5m2{"e5m2", 2, 15, 0x7b, 0x7c, 0x7f, 8};
const Format e2m3{"e2m3", 3, 1, 0x1f, 0x20, 0x1f, 6}, e3m2{"e3m2", 2, 3, 0x1f, 0x20, 0x1f, 6};
const Format e2m1{"e2m1", 1, 1, 0x07, 0x08, 0x07, 4};
const Format f16{"f16", 10, 15, 0x7bff, 0x7c00, 0x7fff, 16}, bf16{"bf16", 7, 127, 0x7f7f, 0x7f80, 0x7fff, 16};

u64 signed_code(const Format& format, unsigned code, double value, bool relu) {
    if (!std::signbit(value)) return code;
    return relu ? 0 : code | format.sign_bit();
}

u64 nearest(const Format& format, double value, bool satfinite, bool relu) {
    if (std::isnan(value)) return format.nan;
    double magnitude = std::fabs(value), unit = format.unit(magnitude);
    double rounded = std::isinf(magnitude) ? magnitude : std::nearbyint(magnitude / unit) * unit;
    unsigned code = rounded > format.number(format.largest) ? (satfinite ? format.largest : format.overflow) : format.below(rounded);
    return signed_code(format, code, value, relu);
}

/// Away from zero if the random bits and the first `count` of the bits that are lost carry.
u64 stochastic(const Format& format, double value, unsigned random, unsigned count, bool satfinite, bool relu) {
    if (std::isnan(value)) return format.nan;
    double magnitude = std::fabs(value), unit = format.unit(magnitude), rounded = magnitude;
    if (!std::isinf(magnitude)) {
        double units = magnitude / unit, whole = std::floor(units);
        bool carry = std::floor(std::ldexp(units - whole, int(count))) + random >= std::ldexp(1, int(count));
        rounded = (whole + carry) * unit;
    }
    unsigned code = rounded > format.number(format.largest) ? (satfinite ? format.largest : format.overflow) : format.below(rounded);
    return signed_code(format, code, value, relu);
}

double from_f32(u64 bits) { return double(from_bits<float>(bits)); }
double scale_of(u64 code) { return code == 255 ? std::nan("") : std::ldexp(1, int(code) - 127); }

/// Floats around the small formats' ranges, beside everything that breaks arithmetic.
std::vector<Operands> floats() {
    auto in = operands(Kind::f32, Kind::f32, Kind::bits32);
    for (unsigned i = 0; i < 2000; ++i)
        in.push_back({to_bits(float(std::ldexp(1.0 + double(i * 37 % 1024) / 1024, int(i % 44) - 26))), to_bits(-float(i) / 64),
                      u64(i) * 2654435761u & 0xffffffff});
    return in;
}

std::vector<Operands> halves() {
    auto in = operands(Kind::bits32, Kind::bits16);
    for (unsigned i = 0; i < 2000; ++i) in.push_back({u64(i * 2654435761u), 0x7f7f + i % 7 - 3 + (i % 5 << 8), 0});
    return in;
}

} // namespace

TEST_CASE("small conversions: bfloat pairs to 8, 6 and 4 bits and back", "[conversion]") {
    struct Forms {
        const Format& format;
        std::string down, up, scaled;
    };
    const Forms all[] = {
        {e4m3, "cvt.rn.satfinite.e4m3x2.bf16x2", "cvt.rn.bf16x2.e4m3x2", "cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2"},
        {e5m2, "cvt.rn.satfinite.e5m2x2.bf16x2", "cvt.rn.bf16x2.e5m2x2", "cvt.rn.scaled::n2::ue8m0.bf16x2.e5m2x2"},
        {e2m3, "cvt.rn.satfinite.e2m3x2.bf16x2", "cvt.rn.bf16x2.e2m3x2", "cvt.rn.scaled::n2::ue8m0.bf16x2.e2m3x2"},
        {e3m2, "cvt.rn.satfinite.e3m2x2.bf16x2", "cvt.rn.bf16x2.e3m2x2", "cvt.rn.scaled::n2::ue8m0.bf16x2.e3m2x2"},
        {e2m1, "cvt.rn.satfinite.e2m1x2.bf16x2", "cvt.rn.bf16x2.e2m1x2", "cvt.rn.scaled::n2::ue8m0.bf16x2.e2m1x2"}};
    for (const Forms& forms : all)
        for (bool relu : {false, true}) {
            const Format& format = forms.format;
            unsigned stride = format.bits == 4 ? 4 : 8, mask = (1u << stride) - 1;
            std::string words = relu ? ".relu " : " ";
            // Two numbers of 4 bits take a register of 8.
            std::string down = forms.down + words + "%d, %a;", up = forms.up + words + "%d, %a;";
            std::string scaled = forms.scaled + ".satfinite" + words + "%d, %a, %b;";
            if (stride == 4) {
                std::string narrow = "{.reg .b8 t; ", take = narrow + "cvt.u8.u16 t, %a; ";
                down = narrow + forms.down + words + "t, %a; cvt.u16.u8 %d, t;}";
                up = take + forms.up + words + "%d, t;}";
                scaled = take + forms.scaled + ".satfinite" + words + "%d, t, %b;}";
            }
            check_statement({down, 16, 32, 0, 0, sm_120a}, halves(), [&](const Operands& o) {
                auto one = [&](u64 half) { return nearest(format, bf16.number(unsigned(half)), true, relu); };
                return one(o[0] >> 16 & 0xffff) << stride | one(o[0] & 0xffff);
            });
            auto codes = halves();
            for (Operands& o : codes) o[0] &= format.bits == 6 ? 0x3f3f : 0xffff;
            check_statement({up, 32, 16, 0, 0, sm_120a}, codes, [&](const Operands& o) {
                auto one = [&](u64 code) { return nearest(bf16, format.number(unsigned(code & mask)), false, relu); };
                return one(o[0] >> stride) << 16 | one(o[0]);
            });
            check_statement({scaled, 32, 16, 16, 0, sm_120a}, codes, [&](const Operands& o) {
                auto one = [&](u64 code, u64 scale) {
                    return nearest(bf16, format.number(unsigned(code & mask)) * scale_of(scale), true, relu);
                };
                return one(o[0] >> stride, o[1] >> 8) << 16 | one(o[0], o[1] & 255);
            });
        }
}

TEST_CASE("small conversions: 6 and 4 bits from floats and halves, and back", "[conversion]") {
    struct Forms {
        const Format& format;
        std::string of_floats, of_halves, up;
    };
    const Forms all[] = {
        {e2m3, "cvt.rn.satfinite.e2m3x2.f32", "cvt.rn.satfinite.e2m3x2.f16x2", "cvt.rn.f16x2.e2m3x2"},
        {e3m2, "cvt.rn.satfinite.e3m2x2.f32", "cvt.rn.satfinite.e3m2x2.f16x2", "cvt.rn.f16x2.e3m2x2"},
        {e2m1, "cvt.rn.satfinite.e2m1x2.f32", "cvt.rn.satfinite.e2m1x2.f16x2", "cvt.rn.f16x2.e2m1x2"},
        {e4m3, "cvt.rn.satfinite.relu.e4m3x2.f32", "cvt.rn.satfinite.relu.e4m3x2.f16x2", "cvt.rn.relu.f16x2.e4m3x2"}};
    for (const Forms& forms : all) {
        const Format& format = forms.format;
        unsigned stride = format.bits == 4 ? 4 : 8, mask = (1u << stride) - 1;
        bool relu = format.bits == 8;
        auto down = [&](const std::string& head, const std::string& operands) {
            return stride == 4 ? "{.reg .b8 t; " + head + " t, " + operands + "; cvt.u16.u8 %d, t;}" : head + " %d, " + operands + ";";
        };
        check_statement({down(forms.of_floats, "%a, %b"), 16, 32, 32, 0, sm_120a}, floats(), [&](const Operands& o) {
            return nearest(format, from_f32(o[0]), true, relu) << stride | nearest(format, from_f32(o[1]), true, relu);
        });
        check_statement({down(forms.of_halves, "%a"), 16, 32, 0, 0, sm_120a}, halves(), [&](const Operands& o) {
            auto one = [&](u64 half) { return nearest(format, f16.number(unsigned(half & 0xffff)), true, relu); };
            return one(o[0] >> 16) << stride | one(o[0]);
        });
        auto codes = halves();
        for (Operands& o : codes) o[0] &= format.bits == 6 ? 0x3f3f : 0xffff;
        std::string up = stride == 4 ? "{.reg .b8 t; cvt.u8.u16 t, %a; " + forms.up + " %d, t;}" : forms.up + " %d, %a;";
        check_statement({up, 32, 16, 0, 0, sm_120a}, codes, [&](const Operands& o) {
            auto one = [&](u64 code) { return nearest(f16, format.number(unsigned(code & mask)), false, relu); };
            return one(o[0] >> stride) << 16 | one(o[0]);
        });
    }
}

TEST_CASE("small conversions: fixed point", "[conversion]") {
    // Multiples of 1/64 from -2 to 127/64.
    auto fixed = [](double value, bool relu) -> u64 {
        if (std::isnan(value)) return 0x7f;
        double units = std::clamp(std::nearbyint(value * 64), -128.0, 127.0);
        return relu && units < 0 ? 0 : u64(std::int64_t(units)) & 255;
    };
    check_statement({"cvt.rn.satfinite.s2f6x2.f32 %d, %a, %b;", 16, 32, 32, 0, sm_120a}, floats(),
                    [&](const Operands& o) { return fixed(from_f32(o[0]), false) << 8 | fixed(from_f32(o[1]), false); });
    check_statement({"{.reg .b16 s; cvt.u16.u32 s, %c; cvt.rn.satfinite.relu.scaled::n2::ue8m0.s2f6x2.f32 %d, %a, %b, s;}", 16, 32, 32, 32,
                     sm_120a}, floats(), [&](const Operands& o) {
        return fixed(from_f32(o[0]) / scale_of(o[2] >> 8 & 255), true) << 8 | fixed(from_f32(o[1]) / scale_of(o[2] & 255), true);
    });
    check_statement({"cvt.rn.satfinite.relu.s2f6x2.bf16x2 %d, %a;", 16, 32, 0, 0, sm_120a}, halves(), [&](const Operands& o) {
        return fixed(bf16.number(o[0] >> 16 & 0xffff), true) << 8 | fixed(bf16.number(o[0] & 0xffff), true);
    });
    check_statement({"cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.bf16x2 %d, %a, %b;", 16, 32, 16, 0, sm_120a}, halves(),
                    [&](const Operands& o) {
        return fixed(bf16.number(o[0] >> 16 & 0xffff) / scale_of(o[1] >> 8), false) << 8 |
               fixed(bf16.number(o[0] & 0xffff) / scale_of(o[1] & 255), false);
    });
    auto number = [](u64 code) { return double(std::int8_t(code)) / 64; };
    check_statement({"cvt.rn.bf16x2.s2f6x2 %d, %a;", 32, 16, 0, 0, sm_120a}, halves(), [&](const Operands& o) {
        return nearest(bf16, number(o[0] >> 8 & 255), false, false) << 16 | nearest(bf16, number(o[0] & 255), false, false);
    });
    check_statement({"cvt.rn.satfinite.relu.scaled::n2::ue8m0.bf16x2.s2f6x2 %d, %a, %b;", 32, 16, 16, 0, sm_120a}, halves(),
                    [&](const Operands& o) {
        return nearest(bf16, number(o[0] >> 8 & 255) * scale_of(o[1] >> 8), true, true) << 16 |
               nearest(bf16, number(o[0] & 255) * scale_of(o[1] & 255), true, true);
    });
}

TEST_CASE("small conversions: powers of two", "[conversion]") {
    struct Known {
        u64 value;
        unsigned rz, rp, rz_finite, rp_finite;
    };
    // 0, 2^-149, 2^-127 and next to it, 1, 1.5, -1.5, -1, the largest float, infinity, NaN.
    const Known known[] = {{0, 0, 0, 0, 0},           {1, 0, 0, 0, 0},
                           {0x400000, 0, 0, 0, 0},    {0x400001, 0, 1, 0, 1},
                           {0x3f800000, 127, 127, 127, 127}, {0x3fc00000, 127, 128, 127, 128},
                           {0xbfc00000, 127, 128, 127, 128}, {0xbf800000, 127, 127, 127, 127},
                           {0x7f7fffff, 254, 255, 254, 254}, {0x7f800000, 255, 255, 254, 254},
                           {0xff800000, 255, 255, 254, 254}, {0x7fc00000, 255, 255, 255, 255}};
    std::vector<Operands> in;
    for (unsigned i = 0; i < std::size(known); ++i) in.push_back({known[i].value, known[(i + 5) % std::size(known)].value, i});
    auto check = [&](const std::string& head, unsigned Known::*result) {
        check_statement({head + " %d, %a, %b;", 16, 32, 32, 32, sm_100a}, in, [&](const Operands& o) {
            return u64(known[o[2]].*result) << 8 | known[(o[2] + 5) % std::size(known)].*result;
        });
    };
    check("cvt.rz.ue8m0x2.f32", &Known::rz);
    check("cvt.rp.ue8m0x2.f32", &Known::rp);
    check("cvt.rz.satfinite.ue8m0x2.f32", &Known::rz_finite);
    check("cvt.rp.satfinite.ue8m0x2.f32", &Known::rp_finite);
    check_statement({"cvt.rp.satfinite.ue8m0x2.bf16x2 %d, %a;", 16, 32, 0, 0, sm_100a}, {{0xbfc03f80, 0, 0}, {0x7f800041, 0, 0}, {0x00407fff, 0, 0}},
                    [](const Operands& o) { return o[0] == 0xbfc03f80 ? 0x807fu : o[0] == 0x7f800041 ? 0xfe01u : 0x00ffu; });
    check_statement({"cvt.rn.bf16x2.ue8m0x2 %d, %a;", 32, 16, 0, 0, sm_100a}, halves(), [](const Operands& o) {
        return nearest(bf16, scale_of(o[0] >> 8 & 255), false, false) << 16 | nearest(bf16, scale_of(o[0] & 255), false, false);
    });
}

TEST_CASE("small conversions: stochastic rounding", "[conversion]") {
    struct Pair {
        const Format& format;
        std::string head;
        unsigned random_bits;
    };
    const Pair pairs[] = {{f16, "cvt.rs.f16x2.f32", 13}, {bf16, "cvt.rs.bf16x2.f32", 16}};
    for (const Pair& pair : pairs)
        for (unsigned words = 0; words < 4; ++words) {
            bool relu = words & 1, satfinite = words & 2;
            std::string text = pair.head + (relu ? ".relu" : "") + (satfinite ? ".satfinite" : "") + " %d, %a, %b, %c;";
            unsigned mask = (1u << pair.random_bits) - 1;
            check_statement({text, 32, 32, 32, 32, sm_100a}, floats(), [&](const Operands& o) {
                auto one = [&](u64 value, u64 random) {
                    return stochastic(pair.format, from_f32(value), unsigned(random) & mask, pair.random_bits, satfinite, relu);
                };
                return one(o[0], o[2] >> 16) << 16 | one(o[1], o[2]);
            });
        }
    struct Four {
        const Format& format;
        std::string head;
    };
    const Four fours[] = {{e4m3, "cvt.rs.satfinite.e4m3x4.f32"},
                          {e5m2, "cvt.rs.satfinite.e5m2x4.f32"},
                          {e2m3, "cvt.rs.satfinite.relu.e2m3x4.f32"},
                          {e3m2, "cvt.rs.satfinite.relu.e3m2x4.f32"},
                          {e2m1, "cvt.rs.satfinite.e2m1x4.f32"},
                          {e2m1, "cvt.rs.relu.satfinite.e2m1x4.f32"}};
    auto reversed = [](u64 bits) {
        u64 result = 0;
        for (unsigned i = 0; i < 16; ++i) result |= (bits >> i & 1) << (15 - i);
        return result;
    };
    for (const Four& four : fours) {
        const bool relu = four.head.find("relu") != std::string::npos, nibbles = four.format.bits == 4;
        std::string text = four.head + " %d, {%a, %b, %b, %a}, %c;";
        check_statement({text, nibbles ? 16u : 32u, 32, 32, 32, sm_100a}, floats(), [&](const Operands& o) {
            auto one = [&](u64 value, u64 random) {
                return stochastic(four.format, from_f32(value), unsigned(random & 0xffff), 16, true, relu);
            };
            auto byte = [&](unsigned index) { return o[2] >> 8 * index & 0xff; };
            const u64 ab = nibbles ? byte(3) << 8 | byte(1) : o[2] >> 16, ef = nibbles ? byte(2) << 8 | byte(0) : o[2];
            const unsigned size = nibbles ? 4 : 8;
            return one(o[0], reversed(ab)) << 3 * size | one(o[1], ab) << 2 * size | one(o[1], reversed(ef)) << size | one(o[0], ef);
        });
    }
}

// Of rbits 0x12345678 the four numbers of e4m3x4 take 0x2c48, 0x1234, 0x1e6a and 0x5678, those of e2m1x4 0x6a48, 0x1256, 0x1e2c and
// 0x3478, as read from a B200. A number that lacks just these bits to the next one is rounded up, one that lacks more is not.
TEST_CASE("small conversions: which random bits a number takes", "[conversion]") {
    struct Case {
        const Format& format;
        std::string head;
        unsigned random[4];
    };
    const Case cases[] = {{e4m3, "cvt.rs.satfinite.e4m3x4.f32", {0x2c48, 0x1234, 0x1e6a, 0x5678}},
                          {e5m2, "cvt.rs.satfinite.e5m2x4.f32", {0x2c48, 0x1234, 0x1e6a, 0x5678}},
                          {e2m1, "cvt.rs.satfinite.e2m1x4.f32", {0x6a48, 0x1256, 0x1e2c, 0x3478}}};
    for (const Case& c : cases)
        for (unsigned place = 0; place < 4; ++place) {
            const unsigned lost = 23 - unsigned(c.format.mantissa);
            const std::uint32_t up = 0x3f800000 | (0x10000 - c.random[place]) << (lost - 16), stays = up - 1;
            std::string list;
            for (unsigned i = 0; i < 4; ++i) list += (i ? ", " : "") + std::string(i == place ? "%a" : "%b");
            const unsigned size = c.format.bits == 4 ? 4 : 8, one = unsigned(c.format.bias) << c.format.mantissa;
            const u64 ones = u64(one) << 3 * size | u64(one) << 2 * size | u64(one) << size | one;
            check_statement({c.head + " %d, {" + list + "}, %c;", 4 * size, 32, 32, 32, sm_100a},
                            {{up, 0x3f800000, 0x12345678}, {stays, 0x3f800000, 0x12345678}},
                            [&](const Operands& o) { return ones + (u64(o[0] == up) << (3 - place) * size); });
        }
}

TEST_CASE("small conversions: without a rounding modifier halves round to nearest", "[conversion]") {
    auto in = operands(Kind::bits16);
    check_statement({"cvt.f16.bf16 %d, %a;", 16, 16}, in,
                    [](const Operands& o) { return nearest(f16, bf16.number(unsigned(o[0])), false, false); });
    check_statement({"cvt.bf16.f16 %d, %a;", 16, 16}, in,
                    [](const Operands& o) { return nearest(bf16, f16.number(unsigned(o[0])), false, false); });
    auto less = [](const Operands& o) { return f16.number(unsigned(o[0])) < f16.number(unsigned(o[1])); };
    check_statement({"set.lt.bf16.f16 %d, %a, %b;", 16, 16, 16}, operands(Kind::f16, Kind::f16),
                    [&](const Operands& o) { return less(o) ? 0x3f80u : 0u; });
    check_statement({"setp.eq.b16 %p, %a, 0; set.lt.xor.bf16.f16 %d, %a, %b, !%p;", 16, 16, 16}, operands(Kind::f16, Kind::f16),
                    [&](const Operands& o) { return less(o) != (o[0] != 0) ? 0x3f80u : 0u; });
}
