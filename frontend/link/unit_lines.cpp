// SPDX-License-Identifier: Apache-2.0
#include "frontend/link/unit_lines.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {
constexpr std::string_view mark = "//@ ";
}

std::string body_origin(std::string_view unit, std::uint32_t line) {
    std::string name(unit);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return std::string(mark) + std::to_string(line) + " " + name + "\n";
}

std::optional<UnitLine> find_unit_line(std::string_view text, std::uint32_t line) {
    std::string_view origin;
    std::uint32_t origin_line = 0;
    for (std::uint32_t number = 1; number < line; ++number) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return std::nullopt;
        if (text.starts_with(mark)) {
            origin = text.substr(mark.size(), end - mark.size());
            origin_line = number;
        }
        text.remove_prefix(end + 1);
    }
    UnitLine place;
    const char* last = origin.data() + origin.size();
    const auto [end, status] = std::from_chars(origin.data(), last, place.line);
    if (status != std::errc() || end == last || *end != ' ') return std::nullopt;
    place.unit.assign(end + 1, last);
    const std::uint32_t body_line = origin_line + 2; // behind the head
    if (line > body_line) place.line += line - body_line;
    return place;
}

} // namespace ptarmigan::ptx
