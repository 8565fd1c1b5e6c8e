// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/module_parser.h"

#include "frontend/isa/directives.h"
#include "frontend/isa/form_pattern.h"
#include "frontend/isa/words.h"
#include "frontend/parse/declaration_parser.h"

#include <charconv>

namespace ptarmigan::ptx {

bool ModuleParser::header(Version& version, Target& target, unsigned& address_size) {
    try {
        if (!cursor_.accept_word("version")) cursor_.fail_here("'.version' at the start of the text");
        parse_version(version);
        if (!cursor_.accept_word("target")) cursor_.fail_here("'.target' behind '.version'");
        location = cursor_.location();
        do parse_target(target);
        while (cursor_.accept_word("target")); // the last architecture counts
        address_size = 64;                     // the manual says 32, ptxas takes the machine's
        if (cursor_.accept_word("address_size")) {
            const SourceLocation at = cursor_.location();
            address_size = static_cast<unsigned>(cursor_.expect_count("32 or 64"));
            if (address_size != 32 && address_size != 64) cursor_.fail(at, ".address_size must be 32 or 64");
        }
        return true;
    } catch (const Recover&) {
        return false;
    }
}

void ModuleParser::parse_version(Version& version) {
    version_location = cursor_.location();
    const Token token = cursor_.take();
    const std::string_view text = token.text;
    const std::size_t dot = text.find('.');
    unsigned major = 0, minor = 0;
    auto number = [](std::string_view digits, unsigned& value) {
        const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return status == std::errc() && end == digits.data() + digits.size() && value < 100;
    };
    if (token.kind != TokenKind::real || dot == std::string_view::npos || !number(text.substr(0, dot), major) ||
        !number(text.substr(dot + 1), minor) || major == 0)
        cursor_.fail(token.location, "a PTX version looks like 9.0, found " + describe(token));
    version = {static_cast<std::uint8_t>(major), static_cast<std::uint8_t>(minor)};
}

void ModuleParser::parse_target(Target& target) {
    SourceLocation maps_doubles;
    do {
        const Token token = cursor_.peek();
        const std::string_view name = cursor_.expect_identifier("a target such as sm_90");
        if (name == "texmode_independent") {
            target.texmode_independent = true;
        } else if (name == "debug") {
            target.debug = true;
        } else if (name.starts_with("sm_") || name.starts_with("compute_")) {
            const char* last = name.data() + name.size();
            target.suffix = 0;
            const auto [end, status] = std::from_chars(name.data() + name.find('_') + 1, last, target.sm);
            if (status != std::errc()) cursor_.fail(token.location, unknown_target(name));
            if (end != last) parse_suffix({end, last}, token, target);
        } else if (name == "map_f64_to_f32") {
            maps_doubles = token.location;
        } else if (name != "texmode_unified") {
            cursor_.fail(token.location, unknown_target(name));
        }
    } while (cursor_.accept(','));
    if (target.sm == 0) cursor_.fail(location, "an sm_ target is missing");
    if (target.sm >= 13 && maps_doubles.line != 0)
        cursor_.fail(maps_doubles, "map_f64_to_f32 is for targets without doubles, before sm_13");
}

/// `a` or `f`. Behind the number ptxas takes anything for nothing, and only looks whether the last letter is one of
/// them.
void ModuleParser::parse_suffix(std::string_view suffix, const Token& name, Target& target) {
    if (const char last = suffix.back(); last == 'a' || last == 'f') target.suffix = last;
    if (suffix.size() == 1 && target.suffix != 0) return;
    std::string known(name.text.substr(0, name.text.size() - suffix.size()));
    if (target.suffix != 0) known += target.suffix;
    cursor_.diagnostics().warning(name.location, "unknown target '" + std::string(name.text.substr(0, 60)) +
                                                     "' is taken for '" + known + "', as by ptxas");
}

ModuleParser::Kind ModuleParser::next() {
    for (;;) {
        try {
            skip_ = false;
            if (is_astray_) skip_strays();
            const Kind kind = declaration();
            is_astray_ = false;
            if (!skip_) return kind;
        } catch (const Recover&) {
            if (cursor_.diagnostics().is_hopeless()) return Kind::end;
            skip_declaration();
            // What follows a malformed head is its body or its initialiser.
            try {
                if (cursor_.at('{')) {
                    cursor_.skip_body();
                    cursor_.accept(';');
                } else {
                    while (cursor_.accept('}')) {
                    }
                    cursor_.accept(';');
                }
            } catch (const Recover&) {
            }
        }
    }
}

void ModuleParser::skip_declaration() {
    const auto misread_name = [&](std::string_view name) {
        if (!name.empty() && misread.size() < max_misread) misread.insert(name);
    };
    misread_name(function.name);
    for (const DeclaratorSyntax& declarator : variables.declarators) misread_name(declarator.name);
    while (!cursor_.at_end() && !cursor_.at('{') && !cursor_.at('}')) {
        const Token token = cursor_.take();
        if (token.is(';')) return;
        if (token.kind == TokenKind::identifier) misread_name(token.text);
    }
}

/// Behind a body that ended too early, each of its statements would be an error: the first stands for all.
void ModuleParser::stray(const Token& token) {
    is_astray_ = true;
    if (token.is('}')) cursor_.fail(token.location, "this '}' closes nothing");
    if (token.kind == TokenKind::identifier && !FormTable::get().rows_of(token.text).empty())
        cursor_.fail_here("a directive (instructions stand in the body of a function)");
    cursor_.fail_here("a directive");
}

void ModuleParser::skip_strays() {
    while (!cursor_.at_end() && cursor_.peek().kind != TokenKind::word && !cursor_.peek().is('@', '@')) {
        skip_declaration();
        if (cursor_.at('{'))
            cursor_.skip_body();
        else
            cursor_.accept('}');
    }
}

ModuleParser::Kind ModuleParser::declaration() {
    linkage = Linkage::internal;
    function.name = {};
    variables.declarators.clear();
    for (bool first = true;; first = false) {
        const Token token = cursor_.peek();
        location = token.location;
        if (token.kind == TokenKind::end) return Kind::end;
        if (token.is('@', '@')) {
            cursor_.skip_line();
            skip_ = true;
            return Kind::end;
        }
        if (token.kind != TokenKind::word) stray(token);
        const bool declares = token.text == "entry" || token.text == "func" || token.text == "align" ||
                              token.text == "attribute" || find_word(token.text).kind == Word::Kind::space;
        const bool links =
            token.text == "visible" || token.text == "extern" || token.text == "weak" || token.text == "common";
        if (!first && links)
            cursor_.fail(token.location, "expected a variable or a function, found " + describe(token) +
                                             ": one word of linkage is enough");
        if (!first && !declares)
            cursor_.fail(token.location,
                         "expected a variable or a function, found " + describe(token) + nearest_directive(token.text));
        if (token.text == "visible") {
            linkage = Linkage::visible;
        } else if (token.text == "extern") {
            linkage = Linkage::external;
        } else if (token.text == "weak") {
            linkage = Linkage::weak;
        } else if (token.text == "common") {
            linkage = Linkage::common;
        } else {
            return directive(token);
        }
        cursor_.take();
    }
}

ModuleParser::Kind ModuleParser::directive(const Token& word) {
    const std::string_view name = word.text;
    if (name == "entry" || name == "func") {
        cursor_.take();
        function.clear();
        parse_function(cursor_, name == "entry", function);
        return Kind::function;
    }
    if (find_word(name).kind == Word::Kind::space || name == "align" || name == "attribute") {
        variables.clear();
        parse_variables(cursor_, variables);
        return Kind::variables;
    }
    cursor_.take();
    skip_ = true;
    if (name == "alias") {
        alias = cursor_.expect_identifier("a function");
        cursor_.expect(',', "behind the alias");
        aliasee = cursor_.expect_identifier("a function");
        cursor_.expect(';', "behind this .alias");
        skip_ = false;
        return Kind::alias;
    }
    if (name == "file") {
        parse_file();
        skip_ = false;
        return Kind::file;
    }
    if (name == "section") {
        section();
    } else if (name == "pragma") {
        do {
            if (cursor_.peek().kind != TokenKind::string) cursor_.fail_here("a string");
            cursor_.take();
        } while (cursor_.accept(','));
        cursor_.expect(';', "behind this .pragma");
    } else if (name == "address_size" || name == "version" || name == "target") {
        cursor_.fail(word.location, "'." + std::string(name) + "' belongs at the start of the module");
    } else {
        cursor_.fail(word.location, "unknown directive " + describe(word) + nearest_directive(name));
    }
    return Kind::end;
}

/// .file index "name" {, timestamp, size}
void ModuleParser::parse_file() {
    file_index = cursor_.expect_count("a file number");
    if (cursor_.peek().kind != TokenKind::string) cursor_.fail_here("a file name");
    file_name = cursor_.take().text;
    file_has_stamp = cursor_.accept(',');
    if (file_has_stamp) {
        cursor_.expect_count("a time stamp");
        if (cursor_.accept(',')) cursor_.expect_count("a size");
    }
}

/// .section .debug_info { ... }: DWARF data, not used.
void ModuleParser::section() {
    if (cursor_.peek().kind != TokenKind::word && cursor_.peek().kind != TokenKind::identifier)
        cursor_.fail_here("a section's name");
    cursor_.take();
    if (!cursor_.at('{')) cursor_.fail_here("'{'");
    cursor_.skip_body();
}

} // namespace ptarmigan::ptx
