// SPDX-License-Identifier: Apache-2.0
// Typed reading of the environment.
#include "runtime/base/env.h"

#include "runtime/base/log.h"

#include <array>
#include <charconv>
#include <cstdlib>

namespace ptarmigan::runtime {
namespace {

constexpr EnvVariable table[] = {
#define PTM_ENV(id, name, fallback, option, meaning) {name, fallback, option, meaning},
#include "runtime/base/env_variables.def"
#undef PTM_ENV
};

/// log2 of the factor that a size suffix stands for; -1 if it is none.
int suffix_shift(std::string_view suffix) {
    if (suffix.empty())
        return 0;
    if (suffix.size() != 1)
        return -1;
    switch (suffix[0] | 0x20) {
    case 'k':
        return 10;
    case 'm':
        return 20;
    case 'g':
        return 30;
    case 't':
        return 40;
    default:
        return -1;
    }
}

} // namespace

std::span<const EnvVariable> env_variables() {
    return table;
}

bool env_is_set(Env variable) {
    return std::getenv(table[static_cast<unsigned>(variable)].name) != nullptr;
}

std::string env_text(Env variable) {
    const EnvVariable &row = table[static_cast<unsigned>(variable)];
    const char *value = std::getenv(row.name);
    return value && *value ? value : row.fallback;
}

std::optional<std::uint64_t> env_number(Env variable) {
    const std::string text = env_text(variable);
    if (text.empty())
        return std::nullopt;
    std::uint64_t number = 0;
    const char *end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const int shift =
        error == std::errc() ? suffix_shift({rest, static_cast<std::size_t>(end - rest)}) : -1;
    if (shift < 0 || (number << shift) >> shift != number) {
        const char *name = table[static_cast<unsigned>(variable)].name;
        log_once(name, std::string(name) + "=" + text + " is not a number: ignored");
        return std::nullopt;
    }
    return number << shift;
}

bool env_flag(Env variable) {
    const std::string text = env_text(variable);
    return text == "1" || text == "on" || text == "yes" || text == "true";
}

} // namespace ptarmigan::runtime
