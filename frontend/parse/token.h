// SPDX-License-Identifier: Apache-2.0
// The tokens of PTX. A token is a view into the source text; nothing is copied.
#pragma once

#include "frontend/source/location.h"

#include <cstdint>
#include <string_view>

namespace ptarmigan::ptx {

enum class TokenKind : std::uint8_t {
    end,        ///< end of text
    identifier, ///< add, %r1, $L__BB0_2, _
    word,       ///< .global, .L1::evict_last, .128x256b; `text` is without the leading dot
    integer,    ///< 12, 0x1F, 017, 0b11, each with an optional U
    real,       ///< 1.5, 2e-3
    bits32,     ///< 0f3F800000
    bits64,     ///< 0d3FF0000000000000
    string,     ///< `text` is without the quotes, escapes as written
    symbol,     ///< an operator or bracket, see Token::symbol
};

/// Operators of two characters as one number; those of one character are their own code.
constexpr std::uint16_t two_characters(char a, char b) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(a) << 8 | static_cast<unsigned char>(b));
}

struct Token {
    TokenKind kind = TokenKind::end;
    std::uint16_t symbol = 0; ///< for kind symbol
    std::string_view text;
    SourceLocation location;

    bool is(char c) const { return symbol == static_cast<unsigned char>(c); }
    bool is(char a, char b) const { return symbol == two_characters(a, b); }
    bool is_word(std::string_view spelling) const { return kind == TokenKind::word && text == spelling; }
    bool is_identifier(std::string_view spelling) const { return kind == TokenKind::identifier && text == spelling; }
};

} // namespace ptarmigan::ptx
