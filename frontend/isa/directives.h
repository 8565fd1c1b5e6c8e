// SPDX-License-Identifier: Apache-2.0
// Directives, attributes and targets by version: see directives.def.
#pragma once

#include "frontend/ptx/module.h"

#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// Why a module of this version and target can't hold the directive, spelled as in directives.def; empty if it can.
std::string broken_directive(std::string_view word, Version version, const Target& target);

/// The word stands in directives.def.
bool is_directive(std::string_view word);

/// " (did you mean '.entry'?)" for a misspelt directive, empty if none is near.
std::string nearest_directive(std::string_view spelling);

/// Why there is no such target in that version of PTX; empty if there is. Versions beyond 9.0 have what 9.0 has.
std::string broken_target(const Target& target, Version version);

/// "unknown target 'sm90' (did you mean 'sm_90'?)".
std::string unknown_target(std::string_view written);

/// Why there is no such version; empty if there is, or if it is newer than those known here.
std::string broken_version(Version version);

} // namespace ptarmigan::ptx
