// SPDX-License-Identifier: Apache-2.0
// What the conversions share.
#pragma once

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

/// A format of 1 sign bit, `exponent` and `mantissa` bits. Formats without NaN convert it to the largest number.
struct SmallFloat {
    unsigned exponent, mantissa, bias;
    unsigned largest; ///< code of the largest finite number
    unsigned nan;     ///< code that NaN converts to
    unsigned stride;  ///< bits that one number takes when packed

    unsigned sign_bit() const { return 1u << (exponent + mantissa); }
};
/// The format of an element of e4m3x2, e5m2x4 and so on.
SmallFloat small_float(ScalarType type);

/// To the nearest even number or toward zero, as 32-bit integers, clamped to their range; NaN gives zero, of doubles
/// the top bit. Null where the CPU has no instruction for it, and of scalars.
Value* convert_by_instruction(WarpEmitter& e, Value* value, bool nearest, bool is_signed);

/// Infinity becomes `largest` (the format's largest finite number) with the same sign: .satfinite.
Value* clamp_finite(Ir& ir, Value* value, Value* largest);
/// Negative numbers and -0 become +0; NaN stays: .relu.
Value* clamp_relu(Ir& ir, Value* value);
/// Largest finite number of the type of `like`.
Value* largest_finite(Value* like);

} // namespace ptarmigan::translator::lower
