// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/symbols.h"

#include <charconv>

namespace ptarmigan::ptx {

namespace {
constexpr std::size_t few_ranges = 16; ///< are compared one by one, quicker than hashing

/// The decimal number that is all of `text`, without leading zeros; false if it is none.
bool parse_number(std::string_view text, std::uint32_t& number) {
    if (text.empty() || text.size() > 9 || (text[0] == '0' && text.size() > 1)) return false;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc() && end == text.data() + text.size();
}
} // namespace

bool Scope::declare_range(std::string_view prefix, const Symbol& symbol) {
    if (!range_of_.emplace(prefix, static_cast<std::uint32_t>(ranges_.size())).second) return false;
    ranges_.push_back({prefix, symbol});
    return true;
}

/// %r12 is number 12 of %r<n>; a prefix may itself end in digits, so the shortest prefix that has
/// the number wins.
const Scope::Range* Scope::find_range(std::string_view name, std::uint32_t& number) const {
    std::uint32_t value = 0;
    if (ranges_.size() <= few_ranges) {
        const Range* found = nullptr;
        for (const Range& range : ranges_) {
            if (!name.starts_with(range.prefix) ||
                (found != nullptr && found->prefix.size() < range.prefix.size()) ||
                !parse_number(name.substr(range.prefix.size()), value) ||
                value >= range.symbol.count)
                continue;
            found = &range;
            number = value;
        }
        return found;
    }
    std::size_t digits = 0;
    while (digits < name.size() && digits < 9 && name[name.size() - 1 - digits] >= '0' &&
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

Symbol Scope::find(std::string_view name) const {
    std::uint32_t number = 0;
    if (const Range* range = ranges_.empty() ? nullptr : find_range(name, number)) {
        Symbol symbol = range->symbol;
        symbol.index += number * symbol.vector_size;
        return symbol;
    }
    const auto found = names_.find(name);
    return found == names_.end() ? Symbol{} : found->second;
}

} // namespace ptarmigan::ptx
