// SPDX-License-Identifier: Apache-2.0
// Arithmetic on affine values: base + offsets[l] + stride * steps[l] stays in that form through address computations,
// so that the lanes of a warp cost scalar instructions. The shapes were planned by analysis/shapes; here the uniform
// scalars are computed to match. All of it is modulo 2^bits and exact; widening adds guards (shape.h).
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptarmigan::translator {

using ptx::Role;
using ptx::ScalarType;
using ptx::ShapeRule;

bool GraphEmitter::wants_affine(const GraphInstruction& instruction, ValueId& result) const {
    const ptx::Operand& d = instruction.inst[Role::d];
    if (d.kind != ptx::Operand::Kind::reg) return false;
    // cvta between a window and generic addresses adds the window's base: its handler does.
    if (instruction.inst.space == ptx::StateSpace::shared || instruction.inst.space == ptx::StateSpace::param)
        return false;
    result = d.index;
    return graph_.values[result].shape.is_affine();
}

/// A shape known from the threads' numbers: the offsets are constants, and the base is what lane 0 computes.
bool GraphEmitter::emit_lane_zero(const GraphInstruction& instruction) {
    const ptx::Operand& d = instruction.inst[Role::d];
    if (d.kind != ptx::Operand::Kind::reg || !graph_.values[d.index].lane_zero) return false;
    const Shape& shape = graph_.values[d.index].shape;
    Handler handler = handler_of(instruction.inst.form);
    if (shape.is_varying() || !handler) return false;
    lane_zero_ = true;
    handler(*this, instruction.inst);
    lane_zero_ = false;
    return true;
}

LaneValue GraphEmitter::affine_add(const LaneValue& a, const LaneValue& b, const Shape& planned) {
    LaneValue result;
    result.shape = planned;
    result.base = ir_.CreateAdd(a.base, b.base);
    if (a.stride && b.stride)
        result.stride = ir_.CreateAdd(a.stride, b.stride);
    else
        result.stride = a.stride ? a.stride : b.stride;
    return result;
}

LaneValue GraphEmitter::affine_negate(const LaneValue& a) {
    LaneValue result = a;
    result.base = ir_.CreateNeg(a.base);
    if (a.stride) result.stride = ir_.CreateNeg(a.stride);
    return result;
}

/// affine * uniform. A constant factor has scaled the planned offsets (and steps keep theirs, the stride grows); a
/// run-time factor becomes the stride of the old offsets. The analysis decides by the same test of `constant_factor`.
LaneValue GraphEmitter::affine_multiply(const LaneValue& x, const LaneValue& y, const Shape& planned,
                                        bool constant_factor) {
    const LaneValue& affine = x.is_affine() ? x : y;
    llvm::Value* factor = x.is_affine() ? y.base : x.base;
    LaneValue result;
    result.shape = planned;
    result.base = ir_.CreateMul(affine.base, factor);
    if (affine.stride)
        result.stride = ir_.CreateMul(affine.stride, factor);
    else if (!constant_factor)
        result.stride = factor;
    return result;
}

/// Known to the analysis: an immediate, or a value that was folded.
bool GraphEmitter::is_constant_operand(const ptx::Operand& operand) const {
    return operand.kind == ptx::Operand::Kind::imm ||
           (operand.kind == ptx::Operand::Kind::reg && graph_.values[operand.index].is_constant);
}

LaneValue GraphEmitter::affine_widen(const LaneValue& value, ScalarType from, ScalarType to) {
    llvm::Type* wide = type(to);
    bool sign = ptx::is_signed(from);
    auto extend = [&](llvm::Value* v, bool sign_extend) {
        if (v->getType()->getIntegerBitWidth() >= wide->getIntegerBitWidth()) return ir_.CreateTrunc(v, wide);
        return sign_extend ? ir_.CreateSExt(v, wide) : ir_.CreateZExt(v, wide);
    };
    LaneValue result = value;
    result.base = extend(value.base, sign);
    if (value.stride) result.stride = extend(value.stride, true);
    return result;
}

/// Emits the guard of a widening: true when no lane of the narrow value wraps, and the per-lane correction otherwise.
/// `correction` computes the difference between the lanes by extending lane by lane and by the affine form; it is
/// emitted behind a branch, for where the guard holds nobody asks for it.
void GraphEmitter::make_guard(ValueId result, const LaneValue& narrow, bool is_signed,
                              const std::function<llvm::Value*()>& correction) {
    llvm::Type* i64 = ir_.getInt64Ty();
    unsigned bits = narrow.base->getType()->getIntegerBitWidth();
    const LaneOffsets& offsets = *narrow.shape.offsets;
    auto [low_offset, high_offset] = std::minmax_element(offsets.begin(), offsets.end());
    auto extend = [&](llvm::Value* v) { return is_signed ? ir_.CreateSExt(v, i64) : ir_.CreateZExt(v, i64); };
    llvm::Value* base = extend(narrow.base);
    if (narrow.stride && *low_offset == 0 && *high_offset == 0) {
        // From lane 0, which is in range as it stands, the stride leads one way: only the furthest lane can be beyond.
        auto [low_step, high_step] = std::minmax_element(narrow.shape.steps->begin(), narrow.shape.steps->end());
        if (*low_step == 0) {
            llvm::Value* way = ir_.CreateMul(ir_.CreateSExt(narrow.stride, i64), ir_.getInt64(*high_step));
            llvm::Value* furthest = ir_.CreateAdd(base, way);
            llvm::Value* holds = ir_.CreateICmpEQ(extend(ir_.CreateTrunc(furthest, narrow.base->getType())), furthest);
            return set_guard(result, holds, correction);
        }
    }
    llvm::Value* low = ir_.CreateAdd(base, ir_.getInt64(*low_offset));
    llvm::Value* high = ir_.CreateAdd(base, ir_.getInt64(*high_offset));
    if (narrow.stride) {
        const LaneOffsets& steps = *narrow.shape.steps;
        auto [low_step, high_step] = std::minmax_element(steps.begin(), steps.end());
        llvm::Value* stride = ir_.CreateSExt(narrow.stride, i64);
        llvm::Value* a = ir_.CreateMul(stride, ir_.getInt64(*low_step));
        llvm::Value* b = ir_.CreateMul(stride, ir_.getInt64(*high_step));
        low = ir_.CreateAdd(low, ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b));
        high = ir_.CreateAdd(high, ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b));
    }
    std::int64_t minimum = is_signed ? -(std::int64_t(1) << (bits - 1)) : 0;
    std::int64_t maximum = is_signed ? (std::int64_t(1) << (bits - 1)) - 1 : (std::int64_t(1) << bits) - 1;
    llvm::Value* holds =
        ir_.CreateAnd(ir_.CreateICmpSGE(low, ir_.getInt64(minimum)), ir_.CreateICmpSLE(high, ir_.getInt64(maximum)));
    set_guard(result, holds, correction);
}

