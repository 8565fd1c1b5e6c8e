// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/directives.h"

#include "frontend/isa/targets.h"
#include "frontend/isa/words.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace ptarmigan::ptx {

namespace {

struct DirectiveRow {
    std::string_view word;
    Version version;
    std::string_view targets;
};
struct TargetRow {
    std::uint32_t sm;
    std::string_view suffix;
    Version version;
};

#define PTX(major, minor)                                                                                              \
    Version {                                                                                                          \
        major, minor                                                                                                   \
    }
#define SM(target) #target
#define TARGET(sm, suffix, version)
#define DIRECTIVE(word, version, targets) {word, version, targets},
constexpr DirectiveRow directives[] = {
#include "frontend/isa/directives.def"
};
#undef DIRECTIVE
#undef TARGET
#define DIRECTIVE(word, version, targets)
#define TARGET(sm, suffix, version) {sm, suffix, version},
constexpr TargetRow targets[] = {
#include "frontend/isa/directives.def"
};
#undef TARGET
#undef DIRECTIVE
#undef SM
#undef PTX

std::string digits_of(std::string_view text) {
    std::string digits;
    for (const char c : text)
        if (c >= '0' && c <= '9') digits += c;
    return digits.empty() ? "0" : digits;
}

std::string text_of(Version version) {
    return std::to_string(version.major) + "." + std::to_string(version.minor);
}

} // namespace

std::string broken_directive(std::string_view word, Version version, const Target& target) {
    const auto row = std::find_if(std::begin(directives), std::end(directives),
                                  [&](const DirectiveRow& r) { return r.word == word; });
    if (row == std::end(directives)) return {};
    const bool is_phrase = word.find(' ') != std::string_view::npos;
    const bool is_operator = word.ends_with(')');
    const std::string subject = is_phrase ? std::string(word) : (is_operator ? "'" : "'.") + std::string(word) + "'";
    const std::string missing = lacking(row->version, row->targets, version, target);
    return missing.empty() ? missing : subject + " needs " + missing;
}

bool is_directive(std::string_view word) {
    return std::any_of(std::begin(directives), std::end(directives),
                       [&](const DirectiveRow& r) { return r.word == word; });
}

std::string nearest_directive(std::string_view spelling) {
    NearestSpelling nearest(spelling);
    for (const DirectiveRow& row : directives)
        if (row.word.find_first_of(" (") == std::string_view::npos) nearest.offer(row.word);
    return nearest.question(".");
}

std::string broken_target(const Target& target, Version version) {
    std::string name = "sm_" + std::to_string(target.sm);
    const std::string_view suffix(&target.suffix, target.suffix == 0 ? 0 : 1);
    name += suffix;
    for (const TargetRow& row : targets) {
        if (row.sm != target.sm || row.suffix != suffix) continue;
        if (version < row.version) return name + " needs .version " + text_of(row.version) + " or later";
        return {};
    }
    return unknown_target(name);
}

std::string unknown_target(std::string_view written) {
    std::vector<std::string> names;
    for (const TargetRow& row : targets) names.push_back("sm_" + std::to_string(row.sm) + std::string(row.suffix));
    NearestSpelling nearest(written);
    const std::string number = digits_of(written);
    for (const std::string& name : names) { // sm_91 may be sm_90, never sm_61
        const std::string other = digits_of(name);
        if (number.size() == other.size() && number.compare(0, number.size() - 1, other, 0, other.size() - 1) == 0)
            nearest.offer(name);
    }
    return "unknown target '" + std::string(written.substr(0, 60)) + "'" + nearest.question();
}

std::string broken_version(Version version) {
    constexpr std::uint8_t last_minor[] = {0, 5, 3, 2, 3, 1, 5, 8, 8};
    if (version.major >= std::size(last_minor) || version.minor <= last_minor[version.major]) return {};
    return "there is no PTX version " + text_of(version);
}

} // namespace ptarmigan::ptx
