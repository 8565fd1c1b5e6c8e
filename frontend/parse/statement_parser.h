// SPDX-License-Identifier: Apache-2.0
// The statements of a function body, one at a time.
#pragma once

#include "frontend/parse/cursor.h"

#include <deque>
#include <string>

namespace ptarmigan::ptx {

class StatementParser {
public:
    enum class Kind : std::uint8_t {
        instruction, ///< `instruction`
        label,       ///< `label`
        open_scope,
        close_scope,
        variables,      ///< `variables`
        source_line,    ///< `file`, `line`, `column`
        branch_targets, ///< `label` and `names`
        call_targets,   ///< likewise
        prototype,      ///< `label` and `function`
        end,            ///< the brace that closes the body
    };

    /// `start` is behind the body's opening brace.
    StatementParser(std::string_view text, Diagnostics& diagnostics, TextPosition start)
        : cursor_(text, diagnostics, start) {}

    /// The next statement; malformed ones are reported and skipped.
    Kind next();
    /// After an error in what the caller made of a statement nothing needs to be skipped: the
    /// statement is used up.
    TokenCursor& cursor() { return cursor_; }

    InstructionSyntax instruction;
    VariableSyntax variables;
    FunctionSyntax function;
    std::string_view label;
    std::vector<std::string_view> names;
    SourceLocation location;
    std::uint32_t file = 0, line = 0, column = 0;
    bool misread = false;          ///< a statement was malformed: a label may have been in it
    bool lost_declaration = false; ///< it was, or may have been, a declaration: names may be missing

private:
    Kind statement();
    Kind directive();
    Kind labelled_directive();
    void target(std::string_view what);
    void source_line();
    void parse_instruction();
    bool label_lacks_colon(const Token& name) const;
    void guard();
    void opcode(const Token& name);
    Kind plain_instruction(const Token& name);

    static constexpr std::uint64_t max_range_of_targets = 65536;

    TokenCursor cursor_;
    std::deque<std::string> made_names_; ///< of ranges; uses of labels hold views of them until the body ends
    unsigned depth_ = 0;
    bool is_declaration_ = false; ///< the statement at hand is no instruction
    bool skip_ = false;           ///< statement() consumed something that is no statement of its own
};

} // namespace ptarmigan::ptx
