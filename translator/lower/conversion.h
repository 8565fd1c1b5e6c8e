// SPDX-License-Identifier: Apache-2.0
// What the conversions between floating formats share.
#pragma once

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

/// Infinity becomes `largest` (the format's largest finite number) with the same sign: .satfinite.
Value* clamp_finite(Ir& ir, Value* value, Value* largest);
/// Negative numbers and -0 become +0; NaN stays: .relu.
Value* clamp_relu(Ir& ir, Value* value);
/// Largest finite number of the type of `like`.
Value* largest_finite(Value* like);

} // namespace ptarmigan::translator::lower
