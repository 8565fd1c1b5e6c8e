// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/dimensions.h"

#include <CLI/CLI.hpp>

#include <charconv>

namespace ptarmigan::tool {

std::array<std::uint32_t, 3> parse_dimensions(const std::string& text, const std::string& option) {
    std::array<std::uint32_t, 3> result{1, 1, 1};
    const char* at = text.data();
    const char* end = at + text.size();
    for (unsigned i = 0; i < 3; ++i) {
        auto [next, error] = std::from_chars(at, end, result[i]);
        if (error != std::errc{}) break;
        if (next == end) return result;
        if (*next != ',') break;
        at = next + 1;
    }
    throw CLI::ValidationError(option, "expected X[,Y[,Z]], got " + text);
}

std::array<std::uint32_t, 3> parse_block(const std::string& text) {
    const auto block = parse_dimensions(text, "--block");
    const auto [x, y, z] = block;
    const bool fits = x != 0 && y != 0 && z != 0 && x <= 1024 && y <= 1024 && z <= 64 && x * y * z <= 1024;
    if (!fits)
        throw CLI::ValidationError("--block",
                                   "a CTA has 1 to 1024 threads (X and Y at most 1024, Z at most 64), got " + text);
    return block;
}

} // namespace ptarmigan::tool
