// SPDX-License-Identifier: Apache-2.0
#include "frontend/link/link_unit.h"

#include "frontend/isa/form_pattern.h"
#include "frontend/parse/lexer.h"

#include <algorithm>
#include <cstdlib>

namespace ptarmigan::ptx {

namespace {

constexpr unsigned max_errors = 20;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// `.reg .b32 x<8>` declares x0 to x7 without writing them, so x3 in a body may be the register.
bool may_name_range_register(std::string_view text, std::string_view name) {
    while (!name.empty() && is_digit(name.back())) {
        name.remove_suffix(1);
        if (text.find(std::string(name) + "<") != std::string_view::npos) return true;
    }
    return false;
}

/// Copies a body token by token where something changes, and in whole stretches between.
class BodyRewriter {
public:
    BodyRewriter(const LinkUnit& unit, std::string_view body)
        : unit_(unit), body_(body), diagnostics_(unit.source, 1), lexer_(body, diagnostics_) {}

    std::string run() {
        for (Token token = lexer_.next(); token.kind != TokenKind::end;) {
            if (token.is_word("loc")) {
                token = source_line();
                continue;
            }
            if (token.kind == TokenKind::identifier) identifier(token);
            token = lexer_.next();
        }
        out_.append(body_.substr(copied_));
        return std::move(out_);
    }

private:
    std::size_t offset(const Token& token) const { return static_cast<std::size_t>(token.text.data() - body_.data()); }

    void replace(std::size_t from, std::size_t to, std::string_view with) {
        out_.append(body_.substr(copied_, from - copied_));
        out_.append(with);
        copied_ = to;
    }

    /// Lines keep their numbers.
    void drop(std::size_t from, std::size_t to) {
        const std::string_view dropped = body_.substr(from, to - from);
        const auto lines = std::count(dropped.begin(), dropped.end(), '\n');
        replace(from, to, lines == 0 ? " " : std::string(static_cast<std::size_t>(lines), '\n'));
    }

    void identifier(const Token& token) {
        const auto found = unit_.renamed.find(token.text);
        if (found == unit_.renamed.end()) return;
        replace(offset(token), offset(token) + token.text.size(), found->second);
    }

    /// `.loc file line column, function_name ..., inlined_at ...`: the number of the file moves;
    /// the rest names labels of debug sections, which are not linked.
    Token source_line() {
        const Token file = lexer_.next();
        lexer_.next();
        const Token column = lexer_.next();
        Token next = lexer_.next();
        if (file.kind != TokenKind::integer || column.kind != TokenKind::integer)
            return next; // the body's own error, found when it is bound
        const std::size_t end = offset(column) + column.text.size();
        const std::string number(file.text);
        replace(offset(file), offset(file) + file.text.size(),
                std::to_string(std::strtoul(number.c_str(), nullptr, 0) + unit_.first_file));
        bool dropped = false;
        while (next.is(',')) {
            const Token what = lexer_.next();
            const bool is_place = what.text == "inlined_at";
            if (!is_place && what.text != "function_name") return what; // as above: the body stays as it is
            for (unsigned i = 0; i < (is_place ? 3 : 1); ++i)
                if (const Token value = lexer_.next();
                    value.kind != (is_place ? TokenKind::integer : TokenKind::identifier))
                    return value;
            dropped = true;
            next = lexer_.next();
            if (!next.is('+')) continue;
            if (const Token value = lexer_.next(); value.kind != TokenKind::integer) return value;
            next = lexer_.next();
        }
        // A body ends with its brace; if no token is left, the lexer has given up, and the body stays as it is here
        // too.
        if (dropped && next.kind != TokenKind::end) drop(end, start(next));
        return next;
    }

    /// Where a token begins, the dot of a word and the quote of a string included.
    std::size_t start(const Token& token) const {
        const bool hidden = token.kind == TokenKind::word || token.kind == TokenKind::string;
        return offset(token) - (hidden ? 1 : 0);
    }

    const LinkUnit& unit_;
    std::string_view body_;
    Diagnostics diagnostics_;
    Lexer lexer_;
    std::string out_;
    std::size_t copied_ = 0;
};

} // namespace

LinkUnit::LinkUnit(std::string text, std::string name)
    : source(std::move(text), std::move(name)), diagnostics(source, max_errors) {
    context.text = source.text();
    context.module.name = source.name();
    bind_module(context, diagnostics);
    if (context.unclosed < context.module.functions.size()) { // nobody binds its body here
        const Function& function = context.module.functions[context.unclosed];
        diagnostics.error(function.location,
                          "the text ends inside the body of '" + function.name + "': a '}' is missing");
    }
    diagnostics.sort();
}

std::string_view LinkUnit::body(FunctionId function) const {
    const TextPosition& start = context.bodies[function];
    Diagnostics unused(source, 1);
    Lexer lexer(source.text(), unused, start);
    if (!lexer.skip_braces()) return "{}"; // the constructor has reported it
    return source.text().substr(start.offset - 1, lexer.position().offset - start.offset + 1);
}

bool LinkUnit::mentions(std::string_view symbol) const {
    for (FunctionId id = 0; id < module().functions.size(); ++id) {
        if (module().functions[id].is_declaration) continue;
        const std::string_view text = body(id);
        if (text.find(symbol) == std::string_view::npos) continue; // most names are in no body
        Diagnostics unused(source, 1);
        Lexer lexer(text, unused);
        for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next())
            if (token.kind == TokenKind::identifier && token.text == symbol) return true;
    }
    return false;
}

void rename_symbol(LinkUnit& unit, std::string_view name, std::string fresh) {
    if (!FormTable::get().rows_of(name).empty() || may_name_range_register(unit.source.text(), name))
        throw RenameConflict{std::string(name)};
    const auto found = unit.context.names.find(name);
    unit.renamed.emplace(found->first, fresh);
    for (Variable& variable : unit.module().variables)
        if (variable.name == name) variable.name = fresh;
    for (Function& function : unit.module().functions) {
        if (function.name == name) function.name = fresh;
        if (function.alias_of == name) function.alias_of = fresh;
    }
}

namespace {

/// `.loc` and not `.local`, maybe in a comment.
bool has_lines(std::string_view body) {
    for (std::size_t at = 0; (at = body.find(".loc", at)) != std::string_view::npos; at += 4)
        if (at + 4 >= body.size() || body[at + 4] != 'a') return true;
    return false;
}

} // namespace

std::string linked_body(const LinkUnit& unit, FunctionId function) {
    const std::string_view body = unit.body(function);
    if (unit.renamed.empty() && !has_lines(body)) return std::string(body);
    return BodyRewriter(unit, body).run();
}

} // namespace ptarmigan::ptx
