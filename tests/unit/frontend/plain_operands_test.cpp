// SPDX-License-Identifier: Apache-2.0
// What is read without tokens becomes what the operand parser makes of it.
#include "frontend/parse/plain_operands.h"
#include "frontend/parse/operand_parser.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace ptarmigan;
using namespace ptarmigan::ptx;

namespace {

struct Operands {
    bool read = false;
    std::vector<OperandSyntax> nodes;
    std::uint32_t count = 0;
};

Operands plain(const std::string& text) {
    Operands result;
    const char* end = text.data() + text.size();
    result.read = read_plain_operands(text.data(), end, 1, text.data(), result.nodes, result.count) == end;
    return result;
}

/// The names are views into `source`.
Operands parsed(const SourceBuffer& source) {
    Diagnostics diagnostics(source, 20);
    TokenCursor cursor(source.text(), diagnostics);
    Operands result;
    try {
        do result.count += parse_operand(cursor, false, result.nodes);
        while (cursor.accept(','));
        result.read = cursor.accept(';') && cursor.at_end() && diagnostics.error_count() == 0;
    } catch (const Recover&) {
    }
    return result;
}

bool same(const OperandSyntax& a, const OperandSyntax& b) {
    return a.kind == b.kind && a.inverted == b.inverted && a.minus == b.minus && a.pair_follows == b.pair_follows &&
           a.has_offset == b.has_offset && a.has_index == b.has_index && a.extent == b.extent && a.children == b.children &&
           a.name == b.name && a.component == b.component && a.index == b.index && a.constant.kind == b.constant.kind &&
           a.constant.is_unsigned == b.constant.is_unsigned && a.constant.bits == b.constant.bits && a.location == b.location;
}

void check_same(const std::string& text) {
    INFO(text);
    const SourceBuffer source(text, "text");
    const Operands quick = plain(text), slow = parsed(source);
    REQUIRE(slow.read);
    CHECK(quick.count == slow.count);
    REQUIRE(quick.nodes.size() == slow.nodes.size());
    for (std::size_t i = 0; i < quick.nodes.size(); ++i) CHECK(same(quick.nodes[i], slow.nodes[i]));
}

} // namespace

TEST_CASE("plain operands: what compilers write is read without tokens") {
    for (const char* text : {"%r1, %r2, %r3;", " \t%rd1,[%rd2+-8];", "[a], {%f1, %f2, _, 0f7F800000};", "%r1, -5, 0;", "0d3FF0000000000000;",
                             "$L__BB0_1;", "%tid , 999999999999999999 ;", "{%r1};", "[%SP+16], 0;", "%f1, 0FbF800000;"}) {
        INFO(text);
        REQUIRE(plain(text).read);
        check_same(text);
    }
}

TEST_CASE("plain operands: all else is left to the parser") {
    for (const char* text : {"", ";", "%r1", "%r1,;", "%p|%q, %r1;", "!%p;", "%r1.x;", "%tid.x;", "[a].unified;", "[a, {%r1}];", "[4];", "a+4;", "a[1];", "[a+%r1];",
                             "[a+4U];", "1+1;", "-%r1;", "- 1;", "0x10;", "017;", "0b1;", "1.5;", "1e5;", "12U;", "1000000000000000000;", "0f3F8;",
                             "0f3F8000000;", "0d3FF000000000000;", "WARP_SZ;", "[WARP_SZ];", "{};", "{%r1;", "(%r1);", "%r1 /* a */;", "%r1\n;", "%;", "% r1;",
                             "{{%r1}};", "-0f3F800000;", "%r1, %r2 // ;"}) {
        INFO(text);
        CHECK_FALSE(plain(text).read);
    }
    std::string many = "{0";
    for (int i = 0; i < 10000; ++i) many += ",0";
    CHECK_FALSE(plain(many + "};").read);
}

TEST_CASE("plain operands: random ones are read as the parser reads them") {
    constexpr const char* pieces[] = {"%r1", "%rd", "a", "_", "$x", "%p2", "0", "7", "12", "-", "+", "[", "]", "{", "}", ",", ",", ", ", " ", "\t",
                                      ".x", "|", "!", "0f3F800000", "0d", "0x1", "5U", "WARP_SZ", "(", ")", "1.5", "%", "/", "e"};
    std::mt19937 random(1);
    unsigned read = 0;
    for (int i = 0; i < 200000; ++i) {
        std::string text;
        const unsigned length = 1 + random() % 9;
        for (unsigned k = 0; k < length; ++k) text += pieces[random() % std::size(pieces)];
        text += ';';
        if (!plain(text).read) continue;
        ++read;
        check_same(text);
    }
    CHECK(read > 1000);
}

TEST_CASE("plain numbers: decimal elements of lists") {
    const auto read = [](std::string_view text, std::size_t& used) -> std::int64_t {
        std::uint64_t value;
        const char* behind = read_plain_number(text.data(), text.data() + text.size(), value);
        if (behind == nullptr) return -1;
        used = static_cast<std::size_t>(behind - text.data());
        return static_cast<std::int64_t>(value);
    };
    std::size_t used = 0;
    CHECK(read("123,", used) == 123);
    CHECK(used == 3);
    CHECK(read("0}", used) == 0);
    CHECK(read("999999999999999999,", used) == 999999999999999999);
    for (const char* text : {"", "12", "01,", "0x1,", "1U,", "1.0,", "1 ,", "1+1,", "-1,", "a,", "1000000000000000000,", "1;"}) {
        INFO(text);
        CHECK(read(text, used) == -1);
    }
}
