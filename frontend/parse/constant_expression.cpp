// SPDX-License-Identifier: Apache-2.0
// Constant expressions (manual section 4.6): 64-bit integers, s64 unless a U suffix or a big
// literal makes them u64, and doubles. Evaluated while parsing, by precedence climbing.
#include "frontend/parse/cursor.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace ptarmigan::ptx {

namespace {

constexpr unsigned max_depth = 200; ///< of nested parentheses: a bound on our stack, not on any real program

Constant integer(std::uint64_t bits, bool is_unsigned = false) {
    return {Constant::Kind::integer, is_unsigned, bits};
}
Constant real(double value) {
    return {Constant::Kind::real, false, std::bit_cast<std::uint64_t>(value)};
}

double real_of(const Constant& c) {
    switch (c.kind) {
    case Constant::Kind::integer:
        return c.is_unsigned ? static_cast<double>(c.bits) : static_cast<double>(c.as_signed());
    default: return std::bit_cast<double>(c.bits);
    }
}

class Evaluator {
public:
    explicit Evaluator(TokenCursor& cursor) : cursor_(cursor) {}

    Constant conditional() { return conditional_of(binary(1)); }
    /// Likewise when the first operand is taken already.
    Constant conditional_after(const Constant& left) { return conditional_of(binary(1, left)); }
    /// Likewise when the first token was an operator of one operand that is taken already.
    Constant conditional_after(const Token& sign) {
        refuse_single(sign);
        return conditional_of(binary(1, negate(sign, unary())));
    }

private:
    Constant conditional_of(Constant condition) {
        if (!cursor_.at('?')) return condition;
        const SourceLocation at = cursor_.take().location;
        const Depth guard{enter()};
        Constant yes = conditional();
        cursor_.expect(':', "in this conditional expression");
        Constant no = conditional();
        need_integer(condition, at);
        need_integer(yes, at);
        need_integer(no, at);
        return condition.bits != 0 ? yes : no;
    }

    struct Depth {
        unsigned& value;
        ~Depth() { --value; }
    };

    unsigned& enter() {
        if (++depth_ > max_depth) cursor_.fail(cursor_.location(), "this expression is nested too deeply");
        return depth_;
    }

    void need_integer(const Constant& c, SourceLocation at) {
        if (!c.is_integer()) cursor_.fail(at, "this operator needs integer constants");
    }

    static int precedence(const Token& t) {
        if (t.kind != TokenKind::symbol) return 0;
        switch (t.symbol) {
        case two_characters('|', '|'): return 1;
        case two_characters('&', '&'): return 2;
        case '|': return 3;
        case '^': return 4;
        case '&': return 5;
        case two_characters('=', '='):
        case two_characters('!', '='): return 6;
        case '<':
        case '>':
        case two_characters('<', '='):
        case two_characters('>', '='): return 7;
        case two_characters('<', '<'):
        case two_characters('>', '>'): return 8;
        case '+':
        case '-': return 9;
        case '*':
        case '/':
        case '%': return 10;
        default: return 0;
        }
    }

    /// 0f and its digits are no part of an expression (manual 4.5.2), but `(0f...)` may be: with ptxas a double of
    /// these bits.
    void refuse_single(const Token& op) {
        if (cursor_.peek().kind == TokenKind::bits32)
            cursor_.fail(op.location, "a 0f literal takes no sign and no operator");
    }

    Constant binary(int minimum) {
        const bool is_single = cursor_.peek().kind == TokenKind::bits32;
        const Constant left = unary();
        if (is_single && precedence(cursor_.peek()) != 0)
            cursor_.fail(cursor_.location(), "a 0f literal takes no sign and no operator");
        return binary(minimum, left);
    }
    Constant binary(int minimum, Constant left) {
        for (;;) {
            const int level = precedence(cursor_.peek());
            // `a|b` between registers never comes here: the left side of `|` is a number.
            if (level < minimum || level == 0) return left;
            const Token op = cursor_.take();
            refuse_single(op);
            left = apply(op, left, binary(level + 1));
        }
    }

    Constant unary() {
        const Depth guard{enter()};
        const Token token = cursor_.peek();
        if (token.is('-') || token.is('+') || token.is('!') || token.is('~')) {
            cursor_.take();
            refuse_single(token);
            return negate(token, unary());
        }
        if (token.is('(')) return parenthesised();
        if (token.is_identifier("WARP_SZ")) {
            cursor_.take();
            return integer(32);
        }
        if (is_fraction(token) || (token.kind >= TokenKind::integer && token.kind <= TokenKind::bits64))
            return number_value(cursor_, cursor_.take());
        cursor_.fail_here("a constant");
    }

