// SPDX-License-Identifier: Apache-2.0
// Single and double precision against the host's own arithmetic in the asked rounding mode.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace ptarmigan::test;

namespace {

struct Mode {
    const char* name;
    int host;
};
const Mode modes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <typename T> constexpr unsigned width = 8 * sizeof(T);
template <typename T> constexpr Kind kind = sizeof(T) == 4 ? Kind::f32 : Kind::f64;
template <typename T> constexpr const char* type = sizeof(T) == 4 ? "f32" : "f64";

/// Operands without NaN for double: which payload survives is not this test's business.
template <typename T> std::vector<Operands> numbers(std::vector<Operands> in) {
    if (sizeof(T) == 4) return in;
    std::erase_if(in, [](const Operands& o) {
        for (std::uint64_t v : o)
            if (std::isnan(from_bits<double>(v))) return true;
        return false;
    });
    return in;
}

template <typename T, typename F> void unary(const std::string& opcode, F reference) {
    for (const Mode& mode : modes)
        check_statement({opcode + "." + mode.name + "." + type<T> + " %d, %a;", width<T>, width<T>},
                        numbers<T>(operands(kind<T>)), [&](const Operands& o) {
                            return in_mode<T>(mode.host, [&] { return reference(from_bits<T>(o[0])); });
                        });
}

template <typename T, typename F> void binary(const std::string& opcode, F reference) {
    for (const Mode& mode : modes)
        check_statement({opcode + "." + mode.name + "." + type<T> + " %d, %a, %b;", width<T>, width<T>, width<T>},
                        numbers<T>(operands(kind<T>, kind<T>)), [&](const Operands& o) {
                            return in_mode<T>(mode.host, [&] { return reference(from_bits<T>(o[0]), from_bits<T>(o[1])); });
                        });
}

template <typename T> void all_roundings() {
    binary<T>("add", [](T a, T b) { return a + b; });
    binary<T>("sub", [](T a, T b) { return a - b; });
    binary<T>("mul", [](T a, T b) { return a * b; });
    binary<T>("div", [](T a, T b) { return a / b; });
    unary<T>("rcp", [](T a) { return T(1) / a; });
    unary<T>("sqrt", [](T a) { return std::sqrt(a); });
    std::vector<Operands> in = numbers<T>(operands(kind<T>, kind<T>, kind<T>));
    // Sums that cancel: c close to -a * b.
    for (std::size_t i = in.size(), n = 0; n < 1500; ++n) {
        Operands o = in[i - 1 - n];
        o[2] = to_bits(T(-from_bits<T>(o[0]) * from_bits<T>(o[1]))) + n % 3;
        if (!std::isnan(from_bits<T>(o[2]))) in.push_back(o);
    }
    for (const Mode& mode : modes)
        check_statement({std::string("fma.") + mode.name + "." + type<T> + " %d, %a, %b, %c;", width<T>, width<T>, width<T>, width<T>},
                        in, [&](const Operands& o) {
                            return in_mode<T>(mode.host, [&] {
                                return std::fma(from_bits<T>(o[0]), from_bits<T>(o[1]), from_bits<T>(o[2]));
                            });
                        });
}

} // namespace

// A saturated factor, a constant one and an addend that outweighs their product, as in expf; and one that does not.
TEST_CASE("float: directed sums with a bounded product", "[float]") {
    struct Sum {
        const char* constants;
        float factor, addend;
    };
    const Sum sums[] = {{"0f437C0000, 0f4B400001", 252.0f, 12582913.0f}, {"0fC37C0000, 0f4B400001", -252.0f, 12582913.0f},
                        {"0f437C0000, 0fCB400001", 252.0f, -12582913.0f}, {"0f3F800000, 0fC0000000", 1.0f, -2.0f},
                        {"0f3FC00000, 0f40000000", 1.5f, 2.0f},           {"0f3F000000, 0f3F800000", 0.5f, 1.0f}};
    std::vector<Operands> in = operands(Kind::f32);
    for (unsigned i = 0; i < 3000; ++i) in.push_back({to_bits(float(i * 2654435761u) * 0x1p-32f)});
    for (const Sum& sum : sums)
        for (const Mode& mode : modes) {
            const std::string text = std::string("cvt.sat.f32.f32 %w0, %a; fma.") + mode.name + ".f32 %d, %w0, ";
            check_statement({text + sum.constants + ";", 32, 32}, in, [&](const Operands& o) {
                const float a = from_bits<float>(o[0]), saturated = a > 0 ? std::min(a, 1.0f) : 0.0f;
                return in_mode<float>(mode.host, [&] { return std::fma(saturated, sum.factor, sum.addend); });
            });
        }
}

