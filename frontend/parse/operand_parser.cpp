// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/operand_parser.h"

namespace ptarmigan::ptx {

namespace {

constexpr unsigned max_nesting = 16; ///< of brackets in operands and braces in initialisers: bounds our stack

class OperandParser {
public:
    OperandParser(TokenCursor& cursor, bool parentheses_are_lists, std::vector<OperandSyntax>& out)
        : cursor_(cursor), lists_(parentheses_are_lists), out_(out) {}

    std::uint32_t operand(unsigned depth) {
        std::uint32_t siblings = 1;
        std::size_t index = single(depth);
        while (cursor_.accept('|')) {
            out_[index].pair_follows = true;
            index = single(depth);
            ++siblings;
        }
        return siblings;
    }

private:
    std::size_t append(OperandSyntax::Kind kind) {
        OperandSyntax& node = out_.emplace_back();
        node.kind = kind;
        node.location = cursor_.location();
        return out_.size() - 1;
    }

    std::size_t single(unsigned depth) {
        if (depth > max_nesting) cursor_.fail(cursor_.location(), "operands nested too deeply");
        if (cursor_.at('[')) return group(OperandSyntax::Kind::bracket, ']', depth);
        if (cursor_.at('{')) return group(OperandSyntax::Kind::braces, '}', depth);
        if (lists_ && depth == 0 && cursor_.at('(')) return group(OperandSyntax::Kind::parens, ')', depth);
        if (cursor_.at('!')) {
            const Token sign = cursor_.take();
            const SourceLocation at = sign.location;
            const Token& next = cursor_.peek();
            if (next.kind != TokenKind::identifier || next.text == "WARP_SZ") {
                const std::size_t constant = append(OperandSyntax::Kind::constant);
                out_[constant].location = at;
                out_[constant].constant = parse_constant_behind(cursor_, sign);
                return constant;
            }
            const std::size_t index = name(depth);
            out_[index].inverted = true;
            out_[index].location = at;
            return index;
        }
        if (cursor_.peek().kind == TokenKind::identifier && cursor_.peek().text != "WARP_SZ") return name(depth);
        return constant_or_negated_name(depth);
    }

    std::size_t name(unsigned depth) {
        const std::size_t index = append(OperandSyntax::Kind::name);
        OperandSyntax& node = out_[index]; // nothing below appends
        node.name = cursor_.peek().text;
        cursor_.advance();
        if (cursor_.peek().kind == TokenKind::word) node.component = cursor_.take().text;
        if (depth == 0 && cursor_.accept('[')) {
            index_of_array(node);
            if (cursor_.peek().kind == TokenKind::word && cursor_.peek().text == "unified")
                cursor_.advance();        // as ptxas: says nothing
        } else if (cursor_.accept('+')) { // `a-4` is written `a+-4`
            if (cursor_.peek().kind == TokenKind::identifier && cursor_.peek().text != "WARP_SZ")
                cursor_.fail_here("a constant behind '+' (registers are added by an instruction of their own)");
            node.constant = parse_constant(cursor_);
            node.has_offset = true;
            if (!node.constant.is_integer()) cursor_.fail(node.location, "an offset must be an integer");
        }
        return index;
    }

    void index_of_array(OperandSyntax& node) {
        node.has_index = true;
        if (cursor_.peek().kind == TokenKind::identifier && cursor_.peek().text != "WARP_SZ") {
            node.index = cursor_.take().text;
            node.constant = {Constant::Kind::integer, false, 0};
            if (cursor_.accept('+')) node.constant = parse_constant(cursor_);
        } else {
            node.constant = parse_constant(cursor_);
        }
        if (!node.constant.is_integer()) cursor_.fail(node.location, "an array index must be an integer");
        cursor_.expect(']', "behind the array index");
    }

    std::size_t constant_or_negated_name(unsigned depth) {
        const SourceLocation at = cursor_.location();
        const Token& token = cursor_.peek();
        if (token.is('-')) { // `-a` of the video instructions: look behind the sign
            const Token sign = cursor_.take();
            if (cursor_.peek().kind == TokenKind::identifier && cursor_.peek().text != "WARP_SZ") {
                const std::size_t index = name(depth);
                out_[index].minus = true;
                out_[index].location = at;
                return index;
            }
            const std::size_t index = append(OperandSyntax::Kind::constant);
            out_[index].location = sign.location;
            out_[index].constant = parse_constant_behind(cursor_, sign);
            return index;
        }
        const bool starts = token.is('(') || token.is('+') || token.is('~') || token.is('!') ||
                            token.kind == TokenKind::identifier ||
                            (token.kind >= TokenKind::integer && token.kind <= TokenKind::bits64) || is_fraction(token);
        if (!starts) cursor_.fail_here("an operand");
        const Constant value = parse_constant(cursor_);
        const std::size_t index = append(OperandSyntax::Kind::constant);
        out_[index].location = at;
        out_[index].constant = value;
        return index;
    }

