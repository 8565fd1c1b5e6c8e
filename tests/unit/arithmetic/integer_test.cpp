// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, extended precision, logic and shift against the manual's pseudo-code.
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>

using namespace ptarmigan::test;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u128 = unsigned __int128;
using s128 = __int128;

namespace {

/// Checks `text` for a type: references get the operands as that type.
template <typename T, typename F> void binary(const std::string& text, F reference) {
    constexpr unsigned bits = 8 * sizeof(T);
    Kind kind = bits == 16 ? Kind::bits16 : bits == 32 ? Kind::bits32 : Kind::bits64;
    check_statement({text + " %d, %a, %b;", bits, bits, bits}, operands(kind, kind),
                    [&](const Operands& o) { return u64(reference(T(o[0]), T(o[1]))); });
}

template <typename T> s128 exact(T value) { return s128(value); }

template <typename T> void division(const std::string& type) {
    // Division by zero gives all ones on the hardware; the most negative number by -1 wraps.
    binary<T>("div." + type, [](T a, T b) { return b == 0 ? T(-1) : T(exact(a) / exact(b)); });
    binary<T>("rem." + type, [](T a, T b) { return b == 0 ? T(-1) : T(exact(a) % exact(b)); });
}

template <typename T> void arithmetic(const std::string& type) {
    constexpr unsigned bits = 8 * sizeof(T);
    binary<T>("add." + type, [](T a, T b) { return T(exact(a) + exact(b)); });
    binary<T>("sub." + type, [](T a, T b) { return T(exact(a) - exact(b)); });
    binary<T>("mul.lo." + type, [](T a, T b) { return T(u64(a) * u64(b)); });
    binary<T>("mul.hi." + type, [](T a, T b) { return T((exact(a) * exact(b)) >> bits); });
    binary<T>("min." + type, [](T a, T b) { return std::min(a, b); });
    binary<T>("max." + type, [](T a, T b) { return std::max(a, b); });
    division<T>(type);
}

u32 bits_32(s64 v) { return u32(v); }
s32 clamp_s32(s64 v) { return s32(std::clamp<s64>(v, INT32_MIN, INT32_MAX)); }

} // namespace

TEST_CASE("integer: sums, products, quotients, minima", "[integer]") {
    arithmetic<u16>("u16");
    arithmetic<s16>("s16");
    arithmetic<u32>("u32");
    arithmetic<s32>("s32");
    arithmetic<s64>("s64");
    binary<u64>("mul.hi.u64", [](u64 a, u64 b) { return u64((u128(a) * b) >> 64); });
    binary<u64>("div.u64", [](u64 a, u64 b) { return b ? a / b : ~0ull; });
    binary<u64>("rem.u64", [](u64 a, u64 b) { return b ? a % b : ~0ull; });
    binary<u64>("min.u64", [](u64 a, u64 b) { return std::min(a, b); });
}

TEST_CASE("integer: division by constants", "[integer]") {
    auto in = operands(Kind::bits32);
    check_statement({"div.u32 %d, %a, 7;"}, in, [](const Operands& o) { return u32(o[0]) / 7; });
    check_statement({"div.s32 %d, %a, -10;"}, in, [](const Operands& o) { return bits_32(s32(o[0]) / -10); });
    check_statement({"rem.s32 %d, %a, 1000;"}, in, [](const Operands& o) { return bits_32(s32(o[0]) % 1000); });
    check_statement({"div.u32 %d, %a, 0;"}, in, [](const Operands&) { return ~0u; });
}

