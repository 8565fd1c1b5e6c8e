// SPDX-License-Identifier: Apache-2.0
// Arithmetic building blocks for handlers. Every function works on scalars and on <N x T> vectors alike: types are
// taken from the operands, constants are splatted to them.
#pragma once

#include "translator/lower/handlers.h"

namespace ptarmigan::translator::lower {

using llvm::Value;
using ptx::Instruction;
using ptx::Role;
using ptx::ScalarType;
using Word = ptx::Modifier;

/// Rounding modes of floating-point results.
enum class Rounding : std::uint8_t { nearest_even, toward_zero, down, up };
/// .rn, .rz, .rm, .rp of the instruction; nearest even when none is written.
Rounding rounding_of(const Instruction& inst);

// --- types and constants ---------------------------------------------------------------------------------------

/// `scalar` with the lanes of `like`.
llvm::Type* typed(llvm::Type* scalar, Value* like);
/// Integer type as wide as the lanes of `value`.
llvm::Type* integer_type(Value* value);
/// Integer constant of the (integer) type of `like`.
Value* integer(Value* like, std::uint64_t bits);
/// Floating constant of the type of `like`.
Value* real(Value* like, double value);
/// Floating constant of the type of `like` with these bits.
Value* real_bits(Value* like, std::uint64_t bits);
/// The lanes' bits as integers, and back to the floating type of `like`.
Value* to_bits(Ir& ir, Value* value);
Value* from_bits(Ir& ir, Value* bits, Value* like);
/// Integer to another width by the signedness of `type`.
Value* resize(Ir& ir, Value* value, unsigned bits, bool is_signed);

// --- integers --------------------------------------------------------------------------------------------------

Value* minimum(Ir& ir, Value* a, Value* b, bool is_signed);
Value* maximum(Ir& ir, Value* a, Value* b, bool is_signed);
/// High half of the full product.
Value* multiply_high(Ir& ir, Value* a, Value* b, bool is_signed);
/// Shifts whose amounts (same type as value) clamp at the width: the result is then 0, or the sign.
Value* shift_left(Ir& ir, Value* value, Value* amount);
Value* shift_right(Ir& ir, Value* value, Value* amount, bool is_signed);

// --- floating point --------------------------------------------------------------------------------------------

Value* is_nan(Ir& ir, Value* value);
/// The quiet NaN that the hardware makes for the type: 0x7fffffff, 0x7fff (half and bfloat), 0x7fff8..0 for double.
Value* canonical_nan(Value* like);
/// `condition ? a : b`. Of halves by their bits: see absolute().
Value* choose(Ir& ir, Value* condition, Value* a, Value* b);
/// NaN lanes become the canonical NaN. For double the operand's payload survives on the hardware: unchanged.
/// sink_nan_canonicalization.cpp moves these selects from inside arithmetic chains to where bits are looked at.
Value* canonicalize(Ir& ir, Value* value);
Value* absolute(Ir& ir, Value* value);
Value* negate(Ir& ir, Value* value);
/// `value` where no NaN's bits count: canonicalisations before it may go.
Value* any_nan(Ir& ir, Value* value);
/// Subnormal lanes become zero of the same sign.
Value* flush_subnormal(Ir& ir, Value* value);
/// Remembers that `value` (just made) holds no subnormals, so that flush_subnormal() may return it as it is.
Value* mark_flushed(Value* value);
/// Clamp to [+0, 1]; NaN and -0 give +0.
Value* saturate_unit(Ir& ir, Value* value);
/// A number that no lane's magnitude is above, if that is visible: constants, what has been saturated.
std::optional<double> magnitude_bound(Value* value);
/// The number next to `value` in the direction of zero / away from zero (in the encoding: bits - 1, bits + 1).
Value* next_toward_zero(Ir& ir, Value* value);
Value* next_away_from_zero(Ir& ir, Value* value);

/// `exact` (double, see round_to_odd_*) rounded to `narrow` (float) in `mode`.
Value* narrow_to_float(Ir& ir, Value* exact, Rounding mode);
/// A double or float carrier to half or bfloat in `mode`. The carrier is exact or rounded to odd.
Value* narrow_to_half(Ir& ir, Value* exact, llvm::Type* half_type, Rounding mode);
/// half, bfloat and float to float; exact.
Value* widen_to_float(Ir& ir, Value* value);
/// `rounded` + `error` (|error| <= half an ulp) as `rounded` with a sticky last bit: rounding it again to fewer bits
/// rounds the exact sum.
Value* sticky(Ir& ir, Value* rounded, Value* error);
/// `nearest` is the exact value nearest + error rounded to nearest; rounds the exact value in `mode` instead.
Value* step_by_error(Ir& ir, Value* nearest, Value* error, Rounding mode);
/// Exact error of sum = a + b rounded to nearest (Knuth's TwoSum), a NaN where sum is not finite.
Value* sum_error(Ir& ir, Value* a, Value* b, Value* sum);

/// A binary or ternary operation of float or double in a directed rounding mode. See directed_rounding.cpp.
enum class FloatOperation : std::uint8_t { add, sub, mul, fma, div, sqrt };
Value* directed(WarpEmitter& e, FloatOperation operation, Values operands, Rounding mode);

// --- packed halves -----------------------------------------------------------------------------------------------

/// Low and high 16 bits of b32 lanes as `half_type`, and back.
std::pair<Value*, Value*> unpack_halves(Ir& ir, Value* packed, llvm::Type* half_type);
Value* pack_halves(Ir& ir, Value* low, Value* high);
/// half or bfloat for f16/f16x2 and bf16/bf16x2.
llvm::Type* half_type_of(WarpEmitter& e, ScalarType type);

/// x86-64-v3 and better, which is what is translated for but on older hosts.
bool has_avx2(const TargetCpu& target);

/// True if the code will run where the feature is present ("avx512fp16").
bool has_feature(const WarpEmitter& e, std::string_view feature);

} // namespace ptarmigan::translator::lower
