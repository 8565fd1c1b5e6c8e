// SPDX-License-Identifier: Apache-2.0
// Which registers may stand where a value of a type is asked for.
#pragma once

#include "frontend/ptx/types.h"

#include <string_view>

namespace ptarmigan::ptx {

/// Whether a register of type `have` may stand where `want` is asked for (manual 9.4.1). `wider`: it may have
/// more bits than the type.
bool register_fits(ScalarType have, ScalarType want, bool wider);

/// The type of the same class with `bits` bits; none if there is none.
ScalarType with_bits(ScalarType type, unsigned bits);

/// The type of the registers that hold a matrix fragment of a type.
ScalarType packed_in_register(ScalarType type);

/// 0 to 3 for "x" to "w" and "r" to "a", the components of a vector register; -1 for anything else.
int component_number(std::string_view text);

} // namespace ptarmigan::ptx
