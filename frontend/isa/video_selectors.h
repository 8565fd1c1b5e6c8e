// SPDX-License-Identifier: Apache-2.0
// Selectors of video operands (manual 9.7.18): `.b2`, `.h1` take a part of a register, `.h32`,
// `.b7610` arrange the parts of two,
// `.h10`, `.b31` say which parts of the destination are written.
#pragma once

#include "frontend/isa/form_pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// As Operand keeps it for a register: `parts` is Operand::component, 0 without a selector, else
/// 0x10 for bytes or 0x20 for halves plus the number of digits; `digits` is Operand::value, four
/// bits each, the last one written in the lowest.
struct VideoSelector {
    std::uint8_t parts = 0;
    std::uint64_t digits = 0;
};

/// The selector spelled without its dot; nothing if the rule doesn't allow it.
std::optional<VideoSelector> find_video_selector(SelectorRule rule, std::string_view spelling);
/// "b3210"; empty for none.
std::string spelling(const VideoSelector& selector);

} // namespace ptarmigan::ptx
