// SPDX-License-Identifier: Apache-2.0
// Directives, attributes and targets by version: see directives.def.
#pragma once

#include "frontend/ptx/module.h"

#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// The newest version that is taken without being asked for: NVRTC 13.5's. Rows, words and directives are known up
/// to 9.2, and by what NVRTC 13.5 writes; the manuals of 9.3 to 9.5 were not at hand.
inline constexpr Version newest_version{9, 5};

/// Why a module of this version and target can't hold the directive, spelled as in directives.def; empty if it can.
std::string broken_directive(std::string_view word, Version version, const Target& target);

/// The word stands in directives.def.
bool is_directive(std::string_view word);

/// " (did you mean '.entry'?)" for a misspelt directive, empty if none is near.
std::string nearest_directive(std::string_view spelling);

/// Why there is no such target in that version of PTX; empty if there is. Versions beyond the newest have what it has.
std::string broken_target(const Target& target, Version version);

/// "unknown target 'sm90' (did you mean 'sm_90'?)".
std::string unknown_target(std::string_view written);

/// Why there is no such version; empty if there is, or if it is newer than those known here.
std::string broken_version(Version version);

} // namespace ptarmigan::ptx
