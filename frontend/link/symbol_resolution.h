// SPDX-License-Identifier: Apache-2.0
// Which unit's definition each name of a link stands for. The rules and texts are nvlink 13.0's, as
// its library form nvJitLink applies them to PTX.
#pragma once

#include "frontend/link/symbol_table.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

using LinkUnits = std::vector<std::unique_ptr<LinkUnit>>;

/// Decides what the result takes of each unit: sets kept_variables and kept_functions, widens
/// alignments and common variables to what other units ask for, and renames symbols of one unit
/// whose names are taken. `symbols` holds just these units, without errors. Returns what is missed
/// and can't be resolved, one line each; then the units are of no more use.
std::vector<std::string> resolve_symbols(LinkUnits& units, SymbolTable& symbols,
                                         const std::function<bool(std::string_view)>& is_provided);

} // namespace ptarmigan::ptx