// From sm_20 on mad is fma (manual 9.7.3.7).
TEST_CASE("float: mad is fused", "[float]") {
    check_statement({"mad.rn.f32 %d, %a, %b, %c;", 32, 32, 32, 32}, operands(Kind::f32, Kind::f32, Kind::f32), [](const Operands& o) {
        return canonical_bits(std::fma(from_bits<float>(o[0]), from_bits<float>(o[1]), from_bits<float>(o[2])));
    });
    check_statement({"mad.rz.f64 %d, %a, %b, %c; setp.nan.f64 %p, %d, %d; @%p mov.b64 %d, 0;", 64, 64, 64, 64},
                    operands(Kind::f64, Kind::f64, Kind::f64), [](const Operands& o) {
                        const auto bits = in_mode<double>(FE_TOWARDZERO, [&] {
                            return std::fma(from_bits<double>(o[0]), from_bits<double>(o[1]), from_bits<double>(o[2]));
                        });
                        return std::isnan(from_bits<double>(bits)) ? 0 : bits;
                    });
}

TEST_CASE("float: arithmetic in every rounding mode", "[float]") { all_roundings<float>(); }
TEST_CASE("double: arithmetic in every rounding mode", "[float]") { all_roundings<double>(); }

TEST_CASE("float: nothing fuses unasked", "[float]") {
    check_statement({"mul.rn.f32 %d, %a, %b; add.rn.f32 %d, %d, %c;", 32, 32, 32, 32}, operands(Kind::f32, Kind::f32, Kind::f32),
                    [](const Operands& o) {
                        volatile float product = from_bits<float>(o[0]) * from_bits<float>(o[1]);
                        return canonical_bits(product + from_bits<float>(o[2]));
                    });
}

namespace {

float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

/// The exact double `v`, rounded to float with flushing: below 2^-126 after rounding to 24 bits.
float flush_round(double v) {
    float result = float(v);
    if (std::fabs(float(v * 0x1p24)) < 0x1p-102f) return std::copysign(0.0f, float(v));
    return result;
}

} // namespace

