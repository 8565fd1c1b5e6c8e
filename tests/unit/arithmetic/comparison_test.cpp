// SPDX-License-Identifier: Apache-2.0
// set and setp (manual 9.7.6.1, 9.7.6.2, 9.7.7.1, 9.7.7.2): every row of the table at least once, each head taken apart
// here for its reference.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <sstream>

using namespace ptarmigan::test;

namespace {

/// "set.lt.and.u32.f32": the words behind the opcode.
struct Head {
    bool is_setp = false;
    std::string compare, combine, destination, source; ///< combine: "" without a third operand

    explicit Head(const std::string& text) {
        std::istringstream stream(text);
        std::vector<std::string> words;
        for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
        is_setp = words[0] == "setp";
        compare = words[1];
        if (words[2] == "and" || words[2] == "or" || words[2] == "xor") combine = words[2];
        source = words.back();
        if (!is_setp) destination = words[words.size() - 2];
    }
};

unsigned width_of(const std::string& type) {
    return type.ends_with("16x2") || type.ends_with("32") ? 32 : type.ends_with("64") ? 64 : 16;
}

Kind kind_of(const std::string& type) {
    if (type == "f16" || type == "bf16") return type == "f16" ? Kind::f16 : Kind::bf16;
    if (type == "f32" || type == "f64") return type == "f32" ? Kind::f32 : Kind::f64;
    return width_of(type) == 16 ? Kind::bits16 : width_of(type) == 32 ? Kind::bits32 : Kind::bits64;
}

/// Exact for all formats up to double.
double decode(const std::string& type, std::uint64_t bits) {
    if (type == "f64") return from_bits<double>(bits);
    if (type == "f32") return double(from_bits<float>(bits));
    if (type == "bf16") return double(from_bits<float>((bits & 0xffff) << 16));
    const std::uint64_t field = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (field == 31) return fraction ? std::nan("") : sign * INFINITY;
    return sign * std::ldexp(double(field ? fraction + 1024 : fraction), int(field ? field : 1) - 25);
}

template <typename T> bool ordered(const std::string& compare, T a, T b) {
    const std::string name = compare.substr(0, 2);
    if (name == "eq") return a == b;
    if (name == "ne") return a != b;
    if (name == "lt" || name == "lo") return a < b;
    if (name == "le" || name == "ls") return a <= b;
    if (name == "gt" || name == "hi") return a > b;
    return a >= b; // ge, hs
}

/// One comparison of a scalar type.
bool compares(const Head& head, const std::string& type, std::uint64_t a, std::uint64_t b) {
    if (type[0] == 'f' || type.starts_with("bf")) {
        const double x = decode(type, a), y = decode(type, b);
        const bool nan = std::isnan(x) || std::isnan(y);
        if (head.compare == "num" || head.compare == "nan") return nan == (head.compare == "nan");
        return nan ? head.compare.size() == 3 : ordered(head.compare, x, y);
    }
    const unsigned unused = 64 - width_of(type);
    if (type[0] != 's') return ordered(head.compare, a << unused, b << unused);
    return ordered(head.compare, std::int64_t(a << unused), std::int64_t(b << unused));
}

bool combined(const Head& head, bool t, bool c) {
    return head.combine == "and" ? t && c : head.combine == "or" ? t || c : head.combine == "xor" ? t != c : t;
}

/// What set writes: all ones or one, per half for packed sources.
std::uint64_t written(const Head& head, bool low, bool high) {
    const std::string& type = head.destination;
    if (head.source == "f16x2" || head.source == "bf16x2") {
        const std::uint64_t one = type == "f16x2" ? 0x3c00 : type == "bf16x2" ? 0x3f80 : 0xffff;
        return (low ? one : 0) | (high ? one << 16 : 0);
    }
    const std::uint64_t one = type == "f16" ? 0x3c00 : type == "bf16" ? 0x3f80 : type == "f32" ? 0x3f800000
                              : width_of(type) == 16 ? 0xffff : 0xffffffff;
    return low ? one : 0;
}

void check_head(const std::string& text) {
    const Head head(text);
    const bool packed = head.source.ends_with("x2");
    const std::string type = packed ? head.source.substr(0, head.source.size() - 2) : head.source;
    const unsigned width = width_of(head.source);
    // The third operand is negated, so that this is seen too.
    const std::string third = head.combine.empty() ? "" : ", !%q";
    std::string statement = "setp.lt.s32 %q, %c, 0; ";
    if (head.is_setp)
        statement += text + (packed ? " %p|%q, %a, %b" : " %p, %a, %b") + third +
                     (packed ? "; selp.b32 %d, 1, 0, %p; selp.b32 %w0, 2, 0, %q; or.b32 %d, %d, %w0;" : "; selp.b32 %d, 1, 0, %p;");
    else
        statement += text + " %d, %a, %b" + third + ";";
    INFO(statement);
    const unsigned result = head.is_setp ? 32 : width_of(head.destination);
    check_statement({statement, result, width, width, 32}, operands(kind_of(head.source), kind_of(head.source), Kind::bits32),
                    [&](const Operands& o) -> std::uint64_t {
                        const bool c = std::int32_t(o[2]) >= 0;
                        const bool low = combined(head, compares(head, type, packed ? o[0] & 0xffff : o[0],
                                                                 packed ? o[1] & 0xffff : o[1]), c);
                        const bool high = packed && combined(head, compares(head, type, o[0] >> 16 & 0xffff, o[1] >> 16 & 0xffff), c);
                        return head.is_setp ? unsigned(low) | unsigned(high) << 1 : written(head, low, high);
                    });
}

} // namespace

