// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/visible_devices.h"

#include <cctype>
#include <string>

namespace ptarmigan::runtime {
namespace {

enum class Names { nothing, number, uuid };

std::string text_of(const std::array<std::uint8_t, 16>& uuid) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += digits[uuid[i] >> 4];
        text += digits[uuid[i] & 15];
    }
    return text;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// How one entry of the list names the device.
Names names_device(std::string_view entry, const std::string& uuid) {
    const std::size_t first = entry.find_first_not_of(" \t");
    if (first == std::string_view::npos) return Names::nothing;
    entry.remove_prefix(first);
    entry = entry.substr(0, entry.find_last_not_of(" \t") + 1);
    if (entry.starts_with("GPU-")) {
        entry.remove_prefix(4);
        if (entry.empty() || entry.size() > uuid.size()) return Names::nothing;
        for (std::size_t i = 0; i < entry.size(); ++i)
            if (std::tolower(static_cast<unsigned char>(entry[i])) != uuid[i]) return Names::nothing;
        return Names::uuid;
    }
    if (entry.starts_with('+')) entry.remove_prefix(1);
    bool any = false;
    for (; !entry.empty() && is_digit(entry.front()); entry.remove_prefix(1), any = true)
        if (entry.front() != '0') return Names::nothing;
    return any ? Names::number : Names::nothing;
}

} // namespace

Status find_visible_device(std::string_view list, const std::array<std::uint8_t, 16>& uuid) {
    const std::string own = text_of(uuid);
    std::size_t numbers = 0;
    for (bool first = true;; first = false) {
        const std::size_t end = list.find(',');
        const Names names = names_device(list.substr(0, end), own);
        if (first && names == Names::nothing) return Status::no_device;
        if (names == Names::number && ++numbers == 2) return Status::invalid_device;
        if (names != Names::number || end == std::string_view::npos) return Status::success;
        list.remove_prefix(end + 1);
    }
}

} // namespace ptarmigan::runtime
