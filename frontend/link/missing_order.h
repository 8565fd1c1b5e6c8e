// SPDX-License-Identifier: Apache-2.0
// In which order nvlink names the functions that a unit misses.
#pragma once

#include "frontend/link/link_unit.h"

#include <vector>

namespace ptarmigan::ptx {

/// The functions of `missing` (ids of `unit`'s declarations), ordered as ptxas' object code first names them: it
/// compiles the functions that no other of the unit calls from the last to the first, before each what that calls, the
/// last call first. Of what one function names, the declaration's place decides; initial values count as part of the
/// first function. Reads all bodies: for links that fail.
std::vector<FunctionId> missing_order(const LinkUnit& unit, const std::vector<FunctionId>& missing);

} // namespace ptarmigan::ptx
