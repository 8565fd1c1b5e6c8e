// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/statement_parser.h"

#include "frontend/isa/directives.h"
#include "frontend/isa/form_pattern.h"
#include "frontend/isa/words.h"
#include "frontend/parse/declaration_parser.h"
#include "frontend/parse/operand_parser.h"

namespace ptarmigan::ptx {

namespace {
constexpr unsigned max_scope_depth = 1000;
constexpr std::size_t max_words = 32, max_operand_nodes = 4096;
} // namespace

StatementParser::Kind StatementParser::next() {
    for (;;) {
        try {
            skip_ = false;
            const Kind kind = statement();
            if (!skip_) return kind;
        } catch (const Recover&) {
            if (cursor_.diagnostics().is_hopeless()) return Kind::end;
            misread = true;
            lost_declaration |= is_declaration_;
            cursor_.skip_statement();
            // A brace inside a malformed operand list is not a scope.
            while (cursor_.at('{')) {
                try {
                    cursor_.skip_body();
                } catch (const Recover&) {
                }
                cursor_.skip_statement();
            }
        }
    }
}

StatementParser::Kind StatementParser::statement() {
    const Token& token = cursor_.peek();
    location = token.location;
    is_declaration_ = token.kind != TokenKind::identifier && !token.is('@');
    if (token.kind == TokenKind::end) {
        // What is wrong further up may well be why.
        if (!cursor_.diagnostics().has_errors())
            cursor_.diagnostics().error(location, "the text ends inside a function's body: a '}' is missing");
        return Kind::end;
    }
    if (token.is('{')) {
        if (++depth_ > max_scope_depth) cursor_.fail(location, "scopes nested too deeply");
        cursor_.take();
        return Kind::open_scope;
    }
    if (token.is('}')) {
        if (depth_ == 0) return Kind::end;
        cursor_.take();
        --depth_;
        return Kind::close_scope;
    }
    if (token.kind == TokenKind::word) return directive();
    if (token.is('@', '@')) {
        cursor_.skip_line();
        skip_ = true;
        return Kind::end;
    }
    if (token.is(';')) {
        cursor_.take();
        cursor_.diagnostics().error(location, "empty statement");
        skip_ = true;
        return Kind::end;
    }
    instruction.guard = {};
    instruction.guard_negated = false;
    if (token.is('@')) {
        guard();
    } else if (token.kind == TokenKind::identifier) {
        const Token name = token;
        if (cursor_.take_head(instruction, max_words)) return plain_instruction(name);
        if (instruction.words.empty() && cursor_.accept(':')) {
            if (name.text == "_" || name.text == "$" || name.text == "WARP_SZ")
                cursor_.fail(name.location, describe(name) + " is no name for a label");
            label = name.text;
            return labelled_directive();
        }
        if (instruction.words.empty() && label_lacks_colon(name)) {
            cursor_.diagnostics().error(cursor_.location(), "expected ':' behind the label '" +
                                                                std::string(name.text.substr(0, 60)) + "', found " +
                                                                describe(cursor_.peek()));
            label = name.text;
            return Kind::label;
        }
        opcode(name);
        parse_instruction();
        return Kind::instruction;
    }
    if (cursor_.accept('\\') && cursor_.peek().kind != TokenKind::identifier) // means nothing, also to ptxas
        cursor_.fail_here("an instruction behind '\\'");
    if (cursor_.peek().kind != TokenKind::identifier) cursor_.fail_here("an instruction");
    const Token name = cursor_.peek();
    if (cursor_.take_head(instruction, max_words)) return plain_instruction(name);
    opcode(name);
    parse_instruction();
    return Kind::instruction;
}

/// A name alone in its line that is no opcode, before what begins a statement.
bool StatementParser::label_lacks_colon(const Token& name) const {
    const Token& next = cursor_.peek();
    return next.location.line != name.location.line && (next.kind == TokenKind::identifier || next.is('@')) &&
           FormTable::get().rows_of(name.text).empty();
}

void StatementParser::guard() {
    cursor_.take();
    instruction.guard_negated = cursor_.accept('!');
    instruction.guard_location = cursor_.location();
    instruction.guard = cursor_.expect_identifier("a predicate behind '@'");
}

/// One that TokenCursor::take_head() took whole.
StatementParser::Kind StatementParser::plain_instruction(const Token& name) {
    instruction.location = name.location;
    instruction.opcode = name.text;
    instruction.has_indices = false;
    return Kind::instruction;
}

void StatementParser::opcode(const Token& name) {
    instruction.location = name.location;
    instruction.opcode = name.text;
    while (cursor_.peek().kind == TokenKind::word) {
        const Token word = cursor_.take();
        instruction.head = {};
        if (instruction.words.size() >= max_words)
            cursor_.fail(word.location, "too many modifiers on '" + std::string(name.text) + "'");
        instruction.words.push_back(word.text);
    }
}

void StatementParser::parse_instruction() {
    instruction.operands.clear();
    instruction.operand_count = 0;
    instruction.has_indices = false;
    const bool is_call = instruction.opcode == "call";
    if (cursor_.at('}')) cursor_.fail_here("';' after '" + std::string(instruction.opcode.substr(0, 60)) + "'");
    if (!cursor_.at(';')) {
        do {
            instruction.operand_count += parse_operand(cursor_, is_call, instruction.operands);
            if (instruction.operands.size() > max_operand_nodes)
                cursor_.fail(instruction.location, "too many operands");
            instruction.has_indices |= instruction.operands.back().has_index;
        } while (cursor_.accept(','));
    }
    if (!cursor_.at(';')) {
        // Without this, a forgotten `;` would be reported at the next line's first word.
        const bool below = cursor_.location().line != instruction.location.line;
        cursor_.fail_here("',' or ';' after the operands of '" + std::string(instruction.opcode.substr(0, 60)) + "'" +
                          (below ? " in line " + std::to_string(instruction.location.line) : ""));
    }
    cursor_.take();
}

StatementParser::Kind StatementParser::labelled_directive() {
    const Token& token = cursor_.peek();
    const bool branch = token.is_word("branchtargets"), call = token.is_word("calltargets");
    if (branch || call) {
        cursor_.take();
        names.clear();
        do target(branch ? "a label" : "a function");
        while (cursor_.accept(','));
        cursor_.expect(';', "at the end of this list");
        return branch ? Kind::branch_targets : Kind::call_targets;
    }
    if (token.is_word("callprototype")) {
        cursor_.take();
        function.clear();
        parse_prototype(cursor_, function);
        return Kind::prototype;
    }
    return Kind::label;
}

/// `name`, or `name<n>` for name0 to name(n-1).
void StatementParser::target(std::string_view what) {
    const std::string_view name = cursor_.expect_identifier(what);
    if (!cursor_.accept('<')) return names.push_back(name);
    const SourceLocation at = cursor_.location();
    const std::uint64_t count = cursor_.expect_integer("a count"); // `>` would be taken for an operator
    cursor_.expect('>', "behind the count");
    if (count == 0 || count > max_range_of_targets)
        cursor_.fail(at, "a range of targets holds 1 to " + std::to_string(max_range_of_targets));
    for (std::uint64_t i = 0; i < count; ++i)
        names.push_back(made_names_.emplace_back(std::string(name) + std::to_string(i)));
}

StatementParser::Kind StatementParser::directive() {
    const Token token = cursor_.peek();
    const Word word = find_word(token.text);
    if (word.kind == Word::Kind::space || token.text == "align" || token.text == "attribute") {
        variables.clear();
        parse_variables(cursor_, variables);
        return Kind::variables;
    }
    const std::string_view name = token.text;
    if (name == "entry" || name == "func" || name == "visible" || name == "extern" || name == "weak") {
        cursor_.diagnostics().error(token.location,
                                    describe(token) + " can't stand in a function's body: is a '}' missing above?");
        return Kind::end;
    }
    cursor_.take();
    if (token.text == "loc") {
        source_line();
        return Kind::source_line;
    }
    if (token.text == "pragma") {
        do {
            if (cursor_.peek().kind != TokenKind::string) cursor_.fail_here("a string");
            cursor_.take();
        } while (cursor_.accept(','));
        cursor_.expect(';', "behind this .pragma");
        skip_ = true;
        return Kind::end;
    }
    if (token.text == "branchtargets" || token.text == "calltargets" || token.text == "callprototype")
        cursor_.fail(token.location, "'." + std::string(token.text) + "' needs a label before it");
    if (is_directive(token.text)) cursor_.fail(token.location, describe(token) + " can't stand in a function's body");
    cursor_.fail(token.location,
                 "unknown directive " + describe(token) + " in a function body" + nearest_directive(token.text));
}

/// .loc file line column {, function_name label {+ n}, inlined_at file line column}
void StatementParser::source_line() {
    file = static_cast<std::uint32_t>(cursor_.expect_integer("a file number"));
    line = static_cast<std::uint32_t>(cursor_.expect_integer("a line number"));
    column = static_cast<std::uint32_t>(cursor_.expect_integer("a column number"));
    while (cursor_.accept(',')) {
        const std::string_view what = cursor_.expect_identifier("function_name or inlined_at");
        if (what == "function_name") {
            cursor_.expect_identifier("a label");
            if (cursor_.accept('+')) cursor_.expect_count("an offset");
        } else if (what == "inlined_at") {
            for (int i = 0; i < 3; ++i) cursor_.expect_integer("a number");
        } else {
            cursor_.fail_here("function_name or inlined_at");
        }
    }
}

} // namespace ptarmigan::ptx
