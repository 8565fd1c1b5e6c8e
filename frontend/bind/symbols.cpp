// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/symbols.h"

#include <charconv>

namespace ptarmigan::ptx {

Symbol Scope::find(std::string_view name) const {
    if (!ranges_.empty()) {
        // %r12 is number 12 of %r<n>; a prefix may itself end in digits, so shorter numbers are
        // tried too.
        std::size_t digits = 0;
        while (digits < name.size() && digits < 9 && name[name.size() - 1 - digits] >= '0' &&
               name[name.size() - 1 - digits] <= '9')
            ++digits;
        for (; digits > 0; --digits) {
            const std::string_view number = name.substr(name.size() - digits);
            if (digits > 1 && number[0] == '0') continue;
            const auto range = ranges_.find(name.substr(0, name.size() - digits));
            if (range == ranges_.end()) continue;
            std::uint32_t value = 0;
            std::from_chars(number.data(), number.data() + digits, value);
            if (value >= range->second.count) continue;
            Symbol symbol = range->second;
            symbol.index += value * symbol.vector_size;
            return symbol;
        }
    }
    const auto found = names_.find(name);
    return found == names_.end() ? Symbol{} : found->second;
}

} // namespace ptarmigan::ptx
