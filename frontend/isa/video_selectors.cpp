// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/video_selectors.h"

namespace ptarmigan::ptx {

namespace {

struct Shape {
    std::size_t min_digits, max_digits;
    char letter;     ///< 0: either, with one digit
    char last_digit; ///< the highest one allowed
    bool descending; ///< a set of parts, written from the highest down
};

constexpr Shape shape_of(SelectorRule rule) {
    switch (rule) {
    case SelectorRule::halves: return {2, 2, 'h', '3', false};
    case SelectorRule::bytes: return {4, 4, 'b', '7', false};
    case SelectorRule::half_mask: return {1, 2, 'h', '1', true};
    case SelectorRule::byte_mask: return {1, 4, 'b', '3', true};
    default: return {1, 1, 0, '3', false};
    }
}

} // namespace

std::optional<VideoSelector> find_video_selector(SelectorRule rule, std::string_view spelling) {
    if (rule == SelectorRule::none || spelling.size() < 2) return std::nullopt;
    Shape shape = shape_of(rule);
    const char letter = spelling.front();
    if (letter != 'b' && letter != 'h') return std::nullopt;
    if (shape.letter == 0 && letter == 'h') shape.last_digit = '1';
    if (shape.letter != 0 && letter != shape.letter) return std::nullopt;
    const std::string_view digits = spelling.substr(1);
    if (digits.size() < shape.min_digits || digits.size() > shape.max_digits) return std::nullopt;
    VideoSelector selector;
    selector.parts = static_cast<std::uint8_t>((letter == 'b' ? 0x10 : 0x20) + digits.size());
    char before = '9';
    for (char digit : digits) {
        if (digit < '0' || digit > shape.last_digit) return std::nullopt;
        if (shape.descending && digit >= before) return std::nullopt;
        before = digit;
        selector.digits = selector.digits << 4 | static_cast<std::uint64_t>(digit - '0');
    }
    return selector;
}

std::string spelling(const VideoSelector& selector) {
    if (selector.parts == 0) return {};
    std::string text(1, (selector.parts & 0x10) != 0 ? 'b' : 'h');
    for (int i = (selector.parts & 0xf) - 1; i >= 0; --i)
        text += static_cast<char>('0' + (selector.digits >> 4 * i & 0xf));
    return text;
}

} // namespace ptarmigan::ptx