TEST_CASE("float: flushing to zero", "[float]") {
    auto pairs = operands(Kind::f32, Kind::f32);
    // Products around the smallest normal number, where the hardware looks at the result before its subnormal rounding.
    for (std::uint32_t i = 0; i < 3000; ++i)
        pairs.push_back({0x20000000 + i * 2731, 0x1f800000 - i * 2729 % 0x4000 + (i & 7), 0});
    auto in_float = [](const Operands& o, unsigned i) { return flushed(from_bits<float>(o[i])); };
    check_statement({"mul.ftz.f32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) {
        return canonical_bits(flush_round(double(in_float(o, 0)) * in_float(o, 1)));
    });
    check_statement({"add.ftz.f32 %d, %a, %b;", 32, 32, 32}, pairs,
                    [&](const Operands& o) { return canonical_bits(flushed(in_float(o, 0) + in_float(o, 1))); });
    check_statement({"fma.rn.ftz.f32 %d, %a, %b, 0f80000000;", 32, 32, 32}, pairs, [&](const Operands& o) {
        double product = double(in_float(o, 0)) * in_float(o, 1);
        return canonical_bits(flush_round(product + -0.0));
    });
    check_statement({"div.rn.ftz.f32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) {
        // The double quotient decides every float rounding as the exact one does.
        return canonical_bits(flush_round(double(in_float(o, 0)) / in_float(o, 1)));
    });
    check_statement({"setp.lt.ftz.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 32, 32, 32}, pairs,
                    [&](const Operands& o) { return in_float(o, 0) < in_float(o, 1); });
    check_statement({"abs.ftz.f32 %d, %a;"}, operands(Kind::f32),
                    [&](const Operands& o) { return canonical_bits(std::fabs(in_float(o, 0))); });
}

TEST_CASE("float: mad.f32 of sm_1x is the fused one, flushing", "[float]") {
    // As recorded on an H200 from PTX 1.4 for sm_13: a, b, c, then the result without and (of that result as c) with .sat.
    struct Recorded {
        std::uint32_t a, b, c, plain, saturated;
    };
    const Recorded recorded[] = {{0x3f800001, 0x3f800001, 0xbf800002, 0x28800000, 0x3f800000},
                                 {0x00400000, 0x3f800000, 0x00400000, 0x00000000, 0x00000000},
                                 {0x00800000, 0x3f000000, 0x00000000, 0x00000000, 0x00000000},
                                 {0x3f800001, 0x3f800001, 0x33800000, 0x3f800003, 0x3f800000},
                                 {0x7f800000, 0x00000000, 0x3f800000, 0x7fffffff, 0x00000000},
                                 {0xffc00123, 0x3f800000, 0x3f800000, 0x7fffffff, 0x00000000}};
    const char* head = ".version 1.4\n.target sm_13\n";
    for (const Recorded& r : recorded) {
        check_statement({"mad.f32 %d, %a, %b, %c;", 32, 32, 32, 32, head}, {{r.a, r.b, r.c}}, [&](const Operands&) { return r.plain; });
        check_statement({"mad.sat.f32 %d, %a, %b, %c;", 32, 32, 32, 32, head}, {{r.a, r.b, r.plain}},
                        [&](const Operands&) { return r.saturated; });
    }
}

TEST_CASE("float: saturation", "[float]") {
    check_statement({"add.sat.f32 %d, %a, %b;", 32, 32, 32}, operands(Kind::f32, Kind::f32), [](const Operands& o) {
        float sum = from_bits<float>(o[0]) + from_bits<float>(o[1]);
        return to_bits(sum > 0 ? std::fmin(sum, 1.0f) : 0.0f);
    });
}

namespace {

template <typename T> T lesser(T a, T b, bool is_max) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) == is_max ? b : a; // zeros of two signs
    return (a < b) != is_max ? a : b;
}

} // namespace

TEST_CASE("float: minima and maxima", "[float]") {
    auto pairs = operands(Kind::f32, Kind::f32);
    auto bits_of = [](float a, float b, bool is_max) { return canonical_bits(lesser(a, b, is_max)); };
    for (bool is_max : {false, true}) {
        std::string op = is_max ? "max" : "min";
        check_statement({op + ".f32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) {
            return bits_of(from_bits<float>(o[0]), from_bits<float>(o[1]), is_max);
        });
        check_statement({op + ".NaN.f32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) {
            float a = from_bits<float>(o[0]), b = from_bits<float>(o[1]);
            return std::isnan(a) || std::isnan(b) ? 0x7fffffff : bits_of(a, b, is_max);
        });
        check_statement({op + ".xorsign.abs.f32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) {
            float a = from_bits<float>(o[0]), b = from_bits<float>(o[1]);
            if (std::isnan(a) && std::isnan(b)) return 0x7fffffffu;
            return to_bits(std::copysign(lesser(std::fabs(a), std::fabs(b), is_max),
                                         std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f));
        });
        check_statement({op + ".f64 %d, %a, %b;", 64, 64, 64}, numbers<double>(operands(Kind::f64, Kind::f64)),
                        [&](const Operands& o) {
                            return to_bits(lesser(from_bits<double>(o[0]), from_bits<double>(o[1]), is_max));
                        });
    }
    // Constants, which the compiler may treat specially.
    for (const char* constant : {"0f00000000", "0f80000000", "0f3F800000", "0f7FC00000"})
        check_statement({std::string("max.f32 %d, %a, ") + constant + ";"}, operands(Kind::f32), [&](const Operands& o) {
            return bits_of(from_bits<float>(o[0]), from_bits<float>(std::stoul(constant + 2, nullptr, 16)), true);
        });
}

