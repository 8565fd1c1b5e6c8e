// SPDX-License-Identifier: Apache-2.0
// Floating point, f32 and f64 (manual 9.7.3), apart from the approximations (approximation.cpp). Results are rounded
// once, never contracted here; single-precision NaN results are 0x7fffffff as on the hardware.
#include "translator/lower/floating_point.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

namespace ptarmigan::translator::lower {

namespace {

using Op = FloatOperation;

Value* nearest(Ir& ir, Op operation, Values v) {
    switch (operation) {
    case Op::add: return ir.CreateFAdd(v[0], v[1]);
    case Op::sub: return ir.CreateFSub(v[0], v[1]);
    case Op::mul: return ir.CreateFMul(v[0], v[1]);
    case Op::div: return ir.CreateFDiv(v[0], v[1]);
    case Op::fma: return ir.CreateIntrinsic(llvm::Intrinsic::fma, {v[0]->getType()}, {v[0], v[1], v[2]});
    case Op::sqrt: return ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v[0]);
    }
    return nullptr;
}

Value* rounded(WarpEmitter& e, Op operation, Values v, Rounding mode) {
    return mode == Rounding::nearest_even ? nearest(e.ir(), operation, v) : directed(e, operation, v, mode);
}

// The hardware flushes a result whose magnitude, rounded to 24 bits with an unbounded exponent, is below 2^-126. The
// rounding of subnormals lets some of those reach 2^-126, so the operation is repeated scaled by 2^24, where nothing
// is subnormal. A scaled operand that overflows gives infinity or NaN: the true result is then far from tiny.
Value* flush_result(WarpEmitter& e, Op operation, Values v, Value* result, Rounding mode) {
    Ir& ir = e.ir();
    // Sums of normal numbers are exact in the subnormal range; roots are never tiny.
    if (operation == Op::add || operation == Op::sub) return flush_subnormal(ir, result);
    if (operation == Op::sqrt) return result;
    Value* scale = real(result, 0x1p24);
    llvm::SmallVector<Value*, 3> scaled(v.begin(), v.end());
    scaled[0] = ir.CreateFMul(v[0], scale);
    if (operation == Op::fma) scaled[2] = ir.CreateFMul(v[2], scale);
    Value* large = rounded(e, operation, scaled, mode);
    Value* tiny = ir.CreateFCmpOLT(absolute(ir, large), real(result, 0x1p-102));
    Value* zero = ir.CreateAnd(to_bits(ir, result), integer(to_bits(ir, result), 0x80000000u));
    return ir.CreateSelect(tiny, from_bits(ir, zero, result), result);
}

const llvm::APFloat* constant_number(Value* value) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    return number ? &number->getValueAPF() : nullptr;
}

// LLVM takes x + -0, x * 1, x * -1 and the like for x or -x, and so lets a signalling NaN pass, or turns its sign.
bool may_pass_on(Op operation, Values v) {
    const bool sum = operation == Op::add || operation == Op::sub;
    return std::any_of(v.begin(), v.end(), [&](Value* operand) {
        const llvm::APFloat* number = constant_number(operand);
        return number && (sum ? number->isZero() : abs(*number).isExactlyValue(1.0));
    });
}

/// True if LLVM may find out an operation's operands, all of them, and that it is invalid: it gives a NaN though none
/// was there.
bool may_be_invalid(WarpEmitter& e, Op operation, Values v) {
    const auto is_finite = [](Value* operand, bool zero_too) {
        const llvm::APFloat* number = constant_number(operand);
        return number && number->isFinite() && (zero_too || !number->isZero());
    };
    const auto is_safe_factor = [&](Value* operand) { return is_finite(operand, false); };
    if (e.has_unknown_operand()) return false;
    switch (operation) {
    case Op::add:
    case Op::sub: return !is_finite(v[0], true) && !is_finite(v[1], true);
    case Op::mul: return llvm::none_of(v, is_safe_factor);
    case Op::fma: return !is_finite(v[2], true) || llvm::none_of(v.take_front(2), is_safe_factor);
    case Op::div: return !is_safe_factor(v[1]);
    case Op::sqrt: return true;
    }
    return true;
}

