// SPDX-License-Identifier: Apache-2.0
// Floating-point operations with PTX's modifiers, shared by the chapters for single, half and mixed precision.
#pragma once

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

struct FloatOptions {
    Rounding rounding = Rounding::nearest_even;
    bool ftz = false, sat = false;
};
/// .rnd, .ftz and .sat of the instruction.
FloatOptions float_options(const Instruction& inst);
/// The operation on float or double lanes, with NaN results as the hardware gives them.
Value* float_arithmetic(WarpEmitter& e, FloatOperation operation, Values operands, const FloatOptions& options);

struct MinMaxOptions {
    bool is_max = false, ftz = false, nan = false, abs = false, xorsign = false;
};
/// .ftz, .NaN, .abs and .xorsign of the instruction.
MinMaxOptions min_max_options(const Instruction& inst, bool is_max);
/// Of functions that compute with the sign bits of doubles, so that LLVM may see -x or |x| in an operand.
inline constexpr char touches_signs_attribute[] = "ptarmigan-touches-signs";

/// A NaN double with its quiet bit set.
Value* quieted(Ir& ir, Value* value);
/// min or max of lanes of any floating type. A NaN loses against a number (unless options.nan); -0 is below +0.
Value* float_min_max(Ir& ir, Value* a, Value* b, const MinMaxOptions& options);

} // namespace ptarmigan::translator::lower
