// SPDX-License-Identifier: Apache-2.0
#include "mutants.h"

#include <array>
#include <cctype>
#include <string_view>
#include <vector>

namespace ptarmigan::test {
namespace {

std::size_t below(Random& random, std::size_t limit) { return limit ? random() % limit : 0; }

/// Start and length, with the newline, of a line chosen at random.
std::pair<std::size_t, std::size_t> any_line(const std::string& text, Random& random) {
    const std::size_t at = below(random, text.size());
    const std::size_t before = at ? text.rfind('\n', at - 1) : std::string::npos;
    const std::size_t start = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = text.find('\n', at);
    return {start, (end == std::string::npos ? text.size() : end + 1) - start};
}

void cut(std::string& text, Random& random) { text.resize(below(random, text.size())); }

void change_bytes(std::string& text, Random& random) {
    for (unsigned i = 1 + random() % 3; i > 0; --i)
        text[below(random, text.size())] ^= static_cast<char>(1u << random() % 8);
}

void remove_line(std::string& text, Random& random) {
    const auto [start, length] = any_line(text, random);
    text.erase(start, length);
}

void repeat_line(std::string& text, Random& random) {
    const auto [start, length] = any_line(text, random);
    text.insert(start, text.substr(start, length));
}

void move_line(std::string& text, Random& random) {
    const auto [start, length] = any_line(text, random);
    const std::string line = text.substr(start, length);
    text.erase(start, length);
    if (!text.empty())
        text.insert(any_line(text, random).first, line);
}

/// Replaces a word that `is_start` accepts the first letter of; looks onward from a random place.
template <class IsWord>
void replace_word(std::string& text, Random& random, IsWord is_word, std::string_view word) {
    const std::size_t from = below(random, text.size());
    for (std::size_t i = from; i < text.size() && i < from + 4000; ++i) {
        const std::size_t length = is_word(text, i);
        if (length) {
            text.replace(i, length, word);
            return;
        }
    }
}

void make_number_extreme(std::string& text, Random& random) {
    static constexpr std::array<std::string_view, 24> extremes{
        "0", "1", "2", "3", "-1", "7", "16", "31", "32", "33", "63", "64", "255", "256", "1024",
        "65535", "65536", "2147483647", "-2147483648", "4294967295", "4294967296",
        "9223372036854775807", "-9223372036854775808", "18446744073709551615"};
    replace_word(
        text, random,
        [](const std::string& t, std::size_t i) -> std::size_t {
            const auto digit = [&](std::size_t at) {
                return at < t.size() && std::isdigit(static_cast<unsigned char>(t[at]));
            };
            if (!digit(i) || i == 0 || std::isalnum(static_cast<unsigned char>(t[i - 1])))
                return 0;
            std::size_t length = 1;
            while (i + length < t.size() && std::isalnum(static_cast<unsigned char>(t[i + length])))
                ++length;
            return length;
        },
        extremes[below(random, extremes.size())]);
}

void exchange_suffix(std::string& text, Random& random) {
    static constexpr std::array<std::string_view, 30> suffixes{
        ".u8",   ".u16",  ".u32",   ".u64",    ".s8",   ".s16",  ".s32",  ".s64", ".b8",  ".b16",
        ".b32",  ".b64",  ".f16",   ".f16x2",  ".bf16", ".f32",  ".f64",  ".pred", ".v2", ".v4",
        ".wide", ".lo",   ".hi",    ".global", ".shared", ".local", ".const", ".sat", ".rz", ".ftz"};
    replace_word(
        text, random,
        [](const std::string& t, std::size_t i) -> std::size_t {
            if (t[i] != '.')
                return 0;
            std::size_t length = 1;
            while (i + length < t.size() && std::isalnum(static_cast<unsigned char>(t[i + length])))
                ++length;
            return length;
        },
        suffixes[below(random, suffixes.size())]);
}

/// Another register, label or name of the same text in the place of one.
void exchange_name(std::string& text, Random& random) {
    const auto name = [](const std::string& t, std::size_t i) -> std::size_t {
        if ((t[i] != '%' && t[i] != '$') || (i && std::isalnum(static_cast<unsigned char>(t[i - 1]))))
            return 0;
        std::size_t length = 1;
        while (i + length < t.size() &&
               (std::isalnum(static_cast<unsigned char>(t[i + length])) || t[i + length] == '_'))
            ++length;
        return length;
    };
    for (std::size_t i = below(random, text.size()); i < text.size(); ++i)
        if (const std::size_t length = name(text, i)) {
            const std::string other = text.substr(i, length);
            replace_word(text, random, name, other);
            return;
        }
}

void splice(std::string& text, Random& random) {
    const std::size_t from = below(random, text.size()), to = below(random, text.size());
    text.insert(to, text.substr(from, 1 + random() % 60));
}

} // namespace

std::string mutate(const std::string& text, Random& random) {
    using Mutation = void (*)(std::string&, Random&);
    // Those that keep a text nearly valid come more often.
    static constexpr std::array<Mutation, 16> mutations{
        cut,         change_bytes,    splice,          remove_line,         remove_line,
        repeat_line, repeat_line,     move_line,       make_number_extreme, make_number_extreme,
        exchange_suffix, exchange_suffix, exchange_name, exchange_name,     exchange_name,
        make_number_extreme};
    std::string mutant = text;
    for (unsigned i = 1 + random() % 2; i > 0 && !mutant.empty(); --i)
        mutations[below(random, mutations.size())](mutant, random);
    return mutant;
}

} // namespace ptarmigan::test
