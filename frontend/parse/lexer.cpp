// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/lexer.h"

#include "frontend/parse/byte_blocks.h"
#include "frontend/parse/character_classes.h"

#include <algorithm>
#include <bit>
#include <string>

namespace ptarmigan::ptx {

namespace {

bool is_two_character_operator(char a, char b) {
    switch (a) {
    case '<': return b == '<' || b == '=';
    case '>': return b == '>' || b == '=';
    case '=':
    case '&':
    case '|':
    case '@': return a == b;
    case '!': return b == '=';
    default: return false;
    }
}

/// What to change in a malformed number, where that is clear.
std::string advice_on(TokenKind kind, std::string_view number) {
    if (kind == TokenKind::bits32 || kind == TokenKind::bits64)
        return kind == TokenKind::bits32 ? ": 8 hexadecimal digits must follow 0f"
                                         : ": 16 hexadecimal digits must follow 0d";
    const bool suffix = number.ends_with('f') || number.ends_with('F');
    return kind == TokenKind::real && suffix ? ": floating-point constants have no suffix" : "";
}

std::string describe(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 127) return std::string("'") + c + "'";
    constexpr char digits[] = "0123456789abcdef";
    return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

/// For few of them: x86-64's baseline has no instruction that counts.
unsigned count_ones(std::uint64_t bits) {
    unsigned count = 0;
    for (; bits != 0; bits &= bits - 1) ++count;
    return count;
}

} // namespace

Lexer::Lexer(std::string_view text, Diagnostics& diagnostics, TextPosition start)
    : text_(text.data()), at_(text_ + start.offset), end_(text_ + text.size()), line_start_(text_ + start.line_start),
      line_(start.line), diagnostics_(diagnostics) {}

TextPosition Lexer::position() const {
    return {static_cast<std::size_t>(at_ - text_), line_, static_cast<std::size_t>(line_start_ - text_)};
}

void Lexer::go_back_to(const TextPosition& earlier) {
    at_ = text_ + earlier.offset;
    line_ = earlier.line;
    line_start_ = text_ + earlier.line_start;
}

void Lexer::skip_plain_blanks() {
    for (; at_ < end_; ++at_)
        if (*at_ == '\n')
            new_line(at_);
        else if (!is_class(*at_, blank))
            return;
}

SourceLocation Lexer::location(const char* at) const {
    return {line_, static_cast<std::uint32_t>(at - line_start_) + 1};
}

inline void Lexer::make(Token& token, TokenKind kind, const char* begin, const char* end) const {
    token.kind = kind;
    token.symbol = 0;
    token.text = {begin, static_cast<std::size_t>(end - begin)};
    token.location = location(begin);
}

void Lexer::skip_block_comment() {
    const SourceLocation start = location(at_);
    for (at_ += 2; at_ < end_; ++at_) {
        if (*at_ == '\n') new_line(at_);
        if (*at_ == '*' && at_ + 1 < end_ && at_[1] == '/') {
            at_ += 2;
            return;
        }
    }
    diagnostics_.error(start, "this comment does not end");
}

inline void Lexer::skip_blanks() {
    while (at_ < end_) {
        const char c = *at_;
        if (is_class(c, blank)) {
            ++at_;
        } else if (c == '\n') {
            new_line(at_++);
        } else if (c != '/' && c != '#') {
            return;
        } else if (!skip_comment()) {
            return;
        }
    }
}

/// Line markers of a C preprocessor, which begin with `#`, are comments too.
bool Lexer::skip_comment() {
    const char next = at_ + 1 < end_ ? at_[1] : '\0';
    if (*at_ == '/' && next == '*') {
        skip_block_comment();
        return true;
    }
    if (*at_ == '/' && next != '/') return false;
    skip_line();
    return true;
}

void Lexer::skip_line() {
    while (at_ < end_ && *at_ != '\n') ++at_;
}

void Lexer::next(Token& token) {
    for (;;) {
        skip_blanks();
        if (at_ >= end_) return make(token, TokenKind::end, end_, end_);
        const char c = *at_;
        // `%` alone is an operator, before a letter it starts a name.
        if (is_class(c, identifier_start) && (c != '%' || (at_ + 1 < end_ && is_class(at_[1], identifier_part)))) {
            const char* begin = at_;
            at_ = identifier_end(at_ + 1, end_);
            return make(token, TokenKind::identifier, begin, at_);
        }
        if (is_class(c, operator_or_bracket)) return lex_symbol(token);
        if (is_class(c, digit)) return lex_number(token);
        std::string_view word;
        if (next_word(word)) {
            make(token, TokenKind::word, word.data(), word.data() + word.size());
            --token.location.column;
            return;
        }
        if (c == '"') return lex_string(token);
        const bool is_mark = std::string_view(at_, end_).starts_with("\xef\xbb\xbf");
        diagnostics_.error(location(at_), is_mark ? "a byte order mark (UTF-8): PTX is ASCII, save the text without one"
                                                  : "unexpected " + describe(c));
        // One message for a whole run of such bytes: binary input would otherwise use up the error
        // limit at once.
        while (at_ < end_ && (static_cast<unsigned char>(*at_) >= 127 ||
                              (static_cast<unsigned char>(*at_) < ' ' && *at_ != '\n') || *at_ == c))
            ++at_;
    }
}

bool Lexer::next_word(std::string_view& word) {
    if (end_ - at_ < 2 || *at_ != '.' || !is_class(at_[1], identifier_part)) return false;
    const char* begin = ++at_;
    for (;;) {
        at_ = identifier_end(at_, end_);
        if (end_ - at_ < 3 || at_[0] != ':' || at_[1] != ':' || !is_class(at_[2], identifier_part)) break;
        at_ += 2;
    }
    word = {begin, static_cast<std::size_t>(at_ - begin)};
    return true;
}

inline void Lexer::lex_symbol(Token& token) {
    const char c = *at_;
    const bool two = at_ + 1 < end_ && is_two_character_operator(c, at_[1]);
    make(token, TokenKind::symbol, at_, at_ + (two ? 2 : 1));
    token.symbol = two ? two_characters(c, at_[1]) : static_cast<unsigned char>(c);
    at_ += two ? 2 : 1;
}

void Lexer::lex_number(Token& token) {
    const char* begin = at_;
    TokenKind kind = TokenKind::integer;
    bool good = true;
    auto digits_while = [&](auto accept) {
        const char* first = at_;
        while (at_ < end_ && accept(*at_)) ++at_;
        return at_ - first;
    };
    const auto is_hex = [](char c) { return is_class(c, hex_digit); };
    const auto is_digit = [](char c) { return is_class(c, digit); };
    const char second = at_ + 1 < end_ ? at_[1] : '\0';
    if (*at_ == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
        const bool is_float = second == 'f' || second == 'F';
        kind = is_float ? TokenKind::bits32 : TokenKind::bits64;
        at_ += 2;
        good = digits_while(is_hex) == (is_float ? 8 : 16);
    } else if (*at_ == '0' && (second == 'x' || second == 'X')) {
        at_ += 2;
        good = digits_while(is_hex) > 0;
    } else if (*at_ == '0' && (second == 'b' || second == 'B')) {
        at_ += 2;
        good = digits_while([](char c) { return c == '0' || c == '1'; }) > 0;
    } else {
        digits_while(is_digit);
        if (at_ < end_ && *at_ == '.') {
            kind = TokenKind::real;
            ++at_;
            digits_while(is_digit);
        }
        if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
            kind = TokenKind::real;
            ++at_;
            if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
            good = digits_while(is_digit) > 0;
        }
    }
    if (kind == TokenKind::integer && at_ < end_ && *at_ == 'U') ++at_;
    if (digits_while([](char c) { return is_class(c, identifier_part); }) > 0) good = false;
    if (!good)
        diagnostics_.error(location(begin), "malformed number '" + std::string(begin, std::min(at_, begin + 40)) + "'" +
                                                advice_on(kind, {begin, static_cast<std::size_t>(at_ - begin)}));
    make(token, kind, begin, at_);
}

