// SPDX-License-Identifier: Apache-2.0
// Lines of a linked text and of the units that it was made of. The linker writes a comment before
// each body; messages find their way back by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// The comment for a body whose head and `{` follow in the next two lines and stood at `line` of
/// `unit`.
std::string body_origin(std::string_view unit, std::uint32_t line);

struct UnitLine {
    std::string unit;
    std::uint32_t line = 0;
};

/// Where line `line` of a linked text comes from; nothing if the text is not linked or the line is
/// in no body. Walks the text: for messages only.
std::optional<UnitLine> find_unit_line(std::string_view text, std::uint32_t line);

} // namespace ptarmigan::ptx
