// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/words.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ptarmigan::ptx {

namespace {

struct Entry {
    std::string_view spelling;
    Word word;
};

constexpr Word type_word(ScalarType t) {
    return {Word::Kind::type, static_cast<std::uint8_t>(t)};
}
constexpr Word space_word(StateSpace s) {
    return {Word::Kind::space, static_cast<std::uint8_t>(s)};
}

constexpr Entry entries[] = {
#define X(name, spelling, bits, cls) {spelling, type_word(ScalarType::name)},
    PTM_SCALAR_TYPES(X)
#undef X
        {"reg", space_word(StateSpace::reg)},
    {"sreg", space_word(StateSpace::sreg)},
    {"const", space_word(StateSpace::constant)},
    {"global", space_word(StateSpace::global)},
    {"local", space_word(StateSpace::local)},
    {"param", space_word(StateSpace::param)},
    {"shared", space_word(StateSpace::shared)},
    {"tex", space_word(StateSpace::tex)},
    {"v2", {Word::Kind::vector, 2}},
    {"v4", {Word::Kind::vector, 4}},
    {"v8", {Word::Kind::vector, 8}},
#define X(name, spelling) {spelling, {Word::Kind::modifier, static_cast<std::uint16_t>(Modifier::name)}},
#include "frontend/isa/modifiers.def"
#undef X
};
constexpr std::size_t bucket_count = 2048;
static_assert(std::size(entries) < bucket_count / 2);

constexpr std::size_t hash(std::string_view text) {
    std::uint32_t h = 2166136261u;
    for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
    return (h ^ h >> 15) & (bucket_count - 1);
}

/// Open addressing, built at compile time; 0 is free, else index into `entries` plus one.
constexpr std::array<std::uint16_t, bucket_count> make_buckets() {
    std::array<std::uint16_t, bucket_count> buckets{};
    for (std::size_t i = 0; i < std::size(entries); ++i) {
        if (entries[i].spelling.empty()) continue;
        std::size_t at = hash(entries[i].spelling);
        while (buckets[at] != 0) at = (at + 1) & (bucket_count - 1);
        buckets[at] = static_cast<std::uint16_t>(i + 1);
    }
    return buckets;
}
constexpr auto buckets = make_buckets();

constexpr std::string_view modifier_names[] = {
    "",
#define X(name, spelling) spelling,
#include "frontend/isa/modifiers.def"
#undef X
};

constexpr std::string_view role_names[] = {
    "",
#define X(name, spelling) spelling,
#include "frontend/isa/roles.def"
#undef X
};

constexpr std::size_t max_name = 64; ///< longer ones are not compared

/// Edits that make `b` of `a`, names of up to max_name bytes: a letter changed, added or left out,
/// or two neighbours exchanged ("mvo"), none of them edited twice.
unsigned edit_distance(std::string_view a, std::string_view b) {
    std::array<std::array<unsigned, max_name + 1>, 3> rows{}; // of a's length modulo 3
    for (unsigned j = 0; j <= b.size(); ++j) rows[0][j] = j;
    for (unsigned i = 1; i <= a.size(); ++i) {
        const auto& last = rows[(i - 1) % 3];
        const auto& before_last = rows[(i + 1) % 3];
        auto& row = rows[i % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b.size(); ++j) {
            const unsigned change = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
    }
    return rows[a.size() % 3][b.size()];
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

} // namespace

Word find_word(std::string_view spelling) {
    for (std::size_t at = hash(spelling); buckets[at] != 0; at = (at + 1) & (bucket_count - 1)) {
        const Entry& entry = entries[buckets[at] - 1u];
        if (entry.spelling == spelling) return entry.word;
    }
    return {};
}

std::string_view spelling(StateSpace space) {
    constexpr std::string_view names[] = {"", "reg", "sreg", "const", "global", "local", "param", "shared", "tex", ""};
    return names[static_cast<unsigned>(space)];
}
std::string_view spelling(Modifier modifier) {
    return modifier_names[static_cast<unsigned>(modifier)];
}
std::string_view spelling(Role role) {
    return role_names[static_cast<unsigned>(role)];
}

std::string_view spelling(Word word) {
    switch (word.kind) {
    case Word::Kind::type: return spelling(static_cast<ScalarType>(word.value));
    case Word::Kind::space: return spelling(space_of(word));
    case Word::Kind::vector: return word.value == 2 ? "v2" : word.value == 4 ? "v4" : "v8";
    case Word::Kind::modifier: return spelling(static_cast<Modifier>(word.value));
    case Word::Kind::unknown: break;
    }
    return "";
}

Role find_role(std::string_view spelling) {
    for (std::size_t i = 1; i < std::size(role_names); ++i)
        if (role_names[i] == spelling) return static_cast<Role>(i);
    return Role::none;
}

StateSpace space_of(Word word) {
    if (word.kind == Word::Kind::space) return static_cast<StateSpace>(word.value);
    if (word.kind != Word::Kind::modifier) return StateSpace::none;
    const std::string_view text = spelling(word);
    if (text.starts_with("shared::")) return StateSpace::shared;
    if (text.starts_with("param::")) return StateSpace::param;
    return StateSpace::none;
}

namespace {
std::string_view without_number(std::string_view name) {
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
    return name;
}

/// "L100000" and "L90000": names that were counted, and no slip of the hand.
bool differ_in_number(std::string_view a, std::string_view b) {
    const std::string_view stem = without_number(a);
    return stem.size() < a.size() && stem == without_number(b) && stem.size() < b.size();
}
} // namespace

/// One letter may be wrong in two or three, two in longer names; of a single letter only the case.
NearestSpelling::NearestSpelling(std::string_view wanted)
    : wanted_(lower_case(wanted.substr(0, max_name))), best_distance_(wanted.size() <= 1   ? 1
                                                                      : wanted.size() <= 3 ? 2
                                                                                           : 3) {}

void NearestSpelling::offer(std::string_view candidate) {
    if (candidate.empty() || candidate.size() > max_name) return;
    const std::size_t difference =
        candidate.size() > wanted_.size() ? candidate.size() - wanted_.size() : wanted_.size() - candidate.size();
    if (difference > best_distance_) return;
    const std::string lower = lower_case(candidate);
    const unsigned distance = edit_distance(wanted_, lower);
    if (distance > 1 && differ_in_number(wanted_, lower)) return;
    // Of two as near, the one that was written and went on: 'addd' is 'add', not 'addc'.
    const bool is_prefix = wanted_.starts_with(candidate);
    const bool ties = distance == best_distance_ && !best_.empty() && is_prefix == best_is_prefix_;
    if (ties) {
        if (std::find(best_.begin(), best_.end(), candidate) == best_.end()) best_.push_back(candidate);
        return;
    }
    if (distance > best_distance_ || (distance == best_distance_ && (best_.empty() || best_is_prefix_))) return;
    best_distance_ = distance;
    best_is_prefix_ = is_prefix;
    best_.assign(1, candidate);
}

std::string NearestSpelling::question(std::string_view before) const {
    constexpr std::size_t shown = 3;
    const std::size_t count = std::min(best_.size(), shown);
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        if (i != 0) text += i + 1 == count ? " or " : ", ";
        text += "'" + std::string(before) + std::string(best_[i]) + "'";
    }
    return text.empty() ? text : " (did you mean " + text + "?)";
}

} // namespace ptarmigan::ptx
