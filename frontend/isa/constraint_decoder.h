// SPDX-License-Identifier: Apache-2.0
// Reads the constraint of one operand of a row: see instruction_table.def for the words.
#pragma once

#include "frontend/isa/row_decoder.h"

namespace ptarmigan::ptx {

/// `text` without its " in ..." part; `slots` are the words of the row, which a constraint may name. What is wrong
/// with it goes into `fault`, which stays as it was otherwise.
Constraint decode_constraint(std::string_view text, std::span<const DecodedRow::Slot> slots, std::string& fault);

} // namespace ptarmigan::ptx
