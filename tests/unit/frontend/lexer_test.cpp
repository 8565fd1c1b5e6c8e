// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/lexer.h"

#include <catch2/catch.hpp>

#include <random>

using namespace ptarmigan::ptx;

namespace {

struct Lexed {
    std::vector<Token> tokens;
    unsigned errors;
};

Lexed lex(const SourceBuffer& source) {
    Diagnostics diagnostics(source, 20);
    Lexer lexer(source.text(), diagnostics);
    Lexed result;
    for (Token t = lexer.next(); t.kind != TokenKind::end; t = lexer.next())
        result.tokens.push_back(t);
    result.errors = diagnostics.error_count();
    return result;
}

} // namespace

TEST_CASE("lexer: names, words and symbols with their positions") {
    const SourceBuffer source("@!%p1 ld.global.L1::evict_last.v2.f32\n  {%f1, $L__BB0_1}, [a+4];",
                              "t");
    const Lexed lexed = lex(source);
    REQUIRE(lexed.errors == 0);
    std::vector<std::string> texts;
    for (const Token& t : lexed.tokens) texts.emplace_back(t.text);
    CHECK(texts == std::vector<std::string>{"@",  "!",   "%p1", "ld",  "global", "L1::evict_last",
                                            "v2", "f32", "{",   "%f1", ",",      "$L__BB0_1",
                                            "}",  ",",   "[",   "a",   "+",      "4",
                                            "]",  ";"});
    CHECK(lexed.tokens[4].kind == TokenKind::word);
    CHECK(lexed.tokens[4].location.column == 9);
    CHECK(lexed.tokens[9].location.line == 2);
    CHECK(lexed.tokens[9].location.column == 4);
}

TEST_CASE("lexer: kinds of numbers") {
    const SourceBuffer source(
        "12 0x1F 017 0b11 7U 1.5 2e-3 3. 0f3F800000 0d3FF0000000000000 0F3f800000", "t");
    const Lexed lexed = lex(source);
    CHECK(lexed.errors == 0);
    std::vector<TokenKind> kinds;
    for (const Token& t : lexed.tokens) kinds.push_back(t.kind);
    using K = TokenKind;
    CHECK(kinds == std::vector<K>{K::integer, K::integer, K::integer, K::integer, K::integer,
                                  K::real, K::real, K::real, K::bits32, K::bits64, K::bits32});
}

TEST_CASE("lexer: a percent sign is an operator unless a name follows") {
    const SourceBuffer source("5 % 3 %r1", "t");
    const Lexed lexed = lex(source);
    REQUIRE(lexed.tokens.size() == 4);
    CHECK(lexed.tokens[1].is('%'));
    CHECK(lexed.tokens[3].is_identifier("%r1"));
}

TEST_CASE("lexer: comments, line markers and line ends are blank") {
    const SourceBuffer source("# 1 \"x.cu\"\n/* a\n */ x // y\r\n\tz", "t");
    const Lexed lexed = lex(source);
    REQUIRE(lexed.tokens.size() == 2);
    CHECK(lexed.tokens[0].location.line == 3);
    CHECK(lexed.tokens[1].location.line == 4);
}

TEST_CASE("lexer: a run of foreign bytes is one error") {
    const SourceBuffer source(std::string("a \x01\x02\xff\xfe b \0 c", 12), "t");
    const Lexed lexed = lex(source);
    CHECK(lexed.tokens.size() == 3);
    CHECK(lexed.errors == 2);
}

TEST_CASE("lexer: a body is skipped with comments and strings respected") {
    const SourceBuffer source("{ a { } /* } */ \"}\" // }\n } after", "t");
    Diagnostics diagnostics(source, 20);
    Lexer lexer(source.text(), diagnostics);
    CHECK(lexer.next().is('{'));
    CHECK(lexer.skip_braces());
    const Token after = lexer.next();
    CHECK(after.is_identifier("after"));
    CHECK(after.location.line == 2);
}

TEST_CASE("lexer: a body ends where its tokens say, at any length and alignment") {
    constexpr std::string_view pieces[] = {
        "add.u32 %r1, %r2, 3;",
        "\n",
        "{",
        "}",
        "// } {\n",
        "/* } \n { */",
        "\"} \\\" {\"",
        "/ ",
        "                                                                ",
        "{\n}\n{\n}\n"};
    std::minstd_rand random(3);
    for (unsigned round = 0; round < 3000; ++round) {
        std::string text = "{";
        const unsigned count = random() % 60, choices = 2 + random() % (std::size(pieces) - 1);
        for (unsigned i = 0; i < count; ++i) text += pieces[random() % choices];
        text += "} tail }";
        const SourceBuffer source(text, "t");
        Diagnostics diagnostics(source, 20);
        Lexer skipping(source.text(), diagnostics), reading(source.text(), diagnostics);
        skipping.next();
        reading.next();
        const bool closed = skipping.skip_braces();
        Token token;
        unsigned depth = 1;
        do {
            token = reading.next();
            depth += token.is('{');
            depth -= token.is('}');
        } while (depth != 0 && token.kind != TokenKind::end);
        INFO(text);
        REQUIRE(closed == (token.kind != TokenKind::end));
        if (!closed) continue;
        REQUIRE(skipping.position().offset == reading.position().offset);
        REQUIRE(skipping.position().line == reading.position().line);
        REQUIRE(skipping.position().line_start == reading.position().line_start);
    }
}
