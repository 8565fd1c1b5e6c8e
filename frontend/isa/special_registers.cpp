// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/special_registers.h"

#include "frontend/isa/words.h"

#include <charconv>
#include <iterator>

namespace ptarmigan::ptx {

namespace {

using Layout = SpecialRegisterInfo::Layout;

struct LayoutText {
    Layout layout;
    std::uint8_t count;
};
constexpr LayoutText scalar{Layout::scalar, 1};
constexpr LayoutText vector{Layout::vector, 4};
constexpr LayoutText numbered(std::uint8_t count) {
    return {Layout::numbered, count};
}

constexpr SpecialRegisterInfo make(std::string_view spelling, ScalarType type, LayoutText layout, std::uint8_t major,
                                   std::uint8_t minor, std::uint16_t sm) {
    return {spelling, type, layout.layout, layout.count, major, minor, sm};
}

constexpr SpecialRegisterInfo table[] = {
#define X(name, spelling, type, layout, major, minor, sm) make(spelling, ScalarType::type, layout, major, minor, sm),
#include "frontend/isa/special_registers.def"
#undef X
};

/// The number in `name` where `pattern` has its `#`; -1 if they differ elsewhere.
int match_numbered(std::string_view name, std::string_view pattern, unsigned count) {
    const std::size_t mark = pattern.find('#');
    const std::string_view tail = pattern.substr(mark + 1);
    if (name.size() <= mark + tail.size() || !name.starts_with(pattern.substr(0, mark)) || !name.ends_with(tail))
        return -1;
    const std::string_view digits = name.substr(mark, name.size() - mark - tail.size());
    unsigned value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool good = status == std::errc() && end == digits.data() + digits.size() && value < count &&
                      (digits.size() == 1 || digits[0] != '0');
    return good ? static_cast<int>(value) : -1;
}

} // namespace

const SpecialRegisterInfo& special_register_info(SpecialRegister id) {
    return table[static_cast<std::size_t>(id)];
}

bool is_special_vector(std::string_view name) {
    const SpecialRegisterName found = find_special_register(name);
    return found.found && special_register_info(found.id).layout == SpecialRegisterInfo::Layout::vector;
}

void offer_special_registers(NearestSpelling& nearest) {
    for (const SpecialRegisterInfo& info : table)
        if (info.layout != Layout::numbered) nearest.offer(info.spelling);
}

SpecialRegisterName find_special_register(std::string_view name) {
    for (std::size_t i = 0; i < std::size(table); ++i) {
        const auto id = static_cast<SpecialRegister>(i);
        if (table[i].layout == Layout::numbered) {
            const int number = match_numbered(name, table[i].spelling, table[i].count);
            if (number >= 0) return {true, id, static_cast<std::uint8_t>(number)};
        } else if (table[i].spelling == name) {
            return {true, id, 0};
        }
    }
    return {};
}

std::string special_register_text(SpecialRegister id, unsigned component) {
    const SpecialRegisterInfo& info = special_register_info(id);
    std::string text(info.spelling);
    if (info.layout == Layout::vector) return text + "." + "xyzw"[component & 3];
    if (info.layout == Layout::numbered) text.replace(text.find('#'), 1, std::to_string(component));
    return text;
}

} // namespace ptarmigan::ptx
