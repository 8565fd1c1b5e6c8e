// SPDX-License-Identifier: Apache-2.0
// Where something stands in a PTX source.
#pragma once

#include <cstdint>

namespace ptarmigan {

/// 1-based line and column (in bytes) of a PTX text; line 0 means "nowhere" (synthesised).
struct SourceLocation {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    bool operator==(const SourceLocation&) const = default;
};

} // namespace ptarmigan