TEST_CASE("float: signs and classes", "[float]") {
    auto one = operands(Kind::f32);
    check_statement({"neg.f32 %d, %a;"}, one, [](const Operands& o) { return canonical_bits(-from_bits<float>(o[0])); });
    check_statement({"neg.f64 %d, %a;", 64, 64}, operands(Kind::f64), [](const Operands& o) { return o[0] ^ 1ull << 63; });
    check_statement({"copysign.f32 %d, %a, %b;", 32, 32, 32}, operands(Kind::f32, Kind::f32),
                    [](const Operands& o) { return (o[0] & 0x80000000) | (o[1] & 0x7fffffff); });
    auto test = [&](const char* name, auto reference) {
        check_statement({std::string("testp.") + name + ".f32 %p, %a; selp.b32 %d, 1, 0, %p;"}, one,
                        [&](const Operands& o) { return reference(from_bits<float>(o[0])); });
    };
    test("finite", [](float v) { return std::isfinite(v); });
    test("infinite", [](float v) { return std::isinf(v); });
    test("number", [](float v) { return !std::isnan(v); });
    test("notanumber", [](float v) { return std::isnan(v); });
    test("normal", [](float v) { return std::isnormal(v) || v == 0; });
    test("subnormal", [](float v) { return std::fpclassify(v) == FP_SUBNORMAL; });
}

TEST_CASE("float: comparisons", "[float]") {
    struct {
        const char* op;
        bool (*reference)(float, float);
    } cases[] = {
        {"eq", [](float a, float b) { return a == b; }},
        {"ne", [](float a, float b) { return a < b || a > b; }},
        {"lt", [](float a, float b) { return a < b; }},
        {"ge", [](float a, float b) { return a >= b; }},
        {"equ", [](float a, float b) { return !(a < b || a > b); }},
        {"neu", [](float a, float b) { return a != b; }},
        {"ltu", [](float a, float b) { return !(a >= b); }},
        {"leu", [](float a, float b) { return !(a > b); }},
        {"gtu", [](float a, float b) { return !(a <= b); }},
        {"geu", [](float a, float b) { return !(a < b); }},
        {"num", [](float a, float b) { return a == a && b == b; }},
        {"nan", [](float a, float b) { return a != a || b != b; }},
    };
    auto pairs = operands(Kind::f32, Kind::f32);
    for (auto& test : cases) {
        auto value = [&](const Operands& o) { return test.reference(from_bits<float>(o[0]), from_bits<float>(o[1])); };
        check_statement({std::string("setp.") + test.op + ".f32 %p|%q, %a, %b; selp.b32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", 32, 32, 32},
                        pairs, [&](const Operands& o) { return value(o) ? 1 : 2; });
        check_statement({std::string("set.") + test.op + ".f32.f32 %d, %a, %b;", 32, 32, 32}, pairs,
                        [&](const Operands& o) { return value(o) ? 0x3f800000 : 0; });
    }
    check_statement({"setp.ne.b32 %q, %b, 0; setp.gt.xor.s32 %p|%q, %a, 5, !%q; selp.b32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", 32, 32, 32},
                    operands(Kind::bits32, Kind::bits32), [](const Operands& o) {
                        bool t = std::int32_t(o[0]) > 5, c = o[1] == 0;
                        return (t ^ c ? 1 : 0) + (!t ^ c ? 2 : 0);
                    });
    check_statement({"slct.b32.f32 %d, %a, %b, %c;", 32, 32, 32, 32}, operands(Kind::bits32, Kind::bits32, Kind::f32),
                    [](const Operands& o) { return from_bits<float>(o[2]) >= 0 ? o[0] : o[1]; });
}