// Of several NaN operands of double sums and products the hardware keeps b, quieted, else c, else a, and an invalid
// operation gives the NaN with its sign set. So does x86, but LLVM may exchange operands, and where it finds out what
// they are, in whatever pass, its NaN has no sign. LLVM's pass list takes this out of the path without NaNs
// (translator/llvm/defer_nan_choice.h). The manual leaves it open: PTARMIGAN_APPROX=fast does without.
Value* last_nan(WarpEmitter& e, Op operation, Values v, Value* result) {
    Ir& ir = e.ir();
    const bool passes_on = may_pass_on(operation, v);
    const auto choose = [&](Value* operand) {
        result = ir.CreateSelect(is_nan(ir, operand), quieted(ir, operand), result);
    };
    // x86 does with the operands of quotients and roots what the hardware does (LLVM does not see quotients that may be
    // invalid, and computes no roots of negative numbers). AArch64 takes signalling NaNs first, and makes positive
    // ones.
    const bool of_one_or_first = operation == Op::sqrt || operation == Op::div;
    const bool arm = e.options().target.architecture == TargetCpu::Architecture::aarch64;
    const bool makes_other = arm || (!of_one_or_first && may_be_invalid(e, operation, v));
    if (makes_other) result = ir.CreateSelect(is_nan(ir, result), canonical_nan(result), result);
    if (arm && of_one_or_first) {
        for (Value* operand : llvm::reverse(v)) choose(operand);
        return result;
    }
    if (of_one_or_first && !(operation == Op::div && passes_on)) return result;
    // Of (-x) + y LLVM makes y - x, which has another NaN.
    const llvm::Function* function = ir.GetInsertBlock()->getParent();
    if (makes_other || passes_on || function->hasFnAttribute(touches_signs_attribute)) choose(v.front());
    for (Value* operand : llvm::reverse(v.drop_front())) choose(operand);
    return result;
}

/// A divisor of a quotient that may be invalid, out of LLVM's sight, whose 0 / 0 has no sign. No instruction.
void hide_divisor(WarpEmitter& e, llvm::MutableArrayRef<Value*> v) {
    if (may_be_invalid(e, Op::div, v))
        v[1] = e.ir().CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {v[1]->getType()}, {v[1]});
}

/// Neither a NaN nor infinite: the reduction of expf is such a sum, whose bits it shows.
bool is_surely_number(Op operation, Values v) {
    if (v.front()->getType()->getScalarSizeInBits() != 32) return false;
    double bounds[3] = {};
    for (unsigned i = 0; i < v.size() && i < 3; ++i) {
        const std::optional<double> bound = magnitude_bound(v[i]);
        if (!bound) return false;
        bounds[i] = *bound;
    }
    constexpr double largest = 1e38; // of floats it is 3.4e38
    switch (operation) {
    case Op::add:
    case Op::sub: return bounds[0] + bounds[1] < largest;
    case Op::mul: return bounds[0] * bounds[1] < largest;
    case Op::fma: return bounds[0] * bounds[1] + bounds[2] < largest;
    default: return false;
    }
}

} // namespace

Value* float_arithmetic(WarpEmitter& e, Op operation, Values v, const FloatOptions& options) {
    Ir& ir = e.ir();
    llvm::SmallVector<Value*, 3> operands(v.begin(), v.end());
    if (options.ftz)
        for (Value*& operand : operands) operand = flush_subnormal(ir, operand);
    const bool chooses =
        operands[0]->getType()->getScalarType()->isDoubleTy() && e.options().approximation == Approximation::exact;
    if (chooses && operation == Op::div) hide_divisor(e, operands);
    Value* result = rounded(e, operation, operands, options.rounding);
    if (options.ftz) result = flush_result(e, operation, operands, result, options.rounding);
    if (chooses) result = last_nan(e, operation, operands, result);
    if (options.sat)
        result = saturate_unit(ir, result);
    else if (!is_surely_number(operation, operands))
        result = canonicalize(ir, result);
    return options.ftz ? mark_flushed(result) : result;
}

FloatOptions float_options(const Instruction& inst) {
    return {rounding_of(inst), inst.has(Word::ftz), inst.has(Word::sat)};
}

namespace {

// A number against which one ordered comparison decides everything: a NaN loses, and so does an equal operand, which
// has the same bits unless it is the other zero.
bool decides_alone(Value* value, bool is_max) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    if (!number || number->isNaN()) return false;
    return !number->isZero() || number->isNegative() != is_max;
}

} // namespace

Value* quieted(Ir& ir, Value* value) {
    Value* bits = to_bits(ir, value);
    return from_bits(ir, ir.CreateOr(bits, integer(bits, 0x8000000000000ull)), value);
}