    std::size_t group(OperandSyntax::Kind kind, char close, unsigned depth) {
        const std::size_t index = append(kind);
        cursor_.take();
        std::uint32_t children = 0;
        if (cursor_.at(close)) {
            if (kind == OperandSyntax::Kind::bracket) cursor_.fail_here("an address");
        } else {
            do children += operand(depth + 1);
            while (cursor_.accept(','));
        }
        if (kind == OperandSyntax::Kind::bracket && !cursor_.at(close) && cursor_.peek().kind == TokenKind::symbol &&
            !cursor_.at(';'))
            cursor_.fail_here(
                "']': an address is a register or a variable, at most with '+' and a constant ('+-4' for -4)");
        cursor_.expect(close, "behind this operand");
        OperandSyntax& node = out_[index];
        node.children = children;
        node.extent = static_cast<std::uint32_t>(out_.size() - index);
        if (kind == OperandSyntax::Kind::bracket && cursor_.peek().kind == TokenKind::word)
            node.component = cursor_.take().text; // [a].unified
        return index;
    }

    TokenCursor& cursor_;
    bool lists_;
    std::vector<OperandSyntax>& out_;
};

class InitializerParser {
public:
    InitializerParser(TokenCursor& cursor, std::vector<InitializerSyntax>& out) : cursor_(cursor), out_(out) {}

    void node(unsigned depth) {
        if (depth > max_nesting) cursor_.fail(cursor_.location(), "initialiser nested too deeply");
        InitializerSyntax node;
        node.location = cursor_.location();
        if (cursor_.at('{')) return braces(node, depth);
        if (cursor_.peek().kind == TokenKind::string) {
            node.kind = InitializerSyntax::Kind::string;
            node.name = cursor_.take().text;
        } else if (cursor_.peek().kind == TokenKind::identifier && cursor_.peek().text != "WARP_SZ") {
            symbol(node);
        } else {
            node.constant = parse_constant(cursor_);
            // 0xFF(symbol): one byte of an address
            if (node.constant.is_integer() && cursor_.at('(')) masked(node);
        }
        out_.push_back(node);
    }

private:
    void braces(InitializerSyntax node, unsigned depth) {
        cursor_.take();
        node.kind = InitializerSyntax::Kind::braces;
        const std::size_t index = out_.size();
        out_.push_back(node);
        std::uint32_t children = 0;
        if (!cursor_.at('}')) {
            do {
                if (cursor_.at('}')) break; // a comma may stand behind the last element
                if (cursor_.peek().kind == TokenKind::integer)
                    number();
                else
                    this->node(depth + 1);
                children += 1 + cursor_.take_plain_numbers(out_);
            } while (cursor_.accept(','));
        }
        cursor_.expect('}', "at the end of this initialiser");
        out_[index].children = children;
        out_[index].extent = static_cast<std::uint32_t>(out_.size() - index);
    }

    /// Tables of a hundred thousand integers are common, so these do not go through the expression
    /// parser.
    void number() {
        const Token token = cursor_.take();
        InitializerSyntax& node = out_.emplace_back();
        node.location = token.location;
        node.constant = number_value(cursor_, token);
        if (cursor_.at(',') || cursor_.at('}')) return;
        InitializerSyntax rest = node;
        out_.pop_back();
        rest.constant = parse_constant_after(cursor_, rest.constant);
        if (cursor_.at('(')) masked(rest);
        out_.push_back(rest);
    }

    void offset(InitializerSyntax& node) {
        if (cursor_.at('-')) cursor_.fail_here("',' or ';' (the offset -4 is written '+-4')");
        if (!cursor_.accept('+')) return;
        node.constant = parse_constant(cursor_);
        if (!node.constant.is_integer()) cursor_.fail(node.location, "an offset must be an integer");
    }

    void symbol(InitializerSyntax& node) {
        node.kind = InitializerSyntax::Kind::symbol;
        node.name = cursor_.take().text;
        if (cursor_.at('(')) {
            if (node.name != "generic") cursor_.fail_here("',' or ';'");
            cursor_.take();
            node.generic = true;
            node.name = cursor_.expect_identifier("a symbol");
            cursor_.expect(')', "behind this symbol");
        }
        offset(node);
    }

    void masked(InitializerSyntax& node) {
        const std::uint64_t mask = node.constant.bits;
        node.constant = {};
        unsigned byte = 0;
        while (byte < 8 && mask != std::uint64_t{0xff} << 8 * byte) ++byte;
        if (byte == 8) cursor_.fail(node.location, "a mask() must select exactly one byte");
        cursor_.take();
        InitializerSyntax inner;
        inner.location = cursor_.location();
        if (cursor_.peek().kind != TokenKind::identifier) cursor_.fail_here("a symbol");
        symbol(inner);
        cursor_.expect(')', "behind this symbol");
        inner.location = node.location;
        inner.masked = true;
        inner.mask_byte = static_cast<std::uint8_t>(byte);
        node = inner;
    }

    TokenCursor& cursor_;
    std::vector<InitializerSyntax>& out_;
};

} // namespace

std::uint32_t parse_operand(TokenCursor& cursor, bool parentheses_are_lists, std::vector<OperandSyntax>& out) {
    return OperandParser(cursor, parentheses_are_lists, out).operand(0);
}

void parse_initializer(TokenCursor& cursor, std::vector<InitializerSyntax>& out) {
    InitializerParser(cursor, out).node(0);
}

} // namespace ptarmigan::ptx