void GraphEmitter::emit_affine(const GraphInstruction& instruction, ValueId result) {
    const ptx::Instruction& inst = instruction.inst;
    const SsaValue& info = graph_.values[result];
    LaneValue value = affine_result(inst, info.shape, result);
    value.shape = info.shape;
    if (inst.guard != ptx::no_id && !guard_handled_) {
        ValueId old = instruction.previous.at(0);
        if (!graph_.values[old].is_undefined) {
            LaneValue guard = value_at(current_block_, inst.guard);
            if (inst.guard_negated) guard.base = ir_.CreateNot(guard.base);
            value = blend(guard, value, convert(value_at(current_block_, old), info.type, false), info.shape);
        }
    }
    define(result, value);
}

/// cvta and cvta.to: shared and kernel-parameter addresses are offsets in a window, all others are generic already.
LaneValue GraphEmitter::convert_address(const ptx::Instruction& inst, LaneValue value, ScalarType to) {
    unsigned window = 0;
    if (inst.space == ptx::StateSpace::shared)
        window = offsetof(abi::CtaContext, shared);
    else if (inst.space == ptx::StateSpace::param)
        window = offsetof(abi::CtaContext, params);
    else
        return convert(value, to, false);
    value = widen_address(value);
    llvm::Value* base = context_field(ir_.getInt64Ty(), window, "window");
    if (inst.has(ptx::Modifier::to)) base = ir_.CreateNeg(base);
    return convert(offset_by(value, base), to, false);
}

