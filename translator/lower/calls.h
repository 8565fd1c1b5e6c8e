// SPDX-License-Identifier: Apache-2.0
// Calls of functions that the runtime provides to device code.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Lowers a call of a function without a body: vprintf, malloc, free, __assertfail, ... by name, lane by lane.
/// Operands: d and a are lists whose elements are registers, immediates or frame variables (then e.address() gives
/// the place of the parameter). Throws UnsupportedError for an unknown name.
void runtime_call(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function);

} // namespace ptarmigan::translator::lower
