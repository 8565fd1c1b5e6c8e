// SPDX-License-Identifier: Apache-2.0
// What a byte of a PTX text can be part of, and where runs of bytes end.
#pragma once

#include "frontend/parse/bytes.h"

#include <array>
#include <bit>
#include <cstdint>

namespace ptarmigan::ptx {

enum CharacterClass : std::uint8_t {
    blank = 1, ///< but newlines
    identifier_start = 2,
    identifier_part = 4,
    digit = 8,
    hex_digit = 16,
    brace_scan = 32, ///< what skip_braces() must look at
    operator_or_bracket = 64,
};

constexpr std::array<std::uint8_t, 256> make_character_classes() {
    std::array<std::uint8_t, 256> classes{};
    for (int c = 0; c < 256; ++c) {
        std::uint8_t bits = 0;
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool number = c >= '0' && c <= '9';
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') bits |= blank;
        if (letter || c == '_' || c == '$' || c == '%') bits |= identifier_start;
        if (letter || number || c == '_' || c == '$') bits |= identifier_part;
        if (number) bits |= digit | hex_digit;
        if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) bits |= hex_digit;
        if (c == '{' || c == '}' || c == '/' || c == '"' || c == '\n') bits |= brace_scan;
        classes[static_cast<std::size_t>(c)] = bits;
    }
    for (const char c : {'{', '}', '(', ')', '[', ']', '<', '>', ',', ';', ':', '=', '+',
                         '-', '*', '/', '%', '!', '~', '&', '|', '^', '?', '@', '\\'})
        classes[static_cast<std::size_t>(c)] |= operator_or_bracket;
    return classes;
}
inline constexpr std::array<std::uint8_t, 256> character_classes = make_character_classes();

inline bool is_class(char c, std::uint8_t bits) {
    return (character_classes[static_cast<unsigned char>(c)] & bits) != 0;
}

/// Where the run of `identifier_part`s that begins at `at` ends. Without a branch for each byte:
/// lengths of names are what a CPU can't guess.
inline const char* identifier_end(const char* at, const char* end) {
    for (; end - at >= 16; at += 16) {
        const unsigned stop = ~name_bytes(at) & 0xffffu;
        if (stop != 0) return at + std::countr_zero(stop);
    }
    while (at < end && is_class(*at, identifier_part)) ++at;
    return at;
}

} // namespace ptarmigan::ptx
