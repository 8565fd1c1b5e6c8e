// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/visible_devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

namespace ptarmigan::runtime {
namespace {

/// One entry of the list: the device that it names, -1: none, and whether by number.
struct Entry {
    int device = -1;
    bool by_number = false;
};

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

/// The device whose UUID begins so, or whose whole UUID stands at the beginning; -1 if none or several do.
int find_by_uuid(std::string_view beginning, std::span<const std::string> uuids) {
    int found = -1;
    const auto equal = [](char given, char digit) { return std::tolower(static_cast<unsigned char>(given)) == digit; };
    for (std::size_t i = 0; i < uuids.size(); ++i) {
        const std::string_view given = beginning.substr(0, uuids[i].size());
        if (given.empty() || !std::equal(given.begin(), given.end(), uuids[i].begin(), equal)) continue;
        if (found >= 0) return -1;
        found = static_cast<int>(i);
    }
    return found;
}

/// As C reads a number into an int: blanks and a sign in front, anything behind, and bits beyond 32 lost.
Entry read_entry(std::string_view entry, std::span<const std::string> uuids) {
    for (const std::string_view prefix : {"GPU-", "MIG-"})
        if (entry.starts_with(prefix)) return {find_by_uuid(entry.substr(prefix.size()), uuids), false};
    const std::string text(entry);
    char* end = nullptr;
    const auto number = static_cast<std::int32_t>(std::strtol(text.c_str(), &end, 10));
    const bool exists = end != text.c_str() && number >= 0 && static_cast<std::size_t>(number) < uuids.size();
    return exists ? Entry{number, true} : Entry{};
}

} // namespace

Status find_visible_devices(std::string_view list, std::span<const std::array<std::uint8_t, 16>> uuids,
                            std::vector<int>& numbers) {
    std::vector<std::string> texts;
    for (const auto& uuid : uuids) texts.push_back(text_of(uuid));
    numbers.clear();
    bool by_number = false;
    for (;;) {
        const std::size_t end = list.find(',');
        const Entry entry = read_entry(list.substr(0, end), texts);
        if (numbers.empty()) by_number = entry.by_number;
        if (entry.device < 0 || entry.by_number != by_number) break;
        if (std::find(numbers.begin(), numbers.end(), entry.device) != numbers.end()) return Status::invalid_device;
        numbers.push_back(entry.device);
        if (end == std::string_view::npos) break;
        list.remove_prefix(end + 1);
    }
    return numbers.empty() ? Status::no_device : Status::success;
}

} // namespace ptarmigan::runtime
