// SPDX-License-Identifier: Apache-2.0
// Text to tokens, one at a time. Any bytes are safe input: what can't be a token is reported once
// and skipped.
#pragma once

#include "frontend/parse/token.h"
#include "frontend/source/diagnostic.h"

#include <string_view>

namespace ptarmigan::ptx {

/// A place in the text to start (again) from.
struct TextPosition {
    std::size_t offset = 0;
    std::uint32_t line = 1;
    std::size_t line_start = 0; ///< offset of the first byte of that line
};

class Lexer {
public:
    /// `text` and `diagnostics` must outlive the lexer.
    Lexer(std::string_view text, Diagnostics& diagnostics, TextPosition start = {});

    /// The next token; TokenKind::end for ever once the text is used up.
    Token next() {
        Token token;
        next(token);
        return token;
    }
    void next(Token& token);
    /// If a word like `.f32` follows at once, without a blank: goes behind it and sets `word`, without the dot.
    bool next_word(std::string_view& word);

    /// Goes on at `at`, a place further on in the line at hand.
    void move_to(const char* at) { at_ = at; }
    /// Goes over blanks and line ends.
    void skip_plain_blanks();

    /// Where the next token will be looked for.
    TextPosition position() const;
    SourceLocation location_here() const { return location(at_); }
    const char* at() const { return at_; }
    const char* end() const { return end_; }
    void go_back_to(const TextPosition& earlier);

    /// Skips to behind the `}` that closes a `{` just read, comments and strings respected. False
    /// if the text ends first.
    bool skip_braces();
    /// Skips the rest of the line (@@DWARF).
    void skip_line();

private:
    void skip_plain_blocks(unsigned& depth);
    void skip_blanks();
    bool skip_comment();
    void skip_block_comment();
    void make(Token& token, TokenKind kind, const char* begin, const char* end) const;
    void lex_symbol(Token& token);
    void lex_number(Token& token);
    void lex_string(Token& token);
    SourceLocation location(const char* at) const;
    void new_line(const char* newline) {
        ++line_;
        line_start_ = newline + 1;
    }

    const char* text_;
    const char* at_;
    const char* end_;
    const char* line_start_;
    std::uint32_t line_;
    Diagnostics& diagnostics_;
};

} // namespace ptarmigan::ptx