/// Lines may end in a string, and a backslash is a character of it, as with ptxas.
void Lexer::lex_string(Token& token) {
    const char* begin = at_++;
    const SourceLocation start = location(begin);
    for (; at_ < end_ && *at_ != '"'; ++at_)
        if (*at_ == '\n') new_line(at_);
    make(token, TokenKind::string, begin + 1, at_);
    token.location = start;
    if (at_ < end_ && *at_ == '"')
        ++at_;
    else
        diagnostics_.error(token.location, "this string does not end");
}

/// Blocks without quotes and slashes that close no more braces than are open, which are most.
void Lexer::skip_plain_blocks(unsigned& depth) {
    while (static_cast<std::size_t>(end_ - at_) >= block_size) {
        if ((bytes_equal(at_, '"') | bytes_equal(at_, '/')) != 0) return;
        const unsigned closed = count_ones(bytes_equal(at_, '}'));
        if (closed >= depth) return;
        depth += count_ones(bytes_equal(at_, '{')) - closed;
        if (const std::uint64_t newlines = bytes_equal(at_, '\n'); newlines != 0) {
            line_ += count_ones(newlines);
            line_start_ = at_ + block_size - std::countl_zero(newlines);
        }
        at_ += block_size;
    }
}

bool Lexer::skip_braces() {
    unsigned depth = 1;
    const char* scan_to = at_; // in front of it blocks have been tried
    while (at_ < end_) {
        if (at_ >= scan_to) {
            skip_plain_blocks(depth);
            scan_to = at_ + std::min(block_size, static_cast<std::size_t>(end_ - at_));
            if (at_ >= end_) break;
        }
        const char c = *at_;
        if (!is_class(c, brace_scan)) {
            ++at_;
        } else if (c == '\n') {
            new_line(at_++);
        } else if (c == '{') {
            ++depth;
            ++at_;
        } else if (c == '}') {
            ++at_;
            if (--depth == 0) return true;
        } else if (c == '"') {
            for (++at_; at_ < end_ && *at_ != '"'; ++at_)
                if (*at_ == '\n') new_line(at_);
            if (at_ < end_) ++at_;
        } else if (at_ + 1 < end_ && at_[1] == '/') {
            skip_line();
        } else if (at_ + 1 < end_ && at_[1] == '*') {
            skip_block_comment();
        } else {
            ++at_;
        }
    }
    return false;
}

} // namespace ptarmigan::ptx