Value* float_min_max(Ir& ir, Value* a, Value* b, const MinMaxOptions& options) {
    if (options.ftz) {
        a = flush_subnormal(ir, a);
        b = flush_subnormal(ir, b);
    }
    if (!options.nan && !options.abs && a->getType()->getScalarSizeInBits() >= 32) {
        if (decides_alone(a, options.is_max)) std::swap(a, b);
        if (decides_alone(b, options.is_max))
            return ir.CreateSelect(options.is_max ? ir.CreateFCmpOGT(a, b) : ir.CreateFCmpOLT(a, b), a, b);
    }
    Value* bits_a = to_bits(ir, a);
    Value* bits_b = to_bits(ir, b);
    Value* signs = ir.CreateXor(bits_a, bits_b);
    if (options.abs) {
        a = absolute(ir, a);
        b = absolute(ir, b);
        bits_a = to_bits(ir, a);
        bits_b = to_bits(ir, b);
    }
    // Half lanes compare as floats.
    bool is_double = a->getType()->getScalarType()->isDoubleTy();
    Value* key_a = is_double ? a : widen_to_float(ir, a);
    Value* key_b = is_double ? b : widen_to_float(ir, b);
    Value* first = options.is_max ? ir.CreateFCmpUGT(key_a, key_b) : ir.CreateFCmpULT(key_a, key_b);
    Value* picked = choose(ir, first, a, b);
    // Equal operands are the same bits or zeros of two signs: -0 is below +0.
    Value* merged = options.is_max ? ir.CreateAnd(bits_a, bits_b) : ir.CreateOr(bits_a, bits_b);
    picked = choose(ir, ir.CreateFCmpOEQ(key_a, key_b), from_bits(ir, merged, a), picked);
    // The unordered comparison above picked a; that is right unless a is the NaN.
    Value* nan_a = is_nan(ir, key_a);
    picked = choose(ir, nan_a, b, picked);
    if (options.xorsign) {
        Value* magnitude = ir.CreateAnd(to_bits(ir, picked),
                                        integer(bits_a, ~(1ull << (bits_a->getType()->getScalarSizeInBits() - 1))));
        Value* sign = ir.CreateAnd(signs, integer(signs, 1ull << (bits_a->getType()->getScalarSizeInBits() - 1)));
        picked = from_bits(ir, ir.CreateOr(magnitude, sign), picked);
    }
    Value* nan_b = is_nan(ir, key_b);
    Value* nan = options.nan ? ir.CreateOr(nan_a, nan_b) : ir.CreateAnd(nan_a, nan_b);
    if (!is_double) return choose(ir, nan, canonical_nan(picked), picked);
    // Two NaN doubles: the second one, quieted.
    return ir.CreateSelect(nan, quieted(ir, b), picked);
}

MinMaxOptions min_max_options(const Instruction& inst, bool is_max) {
    return {is_max, inst.has(Word::ftz), inst.has(Word::NaN), inst.has(Word::abs), inst.has(Word::xorsign)};
}

namespace {

void binary(WarpEmitter& e, const Instruction& inst, Op operation) {
    FloatOptions options = float_options(inst);
    e.map(inst, {Role::a, Role::b}, [&](Ir&, Values v) { return float_arithmetic(e, operation, v, options); });
}

// Two floats packed in b64.
void packed(WarpEmitter& e, const Instruction& inst, Op operation) {
    FloatOptions options = float_options(inst);
    auto build = [&](Ir& ir, Values v) {
        Value* halves[2];
        for (unsigned i = 0; i < 2; ++i) {
            llvm::SmallVector<Value*, 3> operands;
            for (Value* value : v) {
                Value* word = resize(ir, ir.CreateLShr(value, integer(value, 32 * i)), 32, false);
                operands.push_back(ir.CreateBitCast(word, typed(ir.getFloatTy(), word)));
            }
            halves[i] = resize(ir, to_bits(ir, float_arithmetic(e, operation, operands, options)), 64, false);
        }
        return ir.CreateOr(halves[0], ir.CreateShl(halves[1], integer(halves[1], 32)));
    };
    if (operation == Op::fma)
        e.map(inst, {Role::a, Role::b, Role::c}, build);
    else
        e.map(inst, {Role::a, Role::b}, build);
}

void ternary(WarpEmitter& e, const Instruction& inst) {
    FloatOptions options = float_options(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [&](Ir&, Values v) { return float_arithmetic(e, Op::fma, v, options); });
}

void square_root(WarpEmitter& e, const Instruction& inst) {
    FloatOptions options = float_options(inst);
    e.map(inst, {Role::a}, [&](Ir&, Values v) { return float_arithmetic(e, Op::sqrt, v, options); });
}

void reciprocal(WarpEmitter& e, const Instruction& inst) {
    FloatOptions options = float_options(inst);
    options.ftz &= inst.types[0] == ScalarType::f32; // ptxas takes .ftz for doubles too, and overlooks it
    e.map(inst, {Role::a}, [&](Ir&, Values v) { return float_arithmetic(e, Op::div, {real(v[0], 1), v[0]}, options); });
}

void min_max(WarpEmitter& e, const Instruction& inst, bool is_max) {
    MinMaxOptions options = min_max_options(inst, is_max);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) { return float_min_max(ir, v[0], v[1], options); });
}

