// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/lexer.h"

#include "frontend/parse/byte_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace ptarmigan::ptx {

namespace {

enum CharacterClass : std::uint8_t {
    blank = 1,
    identifier_start = 2,
    identifier_part = 4,
    digit = 8,
    hex_digit = 16,
    brace_scan = 32, ///< what skip_braces() must look at
};

constexpr std::array<std::uint8_t, 256> make_classes() {
    std::array<std::uint8_t, 256> classes{};
    for (int c = 0; c < 256; ++c) {
        std::uint8_t bits = 0;
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool number = c >= '0' && c <= '9';
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') bits |= blank;
        if (letter || c == '_' || c == '$' || c == '%') bits |= identifier_start;
        if (letter || number || c == '_' || c == '$') bits |= identifier_part;
        if (number) bits |= digit | hex_digit;
        if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) bits |= hex_digit;
        if (c == '{' || c == '}' || c == '/' || c == '"' || c == '\n') bits |= brace_scan;
        classes[static_cast<std::size_t>(c)] = bits;
    }
    return classes;
}
constexpr std::array<std::uint8_t, 256> classes = make_classes();

bool is_class(char c, std::uint8_t bits) {
    return (classes[static_cast<unsigned char>(c)] & bits) != 0;
}

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
    : text_(text.data()), at_(text_ + start.offset), end_(text_ + text.size()),
      line_start_(text_ + start.line_start), line_(start.line), diagnostics_(diagnostics) {}

TextPosition Lexer::position() const {
    return {static_cast<std::size_t>(at_ - text_), line_,
            static_cast<std::size_t>(line_start_ - text_)};
}

SourceLocation Lexer::location(const char* at) const {
    return {line_, static_cast<std::uint32_t>(at - line_start_) + 1};
}

Token Lexer::make(TokenKind kind, const char* begin, const char* end) const {
    Token token;
    token.kind = kind;
    token.text = {begin, static_cast<std::size_t>(end - begin)};
    token.location = location(begin);
    return token;
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

void Lexer::skip_blanks() {
    while (at_ < end_) {
        if (is_class(*at_, blank)) {
            ++at_;
        } else if (*at_ == '\n') {
            new_line(at_++);
        } else if (*at_ == '/' && at_ + 1 < end_ && at_[1] == '/') {
            skip_line();
        } else if (*at_ == '/' && at_ + 1 < end_ && at_[1] == '*') {
            skip_block_comment();
        } else if (*at_ == '#') { // line markers of a C preprocessor
            skip_line();
        } else {
            return;
        }
    }
}

void Lexer::skip_line() {
    while (at_ < end_ && *at_ != '\n') ++at_;
}

Token Lexer::next() {
    for (;;) {
        skip_blanks();
        if (at_ >= end_) return make(TokenKind::end, end_, end_);
        const char c = *at_;
        // `%` alone is an operator, before a letter it starts a name.
        if (is_class(c, identifier_start) &&
            (c != '%' || (at_ + 1 < end_ && is_class(at_[1], identifier_part)))) {
            const char* begin = at_++;
            while (at_ < end_ && is_class(*at_, identifier_part)) ++at_;
            return make(TokenKind::identifier, begin, at_);
        }
        if (c == '.' && at_ + 1 < end_ && is_class(at_[1], identifier_part)) return lex_word();
        if (is_class(c, digit)) return lex_number();
        if (c == '"') return lex_string();
        Token token = lex_symbol();
        if (token.kind != TokenKind::end) return token;
        diagnostics_.error(location(at_), "unexpected " + describe(c));
        // One message for a whole run of such bytes: binary input would otherwise use up the error
        // limit at once.
        while (at_ < end_ &&
               (static_cast<unsigned char>(*at_) >= 127 ||
                (static_cast<unsigned char>(*at_) < ' ' && *at_ != '\n') || *at_ == c))
            ++at_;
    }
}

Token Lexer::lex_word() {
    const char* begin = ++at_;
    for (;;) {
        while (at_ < end_ && is_class(*at_, identifier_part)) ++at_;
        if (end_ - at_ < 3 || at_[0] != ':' || at_[1] != ':' || !is_class(at_[2], identifier_part))
            break;
        at_ += 2;
    }
    Token token = make(TokenKind::word, begin, at_);
    --token.location.column;
    return token;
}

Token Lexer::lex_symbol() {
    const char c = *at_;
    constexpr std::string_view single = "{}()[]<>,;:=+-*/%!~&|^?@";
    if (single.find(c) == std::string_view::npos || c == '\0') return {};
    const bool two = at_ + 1 < end_ && is_two_character_operator(c, at_[1]);
    Token token = make(TokenKind::symbol, at_, at_ + (two ? 2 : 1));
    token.symbol = two ? two_characters(c, at_[1]) : static_cast<unsigned char>(c);
    at_ += two ? 2 : 1;
    return token;
}

Token Lexer::lex_number() {
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
        diagnostics_.error(location(begin), "malformed number '" + std::string(begin, std::min(at_, begin + 40)) +
                                                "'" + advice_on(kind, {begin, static_cast<std::size_t>(at_ - begin)}));
    return make(kind, begin, at_);
}

Token Lexer::lex_string() {
    const char* begin = at_++;
    while (at_ < end_ && *at_ != '"' && *at_ != '\n') {
        if (*at_ == '\\' && at_ + 1 < end_ && at_[1] != '\n') ++at_;
        ++at_;
    }
    Token token = make(TokenKind::string, begin + 1, at_);
    token.location = location(begin);
    if (at_ < end_ && *at_ == '"')
        ++at_;
    else
        diagnostics_.error(token.location, "this string does not end");
    return token;
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
            ++at_;
            while (at_ < end_ && *at_ != '"' && *at_ != '\n') at_ += *at_ == '\\' ? 2 : 1;
            if (at_ > end_) at_ = end_;
            if (at_ < end_ && *at_ == '"') ++at_;
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
