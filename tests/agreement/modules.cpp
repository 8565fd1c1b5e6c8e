// SPDX-License-Identifier: Apache-2.0
// From a statement to a module that holds it: what the statement names is declared around it.
#include "frontend/isa/words.h"
#include "frontend/module_loader.h"
#include "tests/agreement/statements.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace ptarmigan::test {

using namespace ptx;

namespace {
/// `{%b32_4:3}` stands for `{%b32_4, %b32_5, %b32_6}`.
std::string expand_lists(std::string_view statement) {
    std::string text;
    for (std::size_t colon; (colon = statement.find(':')) != std::string_view::npos;) {
        const std::size_t brace = statement.rfind('{', colon), close = statement.find('}', colon);
        const bool is_list = brace != std::string_view::npos && close != std::string_view::npos &&
                             statement.find_first_of(" :", brace) == colon;
        if (!is_list) {
            text += statement.substr(0, colon + 1);
            statement.remove_prefix(colon + 1);
            continue;
        }
        const std::string_view first = statement.substr(brace + 1, colon - brace - 1);
        const std::size_t line = first.rfind('_') + 1;
        const int number = std::atoi(first.data() + line);
        const int count = std::atoi(statement.data() + colon + 1);
        text += statement.substr(0, brace + 1);
        for (int i = 0; i < count; ++i)
            text += (i ? ", " : "") + std::string(first.substr(0, line)) + std::to_string(number + i);
        statement.remove_prefix(close);
    }
    return text + std::string(statement);
}
} // namespace

namespace {
/// `module TEXT`: what stands outside of functions, with `#` in names for the number.
std::string module_text(std::string_view text, std::size_t number) {
    std::string out;
    for (char c : text) out += c == '#' ? std::to_string(number) : std::string(1, c);
    return out + '\n';
}
} // namespace

std::string wrap(std::string_view shorthand, std::size_t number, std::string_view version) {
    constexpr std::string_view outside = "module ";
    if (shorthand.starts_with(outside)) return module_text(shorthand.substr(outside.size()), number);
    const std::string statement = expand_lists(shorthand);
    std::map<std::string, unsigned, std::less<>> registers;
    auto is_name = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    for (std::size_t at = statement.find('%'); at != std::string::npos;
         at = statement.find('%', at + 1)) {
        std::size_t end = at + 1;
        while (end < statement.size() && is_name(statement[end])) ++end;
        const std::string_view name = std::string_view(statement).substr(at + 1, end - at - 1);
        const std::size_t line = name.rfind('_');
        if (line == std::string_view::npos || line + 1 == name.size() || name[line + 1] > '9' ||
            find_word(name.substr(0, line)).kind != Word::Kind::type)
            continue; // a special register, or one that nothing declares
        unsigned& count = registers[std::string(name.substr(0, line))];
        count = std::max(count, static_cast<unsigned>(std::atoi(name.data() + line + 1)) + 1u);
    }
    const std::string parameter = ".param .align 16 .b8 pvar[32]";
    std::string text = ".entry k" + std::to_string(number);
    text += version < "1.4" && version.size() == 3 ? " { " + parameter + "; " : "(" + parameter + ") { ";
    for (const auto& [type, count] : registers)
        text += ".reg ." + type + " %" + type + "_<" + std::to_string(count) + ">; ";
    if (statement.find("lvar") != std::string::npos) text += ".local .align 16 .b8 lvar[64]; ";
    text += statement;
    if (statement.find("L0") != std::string::npos) text += " L0:";
    return text + " ret; }\n";
}

std::string module_header(std::string_view version, std::string_view target) {
    const auto before = [&](std::string_view other) { return version.size() == 3 && version < other; };
    std::string text = ".version " + std::string(version) + "\n.target " + std::string(target) + "\n";
    if (!before("2.3")) text += ".address_size 64\n";
    text += ".global .align 16 .b8 gvar[256];\n.shared .align 16 .b8 svar[256];\n"
            ".const .align 16 .b8 cvar[256];\n";
    if (target.find("independent") != target.npos) text += ".global .samplerref mvar;\n";
    text += before("1.5") ? ".tex .u32 tvar;\n" : ".global .texref tvar;\n.global .surfref uvar;\n";
    text += ".func f0 { ret; }\n"
            ".func (.reg .b32 r) f1(.reg .b32 a) { mov.b32 r, a; ret; }\n";
    if (!before("2.3")) text += ".func (.param .b32 r) f2(.param .b32 a, .param .b64 b) { ret; }\n";
    return text;
}

std::string spread(std::string_view statement, std::string_view version) {
    constexpr std::string_view marks = ",;()[]{}";
    std::string text;
    bool quoted = false, broken = false; // a mark was the last but for blanks
    for (char c : wrap(statement, 0, version)) {
        if (c == '"') quoted = !quoted;
        if (broken && c == ' ') continue;
        broken = !quoted && marks.find(c) != std::string_view::npos;
        text += c;
        if (broken) text += '\n';
    }
    return text;
}

bool accepted_here(std::string_view version, std::string_view target, std::string_view statement) {
    return ModuleLoader::load(module_header(version, target) + wrap(statement, 0, version), "statement",
                              {.bind_all_bodies = true, .max_errors = 1})
        ->ok();
}

} // namespace ptarmigan::test
