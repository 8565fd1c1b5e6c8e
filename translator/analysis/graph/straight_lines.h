// SPDX-License-Identifier: Apache-2.0
// Where ptxas' straight lines of code end that PTX does not show. ptxas 13.0 makes branches, calls of its own functions
// or fences of some instructions before it fuses products with sums, and nothing fuses across them. Found by asking it,
// for sm_90, about 7,941 statements that stood between a mul and an add, and about 1,305 of them with a guard
// (analysis/README.md).
#pragma once

#include "frontend/ptx/module.h"

namespace ptarmigan::translator {

/// True if no product before `inst` goes into a sum behind it.
bool ends_straight_line(const ptx::Instruction& inst);

/// True for loads from a constant address of .const or of a kernel's parameters, where `is_entry` says that it is one.
bool reads_constant_bank(const ptx::Instruction& inst, bool is_entry);

} // namespace ptarmigan::translator
