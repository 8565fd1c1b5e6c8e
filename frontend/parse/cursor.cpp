// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/cursor.h"

#include "frontend/parse/plain_operands.h"

namespace ptarmigan::ptx {

std::string describe(const Token& token) {
    switch (token.kind) {
    case TokenKind::end: return "the end of the text";
    case TokenKind::word: return "'." + std::string(token.text.substr(0, 60)) + "'";
    case TokenKind::string: return "a string";
    default: return "'" + std::string(token.text.substr(0, 60)) + "'";
    }
}

void TokenCursor::fail(SourceLocation location, std::string text) {
    diagnostics_.error(location, std::move(text));
    throw Recover{};
}

void TokenCursor::fail_here(std::string_view expected) {
    fail(token_.location, "expected " + std::string(expected) + ", found " + describe(token_));
}

void TokenCursor::expect(char c, std::string_view where) {
    if (!accept(c)) fail_here(std::string("'") + c + "' " + std::string(where));
}

std::string_view TokenCursor::expect_identifier(std::string_view what) {
    if (token_.kind != TokenKind::identifier) fail_here(what);
    return take().text;
}

std::string_view TokenCursor::expect_name(std::string_view what) {
    if (token_.is_identifier("_") || token_.is_identifier("$") || token_.is_identifier("WARP_SZ")) fail_here(what);
    return expect_identifier(what);
}

std::uint64_t TokenCursor::expect_count(std::string_view what) {
    const SourceLocation start = token_.location;
    if (token_.kind != TokenKind::integer && !at('(') && !token_.is_identifier("WARP_SZ")) fail_here(what);
    const Constant value = parse_constant(*this);
    if (!value.is_integer() || (!value.is_unsigned && value.as_signed() < 0))
        fail(start, std::string(what) + " must be an integer that is not negative");
    return value.bits;
}

std::uint64_t TokenCursor::expect_integer(std::string_view what) {
    if (token_.is_identifier("WARP_SZ")) {
        take();
        return 32;
    }
    if (token_.kind != TokenKind::integer) fail_here(what);
    return number_value(*this, take()).bits;
}

bool TokenCursor::take_head(InstructionSyntax& out, std::size_t limit) {
    std::string_view head = token_.text, word;
    out.words.clear();
    while (out.words.size() < limit && lexer_.next_word(word)) {
        out.words.push_back(word);
        head = {head.data(), static_cast<std::size_t>(word.data() + word.size() - head.data())};
    }
    out.head = head;
    const char* behind = nullptr;
    if (!out.words.empty()) {
        const TextPosition here = lexer_.position();
        const char* line_start = lexer_.at() - (here.offset - here.line_start);
        behind = read_plain_operands(lexer_.at(), lexer_.end(), here.line, line_start, out.operands, out.operand_count);
    }
    if (behind != nullptr) lexer_.move_to(behind);
    lexer_.next(token_);
    return behind != nullptr;
}

std::uint32_t TokenCursor::take_plain_numbers(std::vector<InitializerSyntax>& out) {
    std::uint32_t count = 0;
    if (!at(',')) return count;
    for (;; ++count) {
        const TextPosition behind_comma = lexer_.position();
        lexer_.skip_plain_blanks();
        std::uint64_t value;
        const char* behind = read_plain_number(lexer_.at(), lexer_.end(), value);
        if (behind == nullptr) {
            lexer_.go_back_to(behind_comma);
            return count;
        }
        InitializerSyntax& node = out.emplace_back();
        node.constant = {Constant::Kind::integer, false, value};
        node.location = lexer_.location_here();
        lexer_.move_to(behind);
        lexer_.next(token_);
        if (!at(',')) return count + 1;
    }
}

void TokenCursor::skip_statement() {
    while (!at_end() && !at('{') && !at('}'))
        if (take().is(';')) return;
}

TextPosition TokenCursor::skip_body(bool* is_closed, std::size_t* end) {
    const Token open = token_; // the lexer stands right behind it: one token of look-ahead only
    const TextPosition body = lexer_.position();
    const bool closed = lexer_.skip_braces();
    if (is_closed != nullptr) *is_closed = closed;
    if (end != nullptr) *end = lexer_.position().offset;
    if (!closed && is_closed == nullptr) {
        token_ = lexer_.next();
        fail(open.location, "this '{' is never closed");
    }
    token_ = lexer_.next();
    return body;
}

} // namespace ptarmigan::ptx