TEST_CASE("integer: saturation, wide and fused forms", "[integer]") {
    binary<s32>("add.sat.s32", [](s32 a, s32 b) { return clamp_s32(s64(a) + b); });
    binary<s32>("sub.sat.s32", [](s32 a, s32 b) { return clamp_s32(s64(a) - b); });
    auto pairs = operands(Kind::bits32, Kind::bits32);
    check_statement({"mul.wide.s32 %d, %a, %b;", 64, 32, 32}, pairs,
                    [](const Operands& o) { return u64(s64(s32(o[0])) * s32(o[1])); });
    check_statement({"mul.wide.u32 %d, %a, %b;", 64, 32, 32}, pairs,
                    [](const Operands& o) { return u64(u32(o[0])) * u32(o[1]); });
    auto triples = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    check_statement({"mad.lo.s32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples,
                    [](const Operands& o) { return u32(o[0]) * u32(o[1]) + u32(o[2]); });
    check_statement({"mad.hi.u32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples,
                    [](const Operands& o) { return u32(u64(u32(o[0])) * u32(o[1]) >> 32) + u32(o[2]); });
    check_statement({"mad.hi.sat.s32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [](const Operands& o) {
        return bits_32(clamp_s32(s64(s32(s64(s32(o[0])) * s32(o[1]) >> 32)) + s32(o[2])));
    });
    check_statement({"sad.s32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [](const Operands& o) {
        s64 a = s32(o[0]), b = s32(o[1]);
        return u32(o[2]) + u32(a < b ? b - a : a - b);
    });
    check_statement({"mul24.hi.s32 %d, %a, %b;", 32, 32, 32}, pairs, [](const Operands& o) {
        auto low = [](u64 v) { return s64(s32(u32(v) << 8) >> 8); };
        return u32(low(o[0]) * low(o[1]) >> 16);
    });
    check_statement({"mad24.lo.u32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [](const Operands& o) {
        return u32((o[0] & 0xffffff) * (o[1] & 0xffffff)) + u32(o[2]);
    });
}

TEST_CASE("integer: packed 16-bit forms", "[integer]") {
    auto pairs = operands(Kind::bits32, Kind::bits32);
    auto halves = [](auto op) {
        return [op](const Operands& o) {
            u64 low = u16(op(s16(o[0]), s16(o[1]))), high = u16(op(s16(o[0] >> 16), s16(o[1] >> 16)));
            return high << 16 | low;
        };
    };
    check_statement({"add.s16x2 %d, %a, %b;", 32, 32, 32}, pairs, halves([](s16 a, s16 b) { return a + b; }));
    check_statement({"min.s16x2 %d, %a, %b;", 32, 32, 32}, pairs, halves([](s16 a, s16 b) { return std::min(a, b); }));
    check_statement({"max.u16x2 %d, %a, %b;", 32, 32, 32}, pairs,
                    halves([](u16 a, u16 b) { return std::max(a, b); }));
    check_statement({"max.relu.s16x2 %d, %a, %b;", 32, 32, 32}, pairs,
                    halves([](s16 a, s16 b) { return std::max<s16>({a, b, 0}); }));
}

TEST_CASE("integer: carries", "[integer]") {
    auto pairs = operands(Kind::bits64, Kind::bits64);
    // 64-bit sums and differences out of 32-bit halves.
    const std::string split = "mov.b64 {%w0, %w1}, %a; mov.b64 {%w2, %w3}, %b; ", join = " mov.b64 %d, {%w0, %w1};";
    check_statement({split + "add.cc.u32 %w0, %w0, %w2; addc.u32 %w1, %w1, %w3;" + join, 64, 64, 64}, pairs,
                    [](const Operands& o) { return o[0] + o[1]; });
    check_statement({split + "sub.cc.u32 %w0, %w0, %w2; subc.u32 %w1, %w1, %w3;" + join, 64, 64, 64}, pairs,
                    [](const Operands& o) { return o[0] - o[1]; });
    // The third word of a 128-bit sum shows the carry out of a carry in.
    check_statement({"add.cc.u64 %l0, %a, %b; addc.cc.u64 %l1, %a, %b; addc.u64 %d, 0, 0;", 64, 64, 64}, pairs,
                    [](const Operands& o) { return u64((u128(o[0]) + o[1] + ((u128(o[0]) + o[1]) >> 64)) >> 64); });
    check_statement({"sub.cc.u64 %l0, %a, %b; subc.cc.u64 %l1, %a, %b; subc.u64 %d, 0, 0;", 64, 64, 64}, pairs,
                    [](const Operands& o) {
                        u64 borrow = o[0] < o[1];
                        return u64(0) - u64(o[0] < o[1] || (borrow && o[0] == o[1]));
                    });
    check_statement({"mad.lo.cc.u64 %l0, %a, %b, %c; madc.hi.u64 %d, %a, %b, 0;", 64, 64, 64, 64},
                    operands(Kind::bits64, Kind::bits64, Kind::bits64),
                    [](const Operands& o) { return u64((u128(o[0]) * o[1] + o[2]) >> 64); });
}

TEST_CASE("integer: bits", "[integer]") {
    auto one = operands(Kind::bits32), one64 = operands(Kind::bits64);
    check_statement({"popc.b32 %d, %a;"}, one, [](const Operands& o) { return std::popcount(u32(o[0])); });
    check_statement({"popc.b64 %d, %a;", 32, 64}, one64, [](const Operands& o) { return std::popcount(o[0]); });
    check_statement({"clz.b32 %d, %a;"}, one, [](const Operands& o) { return std::countl_zero(u32(o[0])); });
    check_statement({"clz.b64 %d, %a;", 32, 64}, one64, [](const Operands& o) { return std::countl_zero(o[0]); });
    check_statement({"brev.b32 %d, %a;"}, one, [](const Operands& o) {
        u32 r = 0;
        for (unsigned i = 0; i < 32; ++i) r |= (u32(o[0]) >> i & 1) << (31 - i);
        return r;
    });
    auto find = [](u64 a, unsigned bits, bool is_signed, bool shift) -> u64 {
        if (is_signed && (a >> (bits - 1) & 1)) a = ~a;
        if (bits == 32) a = u32(a);
        for (int i = int(bits) - 1; i >= 0; --i)
            if (a >> i & 1) return shift ? bits - 1 - i : i;
        return 0xffffffff;
    };
    check_statement({"bfind.u32 %d, %a;"}, one, [&](const Operands& o) { return find(o[0], 32, false, false); });
    check_statement({"bfind.s32 %d, %a;"}, one, [&](const Operands& o) { return find(o[0], 32, true, false); });
    check_statement({"bfind.shiftamt.s32 %d, %a;"}, one, [&](const Operands& o) { return find(o[0], 32, true, true); });
    check_statement({"bfind.shiftamt.u64 %d, %a;", 32, 64}, one64,
                    [&](const Operands& o) { return find(o[0], 64, false, true); });
    check_statement({"abs.s32 %d, %a;"}, one, [](const Operands& o) { return s32(o[0]) < 0 ? -u32(o[0]) : u32(o[0]); });
    check_statement({"neg.s64 %d, %a;", 64, 64}, one64, [](const Operands& o) { return -o[0]; });
    check_statement({"cnot.b32 %d, %a;"}, one, [](const Operands& o) { return u32(o[0]) == 0; });
}

TEST_CASE("integer: nth set bit", "[integer]") {
    std::vector<Operands> in;
    for (const Operands& o : operands(Kind::bits32, Kind::shift, Kind::shift))
        in.push_back({o[0], o[1] % 32, u32(s32(o[2] % 80) - 40)});
    in.push_back({0xffff, 3, 0x80000000});
    check_statement({"fns.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, in, [](const Operands& o) -> u64 {
        u32 mask = u32(o[0]), base = u32(o[1]);
        s32 offset = s32(o[2]);
        if (u32(o[2]) == 0x80000000) return 0;
        if (offset == 0) return mask >> base & 1 ? base : 0xffffffff;
        s32 count = (offset < 0 ? -offset : offset) - 1, step = offset > 0 ? 1 : -1;
        for (s32 at = s32(base); at >= 0 && at < 32; at += step)
            if (mask >> at & 1 && count-- == 0) return u32(at);
        return 0xffffffff;
    });
}

namespace {

// Eight bits of positions and lengths count, all 32 for 64-bit fields (tests/recordings).
u64 field_operand(u64 value, unsigned bits) { return bits == 64 ? u32(value) : value & 255; }

u64 extract(u64 a, u64 b, u64 c, unsigned bits, bool is_signed) {
    u64 position = field_operand(b, bits), length = field_operand(c, bits), msb = bits - 1;
    bool sign = is_signed && length && (a >> std::min(position + length - 1, msb) & 1);
    u64 d = 0;
    for (unsigned i = 0; i <= msb; ++i)
        d |= u64(i < length && position + i <= msb ? a >> (position + i) & 1 : sign) << i;
    return d;
}

u64 insert(u64 a, u64 b, u64 c, u64 d, unsigned bits) {
    u64 position = field_operand(c, bits), length = field_operand(d, bits);
    for (u64 i = 0; i < length && position + i < bits; ++i)
        b = (b & ~(1ull << (position + i))) | (a >> i & 1) << (position + i);
    return b;
}

} // namespace

TEST_CASE("integer: bit fields", "[integer]") {
    auto in = operands(Kind::bits32, Kind::shift, Kind::shift), in64 = operands(Kind::bits64, Kind::shift, Kind::shift);
    check_statement({"bfe.u32 %d, %a, %b, %c;", 32, 32, 32, 32}, in,
                    [](const Operands& o) { return extract(u32(o[0]), o[1], o[2], 32, false); });
    check_statement({"bfe.s32 %d, %a, %b, %c;", 32, 32, 32, 32}, in,
                    [](const Operands& o) { return extract(u32(o[0]), o[1], o[2], 32, true); });
    check_statement({"bfe.s64 %d, %a, %b, %c;", 64, 64, 32, 32}, in64,
                    [](const Operands& o) { return extract(o[0], o[1], o[2], 64, true); });
    check_statement({"bfi.b32 %d, %a, 0x5a5aa5a5, %b, %c;", 32, 32, 32, 32}, in,
                    [](const Operands& o) { return insert(u32(o[0]), 0x5a5aa5a5, o[1], o[2], 32); });
    check_statement({"bfi.b64 %d, %a, 1234567, %b, %c;", 64, 64, 32, 32}, in64,
                    [](const Operands& o) { return insert(o[0], 1234567, o[1], o[2], 64); });
    auto pairs = operands(Kind::bits32, Kind::shift);
    auto extend = [](const Operands& o, bool clamp, bool is_signed) -> u64 {
        u32 a = u32(o[0]), b = u32(o[1]), n = b & 31;
        bool too_large = b >= 32 && clamp;
        u32 mask = too_large ? 0 : ~0u << n;
        bool sign = !(n == 0 || too_large || !is_signed) && (a >> ((n - 1) & 31) & 1);
        return (a & ~mask) | (sign ? mask : 0);
    };
    check_statement({"szext.clamp.s32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) { return extend(o, true, true); });
    check_statement({"szext.wrap.s32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) { return extend(o, false, true); });
    check_statement({"szext.wrap.u32 %d, %a, %b;", 32, 32, 32}, pairs, [&](const Operands& o) { return extend(o, false, false); });
    auto mask = [](const Operands& o, bool clamp) -> u64 {
        u32 a = u32(o[0]), b = u32(o[1]), a1 = a & 31, b1 = b & 31, sum = a1 + b1;
        u32 mask0 = clamp && a >= 32 ? 0 : ~0u << a1, mask1 = sum < 32 ? ~0u << sum : 0;
        if (sum >= 32 || (clamp && (a >= 32 || b >= 32))) mask1 = 0;
        else if (b1 == 0) mask1 = ~0u;
        return mask0 & ~mask1;
    };
    auto shifts = operands(Kind::shift, Kind::shift);
    check_statement({"bmsk.clamp.b32 %d, %a, %b;", 32, 32, 32}, shifts, [&](const Operands& o) { return mask(o, true); });
    check_statement({"bmsk.wrap.b32 %d, %a, %b;", 32, 32, 32}, shifts, [&](const Operands& o) { return mask(o, false); });
}

TEST_CASE("integer: dot products", "[integer]") {
    auto in = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    auto byte = [](u64 v, unsigned i, bool is_signed) { return is_signed ? s64(std::int8_t(v >> 8 * i)) : s64(v >> 8 * i & 255); };
    auto half = [](u64 v, unsigned i, bool is_signed) { return is_signed ? s64(s16(v >> 16 * i)) : s64(v >> 16 * i & 65535); };
    for (bool a_signed : {false, true})
        for (bool b_signed : {false, true}) {
            const std::string types = std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32");
            check_statement({"dp4a" + types + " %d, %a, %b, %c;", 32, 32, 32, 32}, in, [&](const Operands& o) {
                s64 sum = s64(o[2]);
                for (unsigned i = 0; i < 4; ++i) sum += byte(o[0], i, a_signed) * byte(o[1], i, b_signed);
                return u32(sum);
            });
        }
    check_statement({"dp2a.hi.u32.s32 %d, %a, %b, %c;", 32, 32, 32, 32}, in, [&](const Operands& o) {
        s64 sum = s64(o[2]);
        for (unsigned i = 0; i < 2; ++i) sum += half(o[0], i, false) * byte(o[1], 2 + i, true);
        return u32(sum);
    });
}

TEST_CASE("integer: shifts", "[integer]") {
    auto in = operands(Kind::bits32, Kind::shift), in64 = operands(Kind::bits64, Kind::shift), in16 = operands(Kind::bits16, Kind::shift);
    check_statement({"shl.b32 %d, %a, %b;", 32, 32, 32}, in, [](const Operands& o) { return o[1] > 31 ? 0 : u32(o[0]) << o[1]; });
    check_statement({"shr.u32 %d, %a, %b;", 32, 32, 32}, in, [](const Operands& o) { return o[1] > 31 ? 0 : u32(o[0]) >> o[1]; });
    check_statement({"shr.s32 %d, %a, %b;", 32, 32, 32}, in,
                    [](const Operands& o) { return bits_32(s32(o[0]) >> std::min<u64>(o[1], 31)); });
    check_statement({"shl.b64 %d, %a, %b;", 64, 64, 32}, in64, [](const Operands& o) { return o[1] > 63 ? 0 : o[0] << o[1]; });
    check_statement({"shr.s64 %d, %a, %b;", 64, 64, 32}, in64,
                    [](const Operands& o) { return u64(s64(o[0]) >> std::min<u64>(o[1], 63)); });
    check_statement({"shl.b16 %d, %a, %b;", 16, 16, 32}, in16, [](const Operands& o) { return o[1] > 15 ? 0 : o[0] << o[1]; });
    check_statement({"shr.s16 %d, %a, %b;", 16, 16, 32}, in16,
                    [](const Operands& o) { return u64(s16(o[0]) >> std::min<u64>(o[1], 15)); });
    auto funnel = [](const Operands& o, bool left, bool clamp) -> u64 {
        u64 both = o[1] << 32 | u32(o[0]), n = clamp ? std::min<u64>(o[2], 32) : o[2] & 31;
        return left ? u32((n == 32 ? u64(u32(o[0])) << 32 : both << n) >> 32) : u32(both >> n);
    };
    auto triples = operands(Kind::bits32, Kind::bits32, Kind::shift);
    check_statement({"shf.l.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [&](const Operands& o) { return funnel(o, true, true); });
    check_statement({"shf.r.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [&](const Operands& o) { return funnel(o, false, true); });
    check_statement({"shf.l.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [&](const Operands& o) { return funnel(o, true, false); });
    check_statement({"shf.r.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, triples, [&](const Operands& o) { return funnel(o, false, false); });
}

TEST_CASE("integer: logic of three operands", "[integer]") {
    auto in = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    in.resize(200);
    for (unsigned table = 0; table < 256; table += 3)
        check_statement({"lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", 32, 32, 32, 32}, in, [&](const Operands& o) {
            u32 d = 0;
            for (unsigned i = 0; i < 32; ++i)
                d |= (table >> ((o[0] >> i & 1) << 2 | (o[1] >> i & 1) << 1 | (o[2] >> i & 1)) & 1) << i;
            return d;
        });
}

TEST_CASE("integer: byte permutation", "[integer]") {
    auto in = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    check_statement({"prmt.b32 %d, %a, %b, %c;", 32, 32, 32, 32}, in, [](const Operands& o) {
        u64 source = o[1] << 32 | u32(o[0]);
        u32 d = 0;
        for (unsigned i = 0; i < 4; ++i) {
            unsigned selector = o[2] >> 4 * i & 15;
            u32 byte = source >> 8 * (selector & 7) & 255;
            if (selector & 8) byte = byte & 128 ? 255 : 0;
            d |= byte << 8 * i;
        }
        return d;
    });
    auto mode = [&](const char* name, unsigned selector, u32 expected) {
        check_statement({std::string("prmt.b32.") + name + " %d, %a, %b, %c;", 32, 32, 32, 32},
                        {{0x03020100, 0x07060504, selector}, {0x03020100, 0x07060504, selector | 0xfffffffc}},
                        [&](const Operands&) { return expected; });
    };
    mode("f4e", 1, 0x04030201);
    mode("f4e", 3, 0x06050403);
    mode("b4e", 0, 0x05060700);
    mode("b4e", 2, 0x07000102);
    mode("rc8", 2, 0x02020202);
    mode("ecl", 1, 0x03020101);
    mode("ecr", 2, 0x02020100);
    mode("rc16", 3, 0x03020302);
}

// Forms of PTX 9.2, for compute capability 12.0.
TEST_CASE("integer: packed bytes and halfwords", "[integer]") {
    constexpr const char* head = ".version 9.2\n.target sm_120a\n.address_size 64\n";
    auto pairs = operands(Kind::bits32, Kind::bits32);
    using Element = s64 (*)(s64, s64);
    auto check = [&](const std::string& text, unsigned bits, bool sign, bool sat, Element element) {
        check_statement({text + " %d, %a, %b;", 32, 32, 32, 0, head}, pairs, [=](const Operands& o) {
            u64 result = 0, mask = (1ull << bits) - 1;
            for (unsigned at = 0; at < 32; at += bits) {
                auto part = [&](u64 word) {
                    u64 top = word >> at << (64 - bits);
                    return sign ? s64(top) >> (64 - bits) : s64(top >> (64 - bits));
                };
                s64 value = element(part(o[0]), part(o[1]));
                s64 low = sign ? -(1ll << (bits - 1)) : 0, high = s64(mask) + low;
                result |= (u64(sat ? std::clamp(value, low, high) : value) & mask) << at;
            }
            return result;
        });
    };
    Element add = [](s64 a, s64 b) { return a + b; }, sub = [](s64 a, s64 b) { return a - b; };
    Element min = [](s64 a, s64 b) { return std::min(a, b); }, max = [](s64 a, s64 b) { return std::max(a, b); };
    check("add.sat.u32", 32, false, true, add);
    check("add.u16x2", 16, false, false, add);
    check("add.sat.u16x2", 16, false, true, add);
    check("add.sat.s16x2", 16, true, true, add);
    check("add.u8x4", 8, false, false, add);
    check("add.sat.u8x4", 8, false, true, add);
    check("add.sat.s8x4", 8, true, true, add);
    check("sub.u8x4", 8, false, false, sub);
    check("sub.s8x4", 8, true, false, sub);
    check("min.u8x4", 8, false, false, min);
    check("min.s8x4", 8, true, false, min);
    check("max.u8x4", 8, false, false, max);
    check("max.s8x4", 8, true, false, max);
    check("min.relu.s8x4", 8, true, false, [](s64 a, s64 b) { return std::max<s64>(std::min(a, b), 0); });
    check("max.relu.s8x4", 8, true, false, [](s64 a, s64 b) { return std::max<s64>(std::max(a, b), 0); });
    check_statement({"neg.s8x4 %d, %a;", 32, 32, 0, 0, head}, operands(Kind::bits32), [](const Operands& o) {
        u32 result = 0;
        for (unsigned at = 0; at < 32; at += 8) result |= ((0u - (u32(o[0]) >> at)) & 255) << at;
        return result;
    });
}
