// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/readable_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {
namespace {

/// `text` without what stands in brackets, from which on arguments are left out.
std::string without_brackets(std::string_view text) {
    std::string plain;
    unsigned depth = 0;
    for (const char c : text) {
        if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
        if (depth == 0) plain += c;
        if ((c == '>' || c == ')' || c == '}' || c == ']') && depth != 0) --depth;
    }
    return plain;
}

/// CUB_300001_SM_900: namespaces that macros make.
bool is_made_by_macro(std::string_view scope) {
    return scope.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == scope.npos;
}

} // namespace

std::string readable_name(const std::string& mangled) {
    int status = -1;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                      std::free);
    if (!mangled.starts_with("_Z") || status != 0 || !text) return mangled;
    const std::string plain = without_brackets(text.get());
    // A return type stands in front, and a word may be left behind (const). A space in front of "::" or at the end
    // was before a bracket.
    std::vector<std::string> scopes{""};
    for (std::size_t i = 0; i < plain.size(); ++i) {
        if (plain.compare(i, 2, "::") == 0) {
            if (is_made_by_macro(scopes.back())) scopes.back().clear();
            if (!scopes.back().empty()) scopes.emplace_back();
            ++i;
        } else if (plain[i] == ' ' && plain.find_first_not_of(' ', i) != plain.npos) {
            scopes = {""}; // what was behind it is the return type
        } else if (plain[i] != ' ') {
            scopes.back() += plain[i];
        }
    }
    if (scopes.back().empty()) return mangled; // an operator or the like
    const std::size_t count = scopes.size();
    return count == 1 ? scopes[0] : scopes[count - 2] + "::" + scopes[count - 1];
}

} // namespace ptarmigan::runtime
