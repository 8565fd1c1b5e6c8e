// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/symbols.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {
constexpr std::size_t few_ranges = 16;           ///< are compared one by one, quicker than hashing
constexpr std::size_t few_names = 1000;          ///< are searched for numbers of a range
constexpr std::ptrdiff_t max_digits = 10;        ///< of a register's number
constexpr std::uint32_t near_numbers = 1u << 14; ///< numbers that may have a place in a vector, of 64 KB at most

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// The decimal number that is all of `text`; false if it is none. `%r01` is `%r1`, as with ptxas.
bool parse_number(std::string_view text, std::uint32_t& number) {
    if (text.empty() || text.size() > 10) return false;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc() && end == text.data() + text.size();
}
} // namespace

std::uint64_t NumberedName::key_of(std::string_view letters, std::uint64_t key) {
    for (const char c : letters) key = key << 8 | static_cast<unsigned char>(c);
    return key;
}

NumberedName::NumberedName(std::string_view text) : name(text) {
    constexpr std::ptrdiff_t last_letters = 8; // of the prefix: no more are in its key
    const char* const end = text.data() + text.size();
    const char* at = end - std::min<std::ptrdiff_t>(std::ssize(text), last_letters + max_digits);
    const char* digits = at;
    std::uint64_t key = 0, value = 0;
    for (;;) {
        for (; at < end && !is_digit(*at); ++at) key = key << 8 | static_cast<unsigned char>(*at);
        digits = at;
        for (value = 0; at < end && is_digit(*at); ++at) value = value * 10 + static_cast<unsigned char>(*at - '0');
        if (at >= end) break;
        key = key_of({digits, at}, key); // digits inside the name
    }
    if (end - digits > max_digits) { // those in front count as letters
        const char* const last = end - max_digits;
        key = key_of({digits, last}, key);
        digits = last;
        for (value = 0, at = last; at < end; ++at) value = value * 10 + static_cast<unsigned char>(*at - '0');
    }
    prefix = {text.data(), static_cast<std::size_t>(digits - text.data())};
    prefix_key = key;
    number = value;
    has_number = digits != end;
}

bool Scope::declares_number_of(std::string_view prefix, std::uint32_t count) const {
    if (names_.size() > few_names) return false;
    for (const auto& [name, symbol] : names_) {
        std::uint32_t number = 0;
        const bool is_number = name.starts_with(prefix) && parse_number(name.substr(prefix.size()), number);
        if (is_number && number < count && symbol.kind != Symbol::Kind::label) return true;
    }
    return false;
}

bool Scope::declare_range(std::string_view prefix, const Symbol& symbol) {
    if (!range_of_.emplace(prefix, static_cast<std::uint32_t>(ranges_.size())).second) return false;
    ranges_.push_back({prefix, symbol, {}, {}});
    prefix_keys_.push_back(NumberedName::key_of(prefix));
    is_plain_ = is_plain_ && ranges_.size() <= few_ranges && !is_digit(prefix.back());
    return true;
}

inline const Scope::Range* Scope::find_range(const NumberedName& name, std::uint32_t& number) const {
    if (ranges_.empty()) return nullptr;
    return is_plain_ ? find_plain_range(name, number) : find_odd_range(name.name, number);
}

inline const Scope::Range* Scope::find_plain_range(const NumberedName& name, std::uint32_t& number) const {
    if (!name.has_number) return nullptr;
    for (std::size_t i = 0; i < prefix_keys_.size(); ++i) {
        if (prefix_keys_[i] != name.prefix_key) continue;
        const Range& range = ranges_[i];
        if (range.prefix.size() != name.prefix.size() || (name.prefix.size() > 8 && range.prefix != name.prefix))
            continue;
        number = static_cast<std::uint32_t>(name.number);
        return name.number < range.symbol.count ? &range : nullptr;
    }
    return nullptr;
}

/// %r12 is number 12 of %r<n>; a prefix may itself end in digits, so the shortest prefix that has
/// the number wins.
const Scope::Range* Scope::find_odd_range(std::string_view name, std::uint32_t& number) const {
    std::uint32_t value = 0;
    if (ranges_.size() <= few_ranges) {
        const Range* found = nullptr;
        for (const Range& range : ranges_) {
            if (!name.starts_with(range.prefix) || (found != nullptr && found->prefix.size() < range.prefix.size()) ||
                !parse_number(name.substr(range.prefix.size()), value) || value >= range.symbol.count)
                continue;
            found = &range;
            number = value;
        }
        return found;
    }
    std::size_t digits = 0;
    while (digits < name.size() && digits < 10 && name[name.size() - 1 - digits] >= '0' &&
           name[name.size() - 1 - digits] <= '9')
        ++digits;
    for (; digits > 0; --digits) {
        const auto range = range_of_.find(name.substr(0, name.size() - digits));
        if (range == range_of_.end() || !parse_number(name.substr(name.size() - digits), value) ||
            value >= ranges_[range->second].symbol.count)
            continue;
        number = value;
        return &ranges_[range->second];
    }
    return nullptr;
}

inline RegisterId& Scope::id_of(Range& range, std::uint32_t number) {
    if (number >= near_numbers) return range.far.try_emplace(number, no_id).first->second;
    if (number >= range.ids.size())
        range.ids.resize(std::min({range.symbol.count, near_numbers, 2 * number + 16}), no_id);
    return range.ids[number];
}

Symbol Scope::find(const NumberedName& name, RegisterId*& id) {
    id = nullptr;
    std::uint32_t number = 0;
    if (const Range* range = find_range(name, number)) {
        Symbol symbol = range->symbol;
        if (symbol.kind == Symbol::Kind::reg) {
            id = &id_of(const_cast<Range&>(*range), number);
            symbol.index = *id;
        } else {
            symbol.index += number;
        }
        return symbol;
    }
    if (names_.empty()) return {};
    const auto found = names_.find(name.name);
    return found == names_.end() ? Symbol{} : found->second;
}

bool Scope::has(std::string_view name) const {
    std::uint32_t number = 0;
    return names_.count(name) != 0 || find_range(NumberedName(name), number) != nullptr;
}

void Scope::offer_names(NearestSpelling& nearest, Symbol::Kind kind) const {
    std::size_t left = 10000; // names: an error must not take seconds
    for (const auto& [name, symbol] : names_) {
        if (left-- == 0) return;
        if (kind == Symbol::Kind::none || symbol.kind == kind) nearest.offer(name);
    }
}

std::string Scope::range_meant_by(std::string_view name) const {
    std::uint32_t number = 0;
    const std::string with_percent = "%" + std::string(name.substr(0, 80));
    if (find_range(NumberedName(with_percent), number) != nullptr) return " (did you mean '" + with_percent + "'?)";
    for (const Range& range : ranges_) {
        if (!name.starts_with(range.prefix) || !parse_number(name.substr(range.prefix.size()), number)) continue;
        const std::string prefix(range.prefix.substr(0, 80));
        const std::string count = std::to_string(range.symbol.count);
        return range.symbol.count == 0 ? "; '" + prefix + "<0>' declares none"
                                       : "; '" + prefix + "<" + count + ">' ends with '" + prefix +
                                             std::to_string(range.symbol.count - 1) + "'";
    }
    return {};
}

Symbol Scope::find_label(std::string_view name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? Symbol{} : found->second;
}

} // namespace ptarmigan::ptx
