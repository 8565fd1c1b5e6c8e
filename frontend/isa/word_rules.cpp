// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/word_rules.h"

#include "frontend/isa/targets.h"
#include "frontend/isa/words.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

struct Rule {
    enum class Kind : std::uint8_t {
        since,
        before,
        gone,
        needs,
        excludes,
        must,
        sinks,
        leads,
        overlooks,
        implies
    } kind;
    std::string_view opcodes, words, others; ///< others: targets, for `since`; the word, for `implies`
    Version version{};
    std::uint32_t sm = 0;
};

constexpr Rule rules[] = {
#define PTX(major, minor)                                                                                              \
    Version {                                                                                                          \
        major, minor                                                                                                   \
    }
#define SM(target) target
#define SINCE(opcodes, words, version, targets) {Rule::Kind::since, opcodes, words, targets, version, 0},
#define BEFORE(sm, opcodes, words, version) {Rule::Kind::before, opcodes, words, {}, version, sm},
#define GONE(opcodes, words, version) {Rule::Kind::gone, opcodes, words, {}, version, 0},
#define NEEDS(opcodes, words, others) {Rule::Kind::needs, opcodes, words, others, {}, 0},
#define EXCLUDES(opcodes, words, others) {Rule::Kind::excludes, opcodes, words, others, {}, 0},
#define MUST(opcodes, words, version, sm) {Rule::Kind::must, opcodes, words, {}, version, sm},
#define SINKS(opcodes, words) {Rule::Kind::sinks, opcodes, words, {}, {}, 0},
#define LEADS(opcodes, words) {Rule::Kind::leads, opcodes, words, {}, {}, 0},
#define OVERLOOKS(opcodes, words, with) {Rule::Kind::overlooks, opcodes, words, with, {}, 0},
#define IMPLIES(opcodes, words, word, version) {Rule::Kind::implies, opcodes, words, word, version, 0},
#include "frontend/isa/word_rules.def"
#undef IMPLIES
#undef OVERLOOKS
#undef LEADS
#undef SINKS
#undef MUST
#undef EXCLUDES
#undef NEEDS
#undef GONE
#undef BEFORE
#undef SINCE
#undef SM
#undef PTX
};

std::string_view take_until(std::string_view& rest, char separator) {
    const std::size_t at = rest.find(separator);
    const std::string_view part = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
    return part;
}

/// Those narrower than a byte are no types of registers, but of matrices.
bool is_type(std::string_view word) {
    return find_word(word).kind == Word::Kind::type || word == "b1" || word == "s2" || word == "u2" || word == "s4" ||
           word == "u4";
}

bool is_space(std::string_view word) {
    return find_word(word).kind == Word::Kind::space;
}

/// One word of a rule: `^f16` is the first type, `f16$` the last one, `!a` anything but a.
bool has(std::string_view wanted, std::span<const std::string_view> words) {
    if (wanted == "space") return std::any_of(words.begin(), words.end(), is_space);
    if (wanted.starts_with('!')) return !has(wanted.substr(1), words);
    if (wanted.starts_with('^')) {
        const auto first = std::find_if(words.begin(), words.end(), is_type);
        return first != words.end() && *first == wanted.substr(1);
    }
    if (const std::size_t place = wanted.find('$'); place != std::string_view::npos) {
        auto last = std::find_if(words.rbegin(), words.rend(), is_type);
        if (wanted.ends_with("$1") && words.size() > 1 && last != words.rend())
            last = std::find_if(std::next(last), words.rend(), is_type);
        return last != words.rend() && *last == wanted.substr(0, place);
    }
    if (const std::size_t order = wanted.find('<'); order != std::string_view::npos) {
        const auto first = std::find(words.begin(), words.end(), wanted.substr(0, order));
        return std::find(first, words.end(), wanted.substr(order + 1)) != words.end();
    }
    return std::find(words.begin(), words.end(), wanted) != words.end();
}

bool has_all(std::string_view joined, std::span<const std::string_view> words) {
    while (!joined.empty())
        if (!has(take_until(joined, '&'), words)) return false;
    return true;
}

/// The first alternative that stands in the instruction, or empty.
std::string_view standing(std::string_view alternatives, std::span<const std::string_view> words) {
    while (!alternatives.empty()) {
        const std::string_view one = take_until(alternatives, '|');
        if (has_all(one, words)) return one;
    }
    return {};
}

bool concerns(std::string_view opcodes, std::string_view opcode) {
    if (opcodes == "*") return true;
    if (opcodes.starts_with('!')) return opcodes.substr(1) != opcode;
    while (!opcodes.empty())
        if (take_until(opcodes, '|') == opcode) return true;
    return false;
}

/// "a&b|c" as ".a with .b or .c".
std::string spelled(std::string_view alternatives) {
    if (alternatives == "!space") return "a generic address";
    std::string text = ".";
    for (char c : alternatives)
        if (c == '^' || c == '$')
            continue;
        else if (c == '!')
            text.replace(text.size() - std::string_view("with .").size(), std::string::npos, "without .");
        else if (c == '&')
            text += " with .";
        else if (c == '|')
            text += " or .";
        else if (c == '<')
            text += " before .";
        else
            text += c;
    return text;
}

