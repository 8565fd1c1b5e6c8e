// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/targets.h"

#include <charconv>

namespace ptarmigan::ptx {

namespace {

/// The member that names the family of compatible targets (manual 11.1.2); sm_101 was renamed sm_110.
std::uint32_t family(std::uint32_t sm) {
    return sm == 103 ? 100 : sm == 101 ? 110 : sm == 121 ? 120 : sm;
}

bool rule_allows(std::string_view rule, std::uint32_t sm, char suffix) {
    std::uint32_t first = 0;
    const char* end = std::from_chars(rule.data(), rule.data() + rule.size(), first).ptr;
    if (end == rule.data() + rule.size()) return sm >= first;
    if (suffix == 0) return false;
    if (*end == 'a') return suffix == 'a' && (sm == 101 ? 110 : sm) == first;
    return family(sm) == family(first) && (sm >= first || sm == 101);
}

std::string_view next_rule(std::string_view& targets) {
    const std::size_t bar = targets.find('|');
    const std::string_view rule = targets.substr(0, bar);
    targets = bar == std::string_view::npos ? std::string_view{} : targets.substr(bar + 1);
    return rule;
}

} // namespace

bool has_target(std::string_view targets, std::uint32_t sm, char suffix) {
    while (!targets.empty())
        if (rule_allows(next_rule(targets), sm, suffix)) return true;
    return false;
}

std::string describe_targets(std::string_view targets) {
    std::string text;
    while (!targets.empty()) {
        const std::string_view rule = next_rule(targets);
        if (!text.empty()) text += targets.empty() ? " or " : ", ";
        text += "sm_" + std::string(rule);
        if (rule.back() >= '0' && rule.back() <= '9') text += " or later";
    }
    return text;
}

std::string lacking(Version wanted, std::string_view targets, Version version, const Target& target) {
    std::string text;
    if (version < wanted)
        text = ".version " + std::to_string(wanted.major) + "." + std::to_string(wanted.minor) + " or later";
    if (!targets.empty() && !has_target(targets, target.sm, target.suffix))
        text += (text.empty() ? ".target " : " and .target ") + describe_targets(targets);
    return text;
}

} // namespace ptarmigan::ptx
