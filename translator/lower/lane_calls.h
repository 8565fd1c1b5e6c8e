// SPDX-License-Identifier: Apache-2.0
// Calls of fixed-width vector functions (builtins, 512-bit intrinsics) on values of any lane count.
#pragma once

#include "translator/lower/lane_math.h"

#include <optional>

namespace ptarmigan::translator::lower {

/// Cuts scalars or vectors into chunks of `lanes` (padding the last one with unspecified lanes), applies `op` to each
/// and joins the results to the lane count of the operands.
Value* in_chunks(Ir& ir, Values operands, unsigned lanes, const std::function<Value*(Ir&, Values)>& op);

/// Calls the builtin ptm_<name>_<lanes> (see translator/builtins): one lane for scalars, else chunks of 4, 8 or 16.
/// `extra` is passed as a trailing i32 to every call.
Value* call_lanes(WarpEmitter& e, std::string_view name, Values operands, llvm::Type* result,
                  std::optional<unsigned> extra = {});

} // namespace ptarmigan::translator::lower
