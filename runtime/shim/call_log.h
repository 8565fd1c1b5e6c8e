// SPDX-License-Identifier: Apache-2.0
// PTARMIGAN_LOG=info and trace: which entries a program calls, and what they return.
#pragma once

#include "runtime/shim/cuda_types.h"

#include <algorithm>
#include <string_view>

namespace ptarmigan::shim {

/// The name of an entry of the driver API, out of the compiler's name for a function template that has one of the
/// entry's lambdas as an argument: the first word that begins as the API's names do. Of a lambda in a function that
/// several entries share, that function's name. Clang names lambdas by their place: then it is "a driver entry".
constexpr std::string_view called_entry(std::string_view pretty_function) {
    constexpr std::string_view word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    std::string_view shared;
    for (std::size_t start = 0, end = 0;;) {
        start = pretty_function.find_first_of(word, end);
        if (start == std::string_view::npos) return shared.empty() ? "a driver entry" : shared;
        end = pretty_function.find_first_not_of(word, start);
        std::string_view name = pretty_function.substr(start, end - start);
        const std::string_view rest = pretty_function.substr(std::min(end, pretty_function.size()));
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
