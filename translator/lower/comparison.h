// SPDX-License-Identifier: Apache-2.0
// What the comparisons of chapters 9.7.6 and 9.7.7 share.
#pragma once

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

/// The CmpOp word of the instruction.
Word comparison_of(const Instruction& inst);
/// i1 result of the instruction's CmpOp on a and b (any integer or floating type), .ftz respected.
Value* compare(WarpEmitter& e, const Instruction& inst, Value* a, Value* b, ScalarType type);
/// `truth` combined with `c` by the instruction's BoolOp, if it has one.
Value* combine(Ir& ir, const Instruction& inst, Value* truth, Value* c);
/// True for an operand that names a register (it may be absent or `_`).
bool is_written(const ptx::Operand& operand);
/// Combines with operand c and writes p, and q if there is one.
void write_predicates(WarpEmitter& e, const Instruction& inst, const LaneValue& p, const LaneValue& q);
/// All ones or zero for integer results, 1.0 or 0.0 for floating ones.
Value* truth_value(Ir& ir, Value* truth, llvm::Type* result);

} // namespace ptarmigan::translator::lower
