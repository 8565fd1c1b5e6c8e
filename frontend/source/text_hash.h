// SPDX-License-Identifier: Apache-2.0
// A quick hash of short texts: names and instruction heads, of which there are millions in a large
// module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ptarmigan::ptx {

/// For hash tables only: neither stable from version to version nor safe against an attacker.
struct TextHash {
    std::size_t operator()(std::string_view text) const {
        constexpr std::uint64_t factor = 0x9e3779b97f4a7c15u;
        const char* at = text.data();
        std::size_t left = text.size();
        std::uint64_t hash = left * factor;
        for (; left >= 8; at += 8, left -= 8) hash = mix(hash ^ load(at, 8)) * factor;
        if (left != 0) hash = mix(hash ^ load(at, left)) * factor;
        return static_cast<std::size_t>(mix(hash));
    }

private:
    static std::uint64_t mix(std::uint64_t value) { return value ^ value >> 32; }
    static std::uint64_t load(const char* at, std::size_t size) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, size);
        return word;
    }
};

} // namespace ptarmigan::ptx
