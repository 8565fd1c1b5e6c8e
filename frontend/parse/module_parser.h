// SPDX-License-Identifier: Apache-2.0
// The module scope of a PTX text, one declaration at a time; bodies are skipped.
#pragma once

#include "frontend/parse/cursor.h"
#include "frontend/ptx/module.h"

#include <string>
#include <unordered_set>

namespace ptarmigan::ptx {

class ModuleParser {
public:
    enum class Kind : std::uint8_t { variables, function, alias, file, end };

    ModuleParser(std::string_view text, Diagnostics& diagnostics) : cursor_(text, diagnostics) {}

    /// Reads .version, .target and .address_size. False (and reported) if the text does not start
    /// with them.
    bool header(Version& version, Target& target, unsigned& address_size);
    /// The next declaration; malformed ones are reported and skipped.
    Kind next();

    Linkage linkage = Linkage::internal; ///< of `variables` or `function`
    VariableSyntax variables;
    FunctionSyntax function;
    std::string_view alias, aliasee;
    std::string_view file_name;
    std::uint64_t file_index = 0;
    bool file_has_stamp = false; ///< a time stamp follows the name
    SourceLocation location;
    SourceLocation version_location; ///< of the number behind .version
    /// Names that malformed declarations may have declared: that they are unknown is no error of its own.
    std::unordered_set<std::string_view> misread;

private:
    static constexpr std::size_t max_misread = 10000;
    void skip_declaration();
    Kind declaration();
    [[noreturn]] void stray(const Token& token);
    void skip_strays();
    Kind directive(const Token& word);
    void parse_version(Version& version);
    void parse_target(Target& target);
    void parse_suffix(std::string_view suffix, const Token& name, Target& target);
    void parse_file();
    void section();

    TokenCursor cursor_;
    bool skip_ = false;
    bool is_astray_ = false; ///< between what was no directive and the next declaration
};

} // namespace ptarmigan::ptx
