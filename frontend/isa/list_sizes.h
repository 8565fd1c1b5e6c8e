// SPDX-License-Identifier: Apache-2.0
// How many elements a braced operand must have, from the words of the instruction: fragments of
// matrices, coordinates of tensors, registers of tensor memory.
#pragma once

#include "frontend/isa/form_matcher.h"

namespace ptarmigan::ptx {

/// Elements of the operand with that role, or 0 if the words don't say.
unsigned list_size(const HeadMatch& match, Role role);

/// Elements that the braced operand must have of which `written` are there; 0 for any number.
unsigned required_elements(const HeadMatch& match, const OperandPattern& pattern, unsigned written);

/// ptxas takes two or four registers of B where the form has one, and uses the first (mma.m16n8k16 of 8-bit floats).
bool has_spare_elements(const HeadMatch& match);

} // namespace ptarmigan::ptx
