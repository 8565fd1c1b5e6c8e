// SPDX-License-Identifier: Apache-2.0
// Float and double operations rounded toward zero, down or up. AVX-512 has them as instructions with embedded rounding.
// Elsewhere float goes through double with a sticky last bit, which loses nothing, and double through the exact error
// of the operation, computed by the builtins.
#include "translator/lower/lane_calls.h"
#include "translator/lower/lane_math.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace ptarmigan::translator::lower {

namespace {

namespace In = llvm::Intrinsic;

In::ID embedded_rounding_intrinsic(FloatOperation operation, bool is_double) {
    switch (operation) {
    case FloatOperation::add: return is_double ? In::x86_avx512_add_pd_512 : In::x86_avx512_add_ps_512;
    case FloatOperation::sub: return is_double ? In::x86_avx512_sub_pd_512 : In::x86_avx512_sub_ps_512;
    case FloatOperation::mul: return is_double ? In::x86_avx512_mul_pd_512 : In::x86_avx512_mul_ps_512;
    case FloatOperation::div: return is_double ? In::x86_avx512_div_pd_512 : In::x86_avx512_div_ps_512;
    case FloatOperation::fma: return is_double ? In::x86_avx512_vfmadd_pd_512 : In::x86_avx512_vfmadd_ps_512;
    case FloatOperation::sqrt: return is_double ? In::x86_avx512_sqrt_pd_512 : In::x86_avx512_sqrt_ps_512;
    }
    return In::not_intrinsic;
}

// _MM_FROUND_NO_EXC with the mode of the instruction encoding.
unsigned embedded_rounding(Rounding mode) {
    switch (mode) {
    case Rounding::nearest_even: return 8;
    case Rounding::down: return 9;
    case Rounding::up: return 10;
    case Rounding::toward_zero: return 11;
    }
    return 8;
}

Value* embedded(WarpEmitter& e, FloatOperation operation, Values operands, Rounding mode) {
    bool is_double = operands[0]->getType()->getScalarType()->isDoubleTy();
    return in_chunks(e.ir(), operands, is_double ? 8 : 16, [&](Ir& ir, Values chunk) -> Value* {
        llvm::SmallVector<Value*, 4> arguments(chunk.begin(), chunk.end());
        arguments.push_back(ir.getInt32(embedded_rounding(mode)));
        return ir.CreateIntrinsic(embedded_rounding_intrinsic(operation, is_double), {}, arguments);
    });
}

// The result in double, exact or with a sticky last bit, so that one more rounding to float is right. Products of two
// floats are exact; quotients and roots of floats never lie on or next to a float or a midpoint unless they are one.
Value* double_carrier(Ir& ir, FloatOperation operation, Values v) {
    auto wide = [&](Value* value) { return ir.CreateFPExt(value, typed(ir.getDoubleTy(), value)); };
    auto sum = [&](Value* a, Value* b) {
        Value* rounded = ir.CreateFAdd(a, b);
        return sticky(ir, rounded, sum_error(ir, a, b, rounded));
    };
    switch (operation) {
    case FloatOperation::add: return sum(wide(v[0]), wide(v[1]));
    case FloatOperation::sub: return sum(wide(v[0]), ir.CreateFNeg(wide(v[1])));
    case FloatOperation::mul: return ir.CreateFMul(wide(v[0]), wide(v[1]));
    case FloatOperation::fma: return sum(ir.CreateFMul(wide(v[0]), wide(v[1])), wide(v[2]));
    case FloatOperation::div: return ir.CreateFDiv(wide(v[0]), wide(v[1]));
    case FloatOperation::sqrt: return ir.CreateUnaryIntrinsic(In::sqrt, wide(v[0]));
    }
    return nullptr;
}

// x + (-x) is -0 when rounding down; the carrier, rounded to nearest, says +0. Sums of two zeros keep their sign rule:
// only an exact cancellation of different signs changes.
Value* fix_zero_sign(Ir& ir, FloatOperation operation, Values v, Value* result, Rounding mode) {
    if (mode != Rounding::down) return result;
    auto sign = [&](Value* value) { return to_bits(ir, value); };
    Value *left, *right;
    switch (operation) {
    case FloatOperation::add: left = sign(v[0]), right = sign(v[1]); break;
    case FloatOperation::sub: left = sign(v[0]), right = sign(ir.CreateFNeg(v[1])); break;
    case FloatOperation::fma: left = ir.CreateXor(sign(v[0]), sign(v[1])), right = sign(v[2]); break;
    default: return result;
    }
    Value* either_negative = ir.CreateICmpSLT(ir.CreateOr(left, right), integer(left, 0));
    // A product that underflowed to zero in float is not zero in the carrier, so result == 0 here means exact zero or
    // a rounded tiny value, which keeps its own sign: +0 only.
    Value* zero = ir.CreateICmpEQ(to_bits(ir, result), integer(left, 0));
    Value* exact_zero = ir.CreateAnd(zero, either_negative);
    return ir.CreateSelect(exact_zero, real(result, -0.0), result);
}

/// a * b + c where c is a constant at least twice the product: the sum's rounding error has the sign of a * b + (c -
/// the nearest sum), where that difference is exact (Sterbenz) and the product is no less than a float can be. Null for
/// others. expf rounds its exponent so.
Value* dominated_sum(Ir& ir, Values v, Rounding mode) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(v[2]);
    if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    const std::optional<double> a = magnitude_bound(v[0]), b = magnitude_bound(v[1]), c = magnitude_bound(v[2]);
    if (!number || !a || !b || !c) return nullptr;
    // Constants are their own bound, and all but one factor are 1 or more.
    const auto is_whole = [](Value* factor) {
        return llvm::isa<llvm::Constant>(factor) && *magnitude_bound(factor) >= 1;
    };
    if (!is_whole(v[0]) && !is_whole(v[1])) return nullptr;
    if (*a * *b * 2 > *c || *c < 0x1p-60 || *c > 0x1p100) return nullptr;
    llvm::Type* type = v[0]->getType();
    Value* nearest = ir.CreateIntrinsic(In::fma, {type}, {v[0], v[1], v[2]});
    Value* error = ir.CreateIntrinsic(In::fma, {type}, {v[0], v[1], ir.CreateFSub(v[2], nearest)});
    // The result has the sign of c; down, or up, is a step of its magnitude.
    const bool negative = number->isNegative();
    const bool lowers = mode == Rounding::down || (mode == Rounding::toward_zero && !negative);
    Value* wrong = lowers ? ir.CreateFCmpOLT(error, real(error, 0)) : ir.CreateFCmpOGT(error, real(error, 0));
    Value* stepped = lowers == negative ? next_away_from_zero(ir, nearest) : next_toward_zero(ir, nearest);
    return ir.CreateSelect(wrong, stepped, nearest);
}

} // namespace

Value* directed(WarpEmitter& e, FloatOperation operation, Values operands, Rounding mode) {
    if (e.options().target.avx512) return embedded(e, operation, operands, mode);
    Ir& ir = e.ir();
    if (operands[0]->getType()->getScalarType()->isDoubleTy()) {
        static constexpr const char* names[] = {"add_round_f64", "sub_round_f64", "mul_round_f64",
                                                "fma_round_f64", "div_round_f64", "sqrt_round_f64"};
        return call_lanes(e, names[unsigned(operation)], operands, ir.getDoubleTy(), unsigned(mode));
    }
    if (operation == FloatOperation::fma)
        if (Value* sum = dominated_sum(ir, operands, mode)) return sum;
    Value* carrier = double_carrier(ir, operation, operands);
    Value* result = narrow_to_float(ir, carrier, mode);
    Value* nonzero = ir.CreateFCmpUNE(carrier, real(carrier, 0));
    return ir.CreateSelect(nonzero, result, fix_zero_sign(ir, operation, operands, result, mode));
}

} // namespace ptarmigan::translator::lower
