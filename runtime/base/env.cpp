// SPDX-License-Identifier: Apache-2.0
// Typed reading of the environment.
#include "runtime/base/env.h"

#include "frontend/isa/words.h"
#include "runtime/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

namespace ptarmigan::runtime {
namespace {

constexpr EnvVariable table[] = {
#define PTM_ENV(id, name, fallback, option, accepted, meaning) {name, fallback, option, accepted, meaning},
#include "runtime/base/env_variables.def"
#undef PTM_ENV
};

/// log2 of the factor that a size suffix stands for; -1 if it is none.
int suffix_shift(std::string_view suffix) {
    if (suffix.empty()) return 0;
    if (suffix.size() != 1) return -1;
    switch (suffix[0] | 0x20) {
    case 'k': return 10;
    case 'm': return 20;
    case 'g': return 30;
    case 't': return 40;
    default: return -1;
    }
}

/// A whole number with an optional suffix; nothing if `text` is anything else.
std::optional<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const int shift = error == std::errc() ? suffix_shift({rest, static_cast<std::size_t>(end - rest)}) : -1;
    if (shift < 0 || (number << shift) >> shift != number) return std::nullopt;
    return number << shift;
}

/// "12" or "0.25"; nothing if `text` is anything else.
std::optional<double> parse_seconds(std::string_view text) {
    constexpr double most = 1e9;
    double seconds = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seconds, std::chars_format::fixed);
    if (error != std::errc() || rest != end || !(seconds >= 0)) return std::nullopt; // "nan" is taken by from_chars
    return std::min(seconds, most);
}

constexpr std::string_view seconds_word = "S.s";

struct TargetRow {
    unsigned sm;
    std::string_view suffix;
};

constexpr TargetRow targets[] = {
#define DIRECTIVE(word, version, targets)
#define TARGET(sm, suffix, version) {sm, suffix},
#include "frontend/isa/directives.def"
#undef TARGET
#undef DIRECTIVE
};

/// The compute capabilities of PTX's targets, as words: "3.0|3.2|...". 2.x knew other addresses than the device has.
const std::string& capability_words() {
    static const auto& words = *new std::string([] {
        std::string text;
        for (const TargetRow& row : targets)
            if (row.suffix.empty() && row.sm >= 30)
                text += (text.empty() ? "" : "|") + std::to_string(row.sm / 10) + "." + std::to_string(row.sm % 10);
        return text;
    }());
    return words;
}

/// Users write OFF as readily as off.
bool equal_but_for_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

/// What "LOW..HIGH" takes, if it isn't `value`.
std::string range_problem(std::string_view range, std::string_view value) {
    const std::size_t dots = range.find("..");
    const std::string_view low = range.substr(0, dots), high = range.substr(dots + 2);
    const auto number = parse_size(value);
    const bool fits = number && *number >= *parse_size(low) && (high.empty() || *number <= *parse_size(high));
    if (fits) return "";
    return "a number, " + std::string(low) + (high.empty() ? " or more" : " to " + std::string(high));
}

/// One "LOW..HIGH" and nothing else.
bool is_range(std::string_view accepted) {
    return accepted.find("..") != accepted.npos && accepted.find('|') == accepted.npos;
}

/// True if `value` is `word` (but for capitals), begins like a word that ends in ":N" and goes on with a number, or
/// lies in a range.
bool matches(std::string_view word, std::string_view value) {
    if (is_range(word)) return range_problem(word, value).empty();
    if (!word.ends_with(":N")) return equal_but_for_case(word, value);
    const std::string_view prefix = word.substr(0, word.size() - 1);
    const std::string_view number = value.substr(std::min(prefix.size(), value.size()));
    return equal_but_for_case(value.substr(0, prefix.size()), prefix) && !number.empty() && number.size() < 20 &&
           number.find_first_not_of("0123456789") == number.npos;
}