/// A word of the instruction's name behind another word, or out of the order of `name`.
std::string misplaced(std::string_view name, std::string_view opcode, std::span<const std::string_view> words) {
    bool in_name = true;
    std::size_t last = 0;
    for (std::string_view word : words) {
        std::string_view rest = name;
        std::size_t place = 0;
        for (std::size_t i = 1; place == 0 && !rest.empty(); ++i)
            if (take_until(rest, '|') == word) place = i;
        if (place != 0 && (!in_name || place < last))
            return "'." + std::string(word) + "' is a part of the name and stands right behind '" +
                   std::string(opcode) + "'";
        in_name = in_name && place != 0;
        last = place;
    }
    return {};
}

std::string check(const Rule& rule, std::string_view opcode, std::span<const std::string_view> words, Version version,
                  const Target& target) {
    const std::string_view found = standing(rule.words, words);
    const std::string subject = found.empty()       ? ""
                                : found == "!space" ? spelled(found) + " "
                                                    : "'" + spelled(found) + "' ";
    switch (rule.kind) {
    case Rule::Kind::since: {
        if (found.empty()) return {};
        const std::string missing = lacking(rule.version, rule.others, version, target);
        return missing.empty() ? missing : subject + "needs " + missing;
    }
    case Rule::Kind::before: {
        if (found.empty() || target.sm >= rule.sm) return {};
        const std::string missing = lacking(rule.version, {}, version, target);
        return missing.empty() ? missing
                               : subject + "needs " + missing + " on targets before sm_" + std::to_string(rule.sm);
    }
    case Rule::Kind::gone:
        if (found.empty() || version < rule.version) return {};
        return subject + "is not in PTX " + std::to_string(rule.version.major) + "." +
               std::to_string(rule.version.minor) + " and later";
    case Rule::Kind::needs:
        if (found.empty() || !standing(rule.others, words).empty()) return {};
        return subject + "needs " + spelled(rule.others);
    case Rule::Kind::excludes: {
        const std::string_view other = found.empty() ? found : standing(rule.others, words);
        return other.empty() ? "" : subject + "can't stand together with '" + spelled(other) + "'";
    }
    case Rule::Kind::must:
        if (!found.empty() || version < rule.version || target.sm < rule.sm) return {};
        return "'" + std::string(opcode) + "' needs " + spelled(rule.words) + " on sm_" + std::to_string(rule.sm) +
               " and later from PTX " + std::to_string(rule.version.major) + "." + std::to_string(rule.version.minor) +
               " on";
    case Rule::Kind::sinks:
    case Rule::Kind::implies:
    case Rule::Kind::overlooks: return {};
    case Rule::Kind::leads: return misplaced(rule.words, opcode, words);
    }
    return {};
}

} // namespace

std::string misplaced_word(std::string_view opcode, std::span<const std::string_view> words) {
    for (const Rule& rule : rules)
        if (rule.kind == Rule::Kind::leads && concerns(rule.opcodes, opcode))
            if (std::string text = misplaced(rule.words, opcode, words); !text.empty()) return text;
    return {};
}

bool result_must_sink(std::string_view opcode, std::span<const std::string_view> words) {
    return std::any_of(std::begin(rules), std::end(rules), [&](const Rule& rule) {
        return rule.kind == Rule::Kind::sinks && concerns(rule.opcodes, opcode) && !standing(rule.words, words).empty();
    });
}

std::string_view implied_word(std::string_view opcode, std::span<const std::string_view> words, Version version) {
    for (const Rule& rule : rules)
        if (rule.kind == Rule::Kind::implies && version < rule.version && concerns(rule.opcodes, opcode) &&
            !standing(rule.words, words).empty())
            return rule.others;
    return {};
}

std::uint32_t overlooked_words(std::string_view opcode, std::span<const std::string_view> words) {
    std::uint32_t overlooked = 0;
    for (const Rule& rule : rules) {
        if (rule.kind != Rule::Kind::overlooks || !concerns(rule.opcodes, opcode)) continue;
        if (!rule.others.empty() && standing(rule.others, words).empty()) continue;
        for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 32); ++i) {
            const std::string_view found = standing(rule.words, words.subspan(i, 1));
            if (found.empty()) continue;
            const auto behind = words.subspan(i + 1);
            if (const std::size_t place = found.find('$'); place != std::string_view::npos) {
                const auto wanted = found.ends_with("$1") ? 1 : 0;
                if (std::count_if(behind.begin(), behind.end(), is_type) != wanted) continue;
            }
            overlooked |= 1u << i;
        }
    }
    return overlooked;
}

std::string broken_word_rule(std::string_view opcode, std::span<const std::string_view> words, Version version,
                             const Target& target) {
    std::string younger; // all that is too young, but of contradictions the first
    for (const Rule& rule : rules) {
        if (!concerns(rule.opcodes, opcode)) continue;
        std::string broken = check(rule, opcode, words, version, target);
        if (broken.empty()) continue;
        if (rule.kind != Rule::Kind::since) return younger.empty() ? broken : younger;
        if (younger.find(broken) == std::string::npos) younger += (younger.empty() ? "" : "; ") + broken;
    }
    return younger;
}

} // namespace ptarmigan::ptx
