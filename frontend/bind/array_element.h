// SPDX-License-Identifier: Apache-2.0
// `a[3]` as an operand: the address of an element of an array (manual section 6.4.2).
#pragma once

#include "frontend/isa/form_matcher.h"
#include "frontend/source/diagnostic.h"

#include <functional>
#include <vector>

namespace ptarmigan::ptx {

/// Turns indices into byte offsets: `a[3]` into `a+12`, or `[a+12]` where the rows in `heads` load
/// or store. As in ptxas the unit is the scalar type, also of arrays of vectors and of more
/// dimensions, and bounds are not checked. `find_variable` gives the variable of a name or null.
/// Throws Recover after an error.
void resolve_array_elements(InstructionSyntax& instruction, const std::vector<HeadMatch>& heads,
                            Diagnostics& diagnostics,
                            const std::function<const Variable*(std::string_view)>& find_variable);

} // namespace ptarmigan::ptx