/// The first of `words` that takes `value`; empty if none does.
std::string_view word_for(std::string_view words, std::string_view value) {
    while (!words.empty()) {
        const std::size_t end = words.find('|');
        if (const std::string_view word = words.substr(0, end); matches(word, value)) return word;
        words.remove_prefix(end == words.npos ? words.size() : end + 1);
    }
    return {};
}

constexpr std::string_view flag_words = "on|off|1|0|yes|no|true|false";

/// The words that a column of the table stands for; empty if it lists none.
std::string_view words_of(std::string_view accepted) {
    if (accepted == "flag") return flag_words;
    if (accepted == "M.m") return capability_words();
    return is_range(accepted) || accepted == seconds_word ? std::string_view() : accepted;
}

/// `value` with the case of the word that takes it, so that the code need know only that.
std::string spelt_as_listed(std::string_view words, std::string_view value) {
    const std::string_view word = word_for(words, value);
    if (word.empty() || is_range(word)) return std::string(value);
    if (!word.ends_with(":N")) return std::string(word);
    return std::string(word.substr(0, word.size() - 1)) + std::string(value.substr(word.size() - 1));
}

} // namespace

std::span<const EnvVariable> env_variables() {
    return table;
}

bool env_is_set(Env variable) {
    return std::getenv(table[static_cast<unsigned>(variable)].name) != nullptr;
}

bool env_is_given(Env variable) {
    const char* value = std::getenv(table[static_cast<unsigned>(variable)].name);
    return value && *value && env_problem(variable, value).empty();
}

std::string env_text(Env variable) {
    const EnvVariable& row = table[static_cast<unsigned>(variable)];
    const char* value = std::getenv(row.name);
    if (!value || !*value || !env_problem(variable, value).empty()) return row.fallback;
    return spelt_as_listed(words_of(row.accepted), value);
}

std::optional<std::uint64_t> env_number(Env variable) {
    return parse_size(env_text(variable));
}

std::optional<double> env_seconds(Env variable) {
    return parse_seconds(env_text(variable));
}

bool env_flag(Env variable) {
    const std::string text = env_text(variable);
    return text == "1" || text == "on" || text == "yes" || text == "true";
}

std::string env_problem(Env variable, std::string_view value) {
    const std::string_view accepted = table[static_cast<unsigned>(variable)].accepted;
    if (accepted.empty() || value.empty()) return "";
    if (is_range(accepted)) return range_problem(accepted, value);
    if (accepted == seconds_word) return parse_seconds(value) ? "" : "seconds, as in 10 or 0.25";
    const std::string_view words = words_of(accepted);
    if (!word_for(words, value).empty()) return "";
    std::string text = "one of ";
    for (const char c : words) text += c == '|' ? std::string(", ") : std::string(1, c);
    return text;
}

std::vector<std::string> unknown_settings() {
    constexpr std::string_view prefix = "PTARMIGAN_", of_tests = "PTARMIGAN_TEST_";
    std::vector<std::string> lines;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry, name = text.substr(0, text.find('='));
        if (!name.starts_with(prefix) || name.starts_with(of_tests)) continue;
        if (std::any_of(std::begin(table), std::end(table), [&](const EnvVariable& row) { return name == row.name; }))
            continue;
        ptx::NearestSpelling nearest(name);
        for (const EnvVariable& row : table) nearest.offer(row.name);
        const std::string question = nearest.question();
        lines.push_back(std::string(name.substr(0, 80)) + " is no setting" +
                        (question.empty() ? ": `ptarmigan env` lists them" : question));
    }
    return lines;
}

void report_env_problems() {
    for (const std::string& line : unknown_settings()) log_once(line, line);
    for (std::size_t i = 0; i < std::size(table); ++i) {
        const char* value = std::getenv(table[i].name);
        const std::string problem = env_problem(static_cast<Env>(i), value ? value : "");
        if (!problem.empty())
            log_once(table[i].name, std::string(table[i].name) + "=" + value + " is ignored: it takes " + problem);
    }
}

} // namespace ptarmigan::runtime