TEST_CASE("comparisons: set and setp of integers and floats", "[comparisons]") {
    for (const char* head : {"set.eq.u32.b16", "set.ne.f32.b64", "set.eq.and.u32.b32", "set.lt.s32.s16", "set.lt.or.s32.s32",
                             "set.ge.xor.f32.s64", "set.ls.f32.u32", "set.lo.and.u32.u32", "set.hi.or.f32.u16",
                             "set.geu.s32.f64", "set.gtu.and.u32.f32", "set.nan.or.f32.f64", "setp.eq.and.b32",
                             "setp.ne.xor.b64", "setp.hs.or.u32", "setp.ls.and.u64", "setp.lt.xor.s16", "setp.ltu.and.f32",
                             "setp.num.xor.f64"})
        check_head(head);
}

TEST_CASE("comparisons: halves", "[comparisons]") {
    for (const char* head : {"set.lt.f16.f16", "set.geu.u16.f16", "set.le.s32.f16", "set.nan.and.f16.f16", "set.gt.xor.u32.f16",
                             "set.ne.bf16.bf16", "set.equ.or.bf16.bf16", "setp.ltu.and.f16", "setp.num.or.bf16"})
        check_head(head);
}

TEST_CASE("comparisons: half results of other types", "[comparisons]") {
    for (const char* head : {"set.eq.f16.b32", "set.ne.bf16.b16", "set.lt.f16.s32", "set.hi.f16.u16", "set.equ.f16.f64",
                             "set.ne.and.f16.b64", "set.ge.or.bf16.s16", "set.ls.xor.f16.u64", "set.leu.and.f16.f32",
                             "set.ge.bf16.s32", "set.lo.bf16.u32", "set.ltu.bf16.f32", "set.eq.xor.bf16.b32",
                             "set.lt.and.f16.s64", "set.hs.or.bf16.u16", "set.nan.and.bf16.f64"})
        check_head(head);
}

TEST_CASE("comparisons: pairs of halves", "[comparisons]") {
    for (const char* head : {"set.lt.f16x2.f16x2", "set.geu.u32.f16x2", "set.neu.and.f16x2.f16x2", "set.gt.or.s32.f16x2",
                             "set.le.bf16x2.bf16x2", "set.num.xor.bf16x2.bf16x2", "setp.lt.f16x2", "setp.nan.bf16x2",
                             "setp.ge.and.f16x2", "setp.neu.xor.bf16x2"})
        check_head(head);
}
