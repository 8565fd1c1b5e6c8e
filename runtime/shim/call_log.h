// SPDX-License-Identifier: Apache-2.0
// PTARMIGAN_LOG=info and trace: which entries a program calls, and what they return.
#pragma once

#include "runtime/shim/cuda_types.h"

#include <cstddef>
#include <string_view>

namespace ptarmigan::shim {

/// The name of an entry of the driver API, out of the compiler's name for a function template that has one of the
/// entry's lambdas as an argument: the first word that begins as the API's names do. Of a lambda in a function that
/// several entries share, that function's name. Clang names lambdas by their place: then it is "a driver entry".
constexpr std::string_view called_entry(std::string_view pretty_function) {
    // The compiler runs this for every entry: few steps a character.
    constexpr auto in_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const char* const text = pretty_function.data();
    const std::size_t size = pretty_function.size();
    std::string_view shared;
    for (std::size_t start = 0, end = 0;;) {
        for (start = end; start < size && !in_word(text[start]);) ++start;
        if (start == size) return shared.empty() ? "a driver entry" : shared;
        for (end = start; end < size && in_word(text[end]);) ++end;
        std::string_view name = pretty_function.substr(start, end - start);
        const std::string_view rest = pretty_function.substr(end);
        const bool is_function = rest.starts_with('(') && start >= 2 && pretty_function.substr(start - 2, 2) == "::";
        const bool wraps = name.ends_with("_entry") || name == "entry" || name == "fenced";
        if (shared.empty() && is_function && !wraps) shared = name;
        if (name.size() < 3 || !name.starts_with("cu") || name[2] < 'A' || name[2] > 'Z') continue;
        constexpr std::string_view suffix = "_body"; // PTM_STREAM_API
        if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
        return name;
    }
}

/// Logs a call of the entry `name`: at level info if it failed, else at trace. That work is not finished is no failure.
void log_call(std::string_view name, CUresult result);

} // namespace ptarmigan::shim