LaneValue GraphEmitter::affine_result(const ptx::Instruction& inst, const Shape& planned, ValueId result) {
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    ScalarType to = graph_.values[result].type;
    auto operand = [&](Role role) {
        const ptx::Operand& source = inst[role];
        LaneValue value =
            source.kind == ptx::Operand::Kind::special ? special_register(source, &planned) : read(source);
        if (value.shape.is_varying()) throw std::logic_error("varying operand of an affine result");
        return value;
    };
    // Guards scale and merge in the planned shape; the scalars below are those of the affine part.
    auto exact = [&](const LaneValue& narrow, bool sign) {
        llvm::Type* wide = lanes_type(type(to));
        llvm::Value* lanes = broadcast(narrow);
        return sign ? ir_.CreateSExt(lanes, wide) : ir_.CreateZExt(lanes, wide);
    };
    bool constant_factor = is_constant_operand(inst[Role::a]) || is_constant_operand(inst[Role::b]);
    switch (form.shape) {
    case ShapeRule::copy:
        if (form.opcode == "cvta") return convert_address(inst, operand(Role::a), to);
        return convert(operand(Role::a), to, false);
    case ShapeRule::narrow:
    case ShapeRule::special: return convert(operand(Role::a), to, false);
    case ShapeRule::add: return affine_add(operand(Role::a), operand(Role::b), planned);
    case ShapeRule::subtract: return affine_add(operand(Role::a), affine_negate(operand(Role::b)), planned);
    case ShapeRule::multiply: return affine_multiply(operand(Role::a), operand(Role::b), planned, constant_factor);
    case ShapeRule::multiply_add: {
        LaneValue a = operand(Role::a), b = operand(Role::b), c = operand(Role::c);
        if (a.is_uniform() && b.is_uniform())
            return affine_add(LaneValue::uniform(ir_.CreateMul(a.base, b.base)), c, planned);
        return affine_add(affine_multiply(a, b, planned, constant_factor), c, planned);
    }
    case ShapeRule::shift_left: {
        LaneValue a = operand(Role::a), b = operand(Role::b);
        unsigned bits = a.base->getType()->getIntegerBitWidth();
        llvm::Value* amount = ir_.CreateZExtOrTrunc(b.base, a.base->getType());
        // PTX clamps the amount: 32 or more (64 or more) shifts everything out.
        llvm::Value* in_range = ir_.CreateICmpULT(b.base, llvm::ConstantInt::get(b.base->getType(), bits));
        llvm::Value* one = llvm::ConstantInt::get(a.base->getType(), 1);
        llvm::Value* safe = ir_.CreateAnd(amount, llvm::ConstantInt::get(a.base->getType(), bits - 1));
        llvm::Value* factor =
            ir_.CreateSelect(in_range, ir_.CreateShl(one, safe), llvm::Constant::getNullValue(a.base->getType()));
        return affine_multiply(a, LaneValue::uniform(factor), planned, is_constant_operand(inst[Role::b]));
    }
    case ShapeRule::widen: {
        LaneValue narrow = operand(Role::a);
        ScalarType from = inst[Role::a].type;
        LaneValue wide = affine_widen(narrow, from, to);
        bool sign = ptx::is_signed(from);
        if (planned.guard == result)
            make_guard(result, narrow, sign, [&] { return ir_.CreateSub(exact(narrow, sign), broadcast(wide)); });
        return wide;
    }
    case ShapeRule::multiply_wide:
    case ShapeRule::multiply_wide_add: {
        ScalarType from = inst.type();
        bool sign = ptx::is_signed(from);
        LaneValue a = operand(Role::a), b = operand(Role::b);
        LaneValue product;
        if (a.is_uniform() && b.is_uniform()) {
            product = LaneValue::uniform(ir_.CreateMul(affine_widen(a, from, to).base, affine_widen(b, from, to).base));
        } else {
            const LaneValue& narrow = a.is_affine() ? a : b;
            product = affine_multiply(affine_widen(a, from, to), affine_widen(b, from, to), planned, constant_factor);
            if (planned.guard == result) {
                llvm::Value* factor = affine_widen(a.is_affine() ? b : a, from, to).base;
                make_guard(result, narrow, sign, [&] {
                    llvm::Value* fast = ir_.CreateMul(broadcast(affine_widen(narrow, from, to)), splat(factor));
                    return ir_.CreateSub(ir_.CreateMul(exact(narrow, sign), splat(factor)), fast);
                });
            }
        }
        if (form.shape == ShapeRule::multiply_wide) return product;
        return affine_add(product, operand(Role::c), planned);
    }
    case ShapeRule::select: {
        LaneValue a = operand(Role::a), b = operand(Role::b), p = operand(Role::c);
        LaneValue value = a.is_affine() ? a : b;
        value.base = ir_.CreateSelect(p.base, a.base, b.base);
        if (value.stride) {
            llvm::Value* zero = llvm::Constant::getNullValue(value.stride->getType());
            value.stride = ir_.CreateSelect(p.base, a.stride ? a.stride : zero, b.stride ? b.stride : zero);
        }
        return value;
    }
    default: throw std::logic_error(fmt::format("form {} has no affine rule", form.name));
    }
}

} // namespace ptarmigan::translator
