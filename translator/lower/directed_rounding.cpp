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

} // namespace

Value* directed(WarpEmitter& e, FloatOperation operation, Values operands, Rounding mode) {
    if (e.options().target.avx512) return embedded(e, operation, operands, mode);
    Ir& ir = e.ir();
    if (operands[0]->getType()->getScalarType()->isDoubleTy()) {
        static constexpr const char* names[] = {"add_round_f64", "sub_round_f64", "mul_round_f64",
                                                "fma_round_f64", "div_round_f64", "sqrt_round_f64"};
        return call_lanes(e, names[unsigned(operation)], operands, ir.getDoubleTy(), unsigned(mode));
    }
    Value* carrier = double_carrier(ir, operation, operands);
    Value* result = narrow_to_float(ir, carrier, mode);
    Value* nonzero = ir.CreateFCmpUNE(carrier, real(carrier, 0));
    return ir.CreateSelect(nonzero, result, fix_zero_sign(ir, operation, operands, result, mode));
}

} // namespace ptarmigan::translator::lower
