// SPDX-License-Identifier: Apache-2.0
// The parser's view of the tokens: look ahead, take, insist. A failed insistence reports and throws
// Recover, which the statement loops catch to go on behind the next `;`.
#pragma once

#include "frontend/parse/lexer.h"
#include "frontend/parse/syntax.h"

#include <string>

namespace ptarmigan::ptx {

/// Thrown after an error was reported; carries nothing.
struct Recover {};

/// "'}'", "'add'", "the end of the text": a token in a message.
std::string describe(const Token& token);

class TokenCursor {
public:
    TokenCursor(std::string_view text, Diagnostics& diagnostics, TextPosition start = {})
        : lexer_(text, diagnostics, start), diagnostics_(diagnostics), token_(lexer_.next()) {}

    const Token& peek() const { return token_; }
    Token take() {
        Token taken = token_;
        lexer_.next(token_);
        return taken;
    }
    void advance() { lexer_.next(token_); }
    /// Takes an opcode, into `out.words` up to `limit` of the words that follow it without a blank, and into `out.head`
    /// the text of all. If there are words and then plain operands (plain_operands.h) up to a `;`, takes these too and
    /// returns true.
    bool take_head(InstructionSyntax& out, std::size_t limit);
    /// At a ',' of an initialiser: takes it and the plain numbers behind it as long as there are any, leaving what
    /// separates the last one from what follows; returns how many.
    std::uint32_t take_plain_numbers(std::vector<InitializerSyntax>& out);
    bool at(char c) const { return token_.is(c); }
    bool at_end() const { return token_.kind == TokenKind::end; }
    bool accept(char c) {
        if (!token_.is(c)) return false;
        advance();
        return true;
    }
    bool accept_word(std::string_view spelling) {
        if (!token_.is_word(spelling)) return false;
        advance();
        return true;
    }
    /// `where` completes "expected 'c' ...".
    void expect(char c, std::string_view where);
    std::string_view expect_identifier(std::string_view what);
    /// An identifier that may be declared: `_`, `$` and WARP_SZ mean something else.
    std::string_view expect_name(std::string_view what);
    /// A constant expression of integers that is not negative.
    std::uint64_t expect_count(std::string_view what);

    /// A single integer literal: for places where an expression could swallow what follows.
    std::uint64_t expect_integer(std::string_view what);

    [[noreturn]] void fail(SourceLocation location, std::string text);
    [[noreturn]] void fail_here(std::string_view expected);
    Diagnostics& diagnostics() { return diagnostics_; }
    SourceLocation location() const { return token_.location; }

    /// Goes behind the next `;`, or to a brace or the end, whichever comes first.
    void skip_statement();
    /// For the token `{`, not taken yet: notes the place behind it and goes behind the closing
    /// brace, which `end` gets. With `is_closed`, it says whether there is one; else that there is none is an error.
    TextPosition skip_body(bool* is_closed = nullptr, std::size_t* end = nullptr);
    /// Drops the rest of the current token's line.
    void skip_line() {
        lexer_.skip_line();
        token_ = lexer_.next();
    }

private:
    Lexer lexer_;
    Diagnostics& diagnostics_;
    Token token_;
};

/// `.5`, which the lexer takes for a word.
bool is_fraction(const Token& token);
/// Parses and folds a constant expression (manual section 4.6) with C's operators and precedence.
Constant parse_constant(TokenCursor& cursor);
/// Likewise, of an expression whose first operand has been taken and is `left`.
Constant parse_constant_after(TokenCursor& cursor, const Constant& left);
/// Likewise, of an expression whose first token, the operator `sign`, has been taken.
Constant parse_constant_behind(TokenCursor& cursor, const Token& sign);
/// The value of a number token.
Constant number_value(TokenCursor& cursor, const Token& token);

} // namespace ptarmigan::ptx