    Constant negate(const Token& op, const Constant& c) {
        if (op.is('+')) return c;
        if (op.is('-')) {
            if (c.kind == Constant::Kind::bits64) return {c.kind, false, c.bits ^ (std::uint64_t{1} << 63)};
            return c.is_integer() ? integer(0 - c.bits, c.is_unsigned) : real(-real_of(c));
        }
        need_integer(c, op.location);
        return op.is('!') ? integer(c.bits == 0) : integer(~c.bits, true);
    }

    /// `( expression )`, or a cast: (.s64) and (.u64) of what follows.
    Constant parenthesised() {
        cursor_.take();
        const Token& inside = cursor_.peek();
        if (inside.is_word("s64") || inside.is_word("u64")) {
            const bool is_unsigned = cursor_.take().text == "u64";
            cursor_.expect(')', "after the type of this cast");
            const SourceLocation at = cursor_.location();
            const Constant c = unary();
            need_integer(c, at);
            return integer(c.bits, is_unsigned);
        }
        const Constant c = conditional();
        cursor_.expect(')', "in this expression");
        return c;
    }

    Constant apply(const Token& op, const Constant& a, const Constant& b) {
        if (a.is_integer() != b.is_integer())
            cursor_.fail(op.location, "this operator mixes integer and floating-point constants");
        if (!a.is_integer()) return apply_real(op, real_of(a), real_of(b));
        const bool is_unsigned = a.is_unsigned || b.is_unsigned;
        const std::uint64_t x = a.bits, y = b.bits;
        const auto sx = a.as_signed(), sy = b.as_signed();
        auto truth = [&](bool value) { return integer(value); };
        switch (op.symbol) {
        case '+': return integer(x + y, is_unsigned);
        case '-': return integer(x - y, is_unsigned);
        case '*': return integer(x * y, is_unsigned);
        case '/': return divide(op, x, y, is_unsigned);
        case '%': return remainder(op, x, y);
        case '&': return integer(x & y, is_unsigned);
        case '|': return integer(x | y, is_unsigned);
        case '^': return integer(x ^ y, is_unsigned);
        case two_characters('<', '<'): return integer(x << shift_amount(y), a.is_unsigned);
        case two_characters('>', '>'):
            return a.is_unsigned ? integer(x >> shift_amount(y), true)
                                 : integer(static_cast<std::uint64_t>(sx >> shift_amount(y)));
        case '<': return truth(is_unsigned ? x < y : sx < sy);
        case '>': return truth(is_unsigned ? x > y : sx > sy);
        case two_characters('<', '='): return truth(is_unsigned ? x <= y : sx <= sy);
        case two_characters('>', '='): return truth(is_unsigned ? x >= y : sx >= sy);
        case two_characters('=', '='): return truth(x == y);
        case two_characters('!', '='): return truth(x != y);
        case two_characters('&', '&'): return truth(x != 0 && y != 0);
        default: return truth(x != 0 || y != 0);
        }
    }

    /// Of amounts beyond 63 ptxas takes the low six bits; the manual is silent.
    static unsigned shift_amount(std::uint64_t amount) { return amount & 63; }

    Constant divide(const Token& op, std::uint64_t x, std::uint64_t y, bool is_unsigned) {
        if (y == 0) cursor_.fail(op.location, "division by zero in a constant expression");
        if (is_unsigned) return integer(x / y, true);
        const auto sx = static_cast<std::int64_t>(x), sy = static_cast<std::int64_t>(y);
        // The most negative number has no quotient by -1.
        return integer(sy == -1 ? 0 - x : static_cast<std::uint64_t>(sx / sy));
    }

    /// Of unsigned numbers, whatever the operands are. The manual's table (4.5.6) calls the result signed; with ptxas
    /// it is not.
    Constant remainder(const Token& op, std::uint64_t x, std::uint64_t y) {
        if (y == 0) cursor_.fail(op.location, "division by zero in a constant expression");
        return integer(x % y, true);
    }

    Constant apply_real(const Token& op, double a, double b) {
        switch (op.symbol) {
        case '+': return real(a + b);
        case '-': return real(a - b);
        case '*': return real(a * b);
        case '/':
            if (b == 0) cursor_.fail(op.location, "division by zero in a constant expression");
            return real(a / b);
        case '<': return integer(a < b);
        case '>': return integer(a > b);
        case two_characters('<', '='): return integer(a <= b);
        case two_characters('>', '='): return integer(a >= b);
        case two_characters('=', '='): return integer(a == b);
        case two_characters('!', '='): return integer(a != b);
        default: cursor_.fail(op.location, "this operator needs integer constants");
        }
    }

