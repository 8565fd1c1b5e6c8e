// SPDX-License-Identifier: Apache-2.0
// Which targets have a form: the text of SM(...) in a row.
//   80       sm_80 and every later target
//   90a      exactly sm_90a
//   100f     sm_100f, sm_100a and later members of the family (sm_103f, sm_103a), with a suffix
//   90a|100f any of these
#pragma once

#include "frontend/ptx/module.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// True if sm_<sm><suffix> (suffix 'a', 'f' or 0) is among `targets`.
bool has_target(std::string_view targets, std::uint32_t sm, char suffix);
/// "sm_80 or later", "sm_90a or sm_100f".
std::string describe_targets(std::string_view targets);
/// What a module of `version` for `target` lacks of what is wanted: ".version 7.8 or later and .target sm_90 or later",
/// or one of the two; empty if nothing.
std::string lacking(Version wanted, std::string_view targets, Version version, const Target& target);

} // namespace ptarmigan::ptx
