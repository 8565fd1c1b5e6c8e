// SPDX-License-Identifier: Apache-2.0
// Which unit's definition each name of a link stands for. The rules and texts are nvlink 13.0's, as
// its library form nvJitLink applies them to PTX.
#pragma once

#include "frontend/link/link_unit.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

using LinkUnits = std::vector<std::unique_ptr<LinkUnit>>;

/// Decides what the result takes of each unit: sets kept_variables and kept_functions, widens
/// alignments and common variables to what other units ask for, and renames symbols of one unit
/// whose names are taken. Returns the errors, one line each; then the units are of no more use.
std::vector<std::string> resolve_symbols(LinkUnits& units,
                                         const std::function<bool(std::string_view)>& is_provided);

} // namespace ptarmigan::ptx