    TokenCursor& cursor_;
    unsigned depth_ = 0;
};

/// The lexer has reported it, with what is wrong.
[[noreturn]] void fail_malformed(TokenCursor& cursor, const Token& token) {
    if (cursor.diagnostics().has_errors()) throw Recover{};
    cursor.fail(token.location, "malformed number '" + std::string(token.text.substr(0, 60)) + "'");
}

/// An integer of more than 64 bits. ptxas keeps the low 64 of those that have bit 63 clear before each further digit,
/// as its machine code shows, and refuses the others.
std::uint64_t low_bits_of_wide(TokenCursor& cursor, const Token& token, std::string_view digits, int base) {
    std::uint64_t value = 0;
    for (char c : digits) {
        if (static_cast<std::int64_t>(value) < 0) cursor.fail(token.location, "this integer does not fit in 64 bits");
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (digit >= base) fail_malformed(cursor, token);
        value = value * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
    }
    cursor.diagnostics().warning(token.location,
                                 "this integer does not fit in 64 bits: its low ones are taken, as by ptxas");
    return value;
}

Constant parse_integer(TokenCursor& cursor, const Token& token) {
    std::string_view digits = token.text;
    bool is_unsigned = false;
    if (digits.ends_with('U')) {
        is_unsigned = true;
        digits.remove_suffix(1);
    }
    int base = 10;
    if (digits.size() > 1 && digits[0] == '0') {
        const char second = digits[1];
        base = second == 'x' || second == 'X' ? 16 : second == 'b' || second == 'B' ? 2 : 8;
        digits.remove_prefix(base == 8 ? 1 : 2);
    }
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (status == std::errc::result_out_of_range)
        value = low_bits_of_wide(cursor, token, digits, base);
    else if (end != digits.data() + digits.size()) {
        if (base != 8 || digits.find_first_not_of("0123456789") != std::string_view::npos)
            fail_malformed(cursor, token);
        cursor.fail(token.location,
                    "malformed number '" + std::string(token.text.substr(0, 60)) + "': a 0 in front makes it octal");
    }
    return integer(value, is_unsigned || static_cast<std::int64_t>(value) < 0);
}

} // namespace

bool is_fraction(const Token& token) {
    return token.kind == TokenKind::word && token.text.find_first_not_of("0123456789") == std::string_view::npos;
}

Constant number_value(TokenCursor& cursor, const Token& token) {
    if (token.kind == TokenKind::integer) return parse_integer(cursor, token);
    if (token.kind == TokenKind::real || token.kind == TokenKind::word) {
        double value = 0;
        const char* first = token.text.data() - (token.kind == TokenKind::word ? 1 : 0); // the dot of `.5`
        const char* last = token.text.data() + token.text.size();
        const auto [end, status] = std::from_chars(first, last, value);
        if (status == std::errc::result_out_of_range) // too small or too large: strtod says which
            value = std::strtod(std::string(first, last).c_str(), nullptr);
        else if (status != std::errc() || end != last)
            fail_malformed(cursor, token);
        if (std::isinf(value)) cursor.fail(token.location, "this constant is beyond the range of .f64");
        // ptxas refuses subnormals too.
        const bool is_zero = value == 0 && status == std::errc();
        if (!is_zero && std::abs(value) < std::numeric_limits<double>::min())
            cursor.fail(token.location, "this constant is too small for a normal .f64 (0d and 16 digits say any)");
        return real(value);
    }
    Constant c;
    c.kind = token.kind == TokenKind::bits32 ? Constant::Kind::bits32 : Constant::Kind::bits64;
    const char* last = token.text.data() + token.text.size();
    const auto [end, status] = std::from_chars(token.text.data() + 2, last, c.bits, 16);
    if (status != std::errc() || end != last) fail_malformed(cursor, token);
    return c;
}

Constant parse_constant(TokenCursor& cursor) {
    return Evaluator(cursor).conditional();
}
Constant parse_constant_after(TokenCursor& cursor, const Constant& left) {
    return Evaluator(cursor).conditional_after(left);
}
Constant parse_constant_behind(TokenCursor& cursor, const Token& sign) {
    return Evaluator(cursor).conditional_after(sign);
}

} // namespace ptarmigan::ptx