void min_max_3(WarpEmitter& e, const Instruction& inst, bool is_max) {
    MinMaxOptions options = min_max_options(inst, is_max);
    e.map(inst, {Role::a, Role::b, Role::c},
          [=](Ir& ir, Values v) { return float_min_max(ir, float_min_max(ir, v[0], v[1], options), v[2], options); });
}

} // namespace

void add_f32(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::add);
}
void add_f64(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::add);
}
void add_f32x2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, Op::add);
}
void sub_f32(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::sub);
}
void sub_f64(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::sub);
}
void sub_f32x2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, Op::sub);
}
void mul_f32(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::mul);
}
void mul_f64(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::mul);
}
void mul_f32x2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, Op::mul);
}
void fma_f32(WarpEmitter& e, const Instruction& inst) {
    ternary(e, inst);
}
void fma_f64(WarpEmitter& e, const Instruction& inst) {
    ternary(e, inst);
}
void fma_f32x2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, Op::fma);
}
void div_f32(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::div);
}
void div_f64(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::div);
}
void rcp_f32(WarpEmitter& e, const Instruction& inst) {
    reciprocal(e, inst);
}
void rcp_f64(WarpEmitter& e, const Instruction& inst) {
    reciprocal(e, inst);
}
void sqrt_f32(WarpEmitter& e, const Instruction& inst) {
    square_root(e, inst);
}
void sqrt_f64(WarpEmitter& e, const Instruction& inst) {
    square_root(e, inst);
}

void min_float(WarpEmitter& e, const Instruction& inst) {
    min_max(e, inst, false);
}
void max_float(WarpEmitter& e, const Instruction& inst) {
    min_max(e, inst, true);
}
void min_float_3(WarpEmitter& e, const Instruction& inst) {
    min_max_3(e, inst, false);
}
void max_float_3(WarpEmitter& e, const Instruction& inst) {
    min_max_3(e, inst, true);
}

// The sign operations are arithmetic to the hardware: a NaN float becomes the canonical one, a NaN double is quieted
// and keeps its sign.
static Value* keep_nan(Ir& ir, Value* source, Value* result) {
    if (!source->getType()->getScalarType()->isDoubleTy()) return canonicalize(ir, result);
    return ir.CreateSelect(is_nan(ir, source), quieted(ir, source), result);
}

void abs_float(WarpEmitter& e, const Instruction& inst) {
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a},
          [=](Ir& ir, Values v) { return keep_nan(ir, v[0], absolute(ir, ftz ? flush_subnormal(ir, v[0]) : v[0])); });
}

void neg_float(WarpEmitter& e, const Instruction& inst) {
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a},
          [=](Ir& ir, Values v) { return keep_nan(ir, v[0], negate(ir, ftz ? flush_subnormal(ir, v[0]) : v[0])); });
}

void copysign(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b},
          [](Ir& ir, Values v) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, v[1], v[0]); });
}

void testp(WarpEmitter& e, const Instruction& inst) {
    Word test =
        inst.one_of({Word::finite, Word::infinite, Word::number, Word::notanumber, Word::normal, Word::subnormal});
    LaneValue result = e.apply({e.read(inst[Role::a])}, [=](Ir& ir, Values v) {
        Value* magnitude = absolute(ir, v[0]);
        bool is_double = v[0]->getType()->getScalarType()->isDoubleTy();
        Value* infinity = llvm::ConstantFP::getInfinity(v[0]->getType());
        Value* smallest_normal = real(v[0], is_double ? 0x1p-1022 : 0x1p-126);
        Value* zero = ir.CreateFCmpOEQ(magnitude, real(v[0], 0));
        Value* below_normal = ir.CreateFCmpOLT(magnitude, smallest_normal);
        Value* finite = ir.CreateFCmpOLT(magnitude, infinity);
        switch (test) {
        case Word::finite: return finite;
        case Word::infinite: return ir.CreateFCmpOEQ(magnitude, infinity);
        case Word::number: return ir.CreateFCmpORD(v[0], v[0]);
        case Word::notanumber: return is_nan(ir, v[0]);
        // Zero counts as normal.
        case Word::normal: return ir.CreateAnd(finite, ir.CreateOr(zero, ir.CreateNot(below_normal)));
        default: return ir.CreateAnd(below_normal, ir.CreateNot(zero));
        }
    });
    e.write(inst[Role::p], result);
}

} // namespace ptarmigan::translator::lower
