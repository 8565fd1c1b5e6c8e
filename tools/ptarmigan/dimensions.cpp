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
        if (error != std::errc{})
            break;
        if (next == end)
            return result;
        if (*next != ',')
            break;
        at = next + 1;
    }
    throw CLI::ValidationError(option, "expected X[,Y[,Z]], got " + text);
}

} // namespace ptarmigan::tool
