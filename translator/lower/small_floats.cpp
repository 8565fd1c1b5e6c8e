// SPDX-License-Identifier: Apache-2.0
// Conversions from and to the 8-, 6- and 4-bit floating formats (manual 9.7.9.21).
#include "translator/lower/conversion.h"

#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator::lower {

namespace {

/// A format of 1 sign bit, `exponent` and `mantissa` bits. Formats without NaN convert it to the largest number.
struct SmallFloat {
    unsigned exponent, mantissa, bias;
    unsigned largest; ///< code of the largest finite number
    unsigned nan;     ///< code that NaN converts to
    unsigned stride;  ///< bits that one number takes when packed

    unsigned sign_bit() const { return 1u << (exponent + mantissa); }
};

SmallFloat format_of(ScalarType type) {
    switch (type) {
    case ScalarType::e4m3x2: return {4, 3, 7, 0x7e, 0x7f, 8};
    case ScalarType::e5m2x2: return {5, 2, 15, 0x7b, 0x7f, 8};
    case ScalarType::e2m3x2: return {2, 3, 1, 0x1f, 0x1f, 8};
    case ScalarType::e3m2x2: return {3, 2, 3, 0x1f, 0x1f, 8};
    default: return {2, 1, 1, 0x07, 0x07, 4}; // e2m1x2
    }
}

/// Value of the finite code, as float.
double number(const SmallFloat& format, unsigned code) {
    unsigned field = code >> format.mantissa;
    double fraction = code & ((1u << format.mantissa) - 1);
    fraction /= 1u << format.mantissa;
    int exponent = field ? int(field) - int(format.bias) : 1 - int(format.bias);
    return __builtin_ldexp((field ? 1 : 0) + fraction, exponent);
}

// Rounds a float to nearest even; what is beyond the range becomes the largest finite number. Codes are i32 lanes.
Value* encode(Ir& ir, Value* value, const SmallFloat& format, bool relu) {
    Value* all_bits = to_bits(ir, value);
    Value* sign = ir.CreateSelect(ir.CreateICmpSLT(all_bits, integer(all_bits, 0)),
                                  integer(all_bits, format.sign_bit()), integer(all_bits, 0));
    Value* largest = real(value, number(format, format.largest));
    Value* magnitude = absolute(ir, value);
    magnitude = ir.CreateSelect(ir.CreateFCmpOLT(magnitude, largest), magnitude, largest);
    // Normal numbers: integer rounding of the mantissa, then the exponent is rebased.
    Value* bits = to_bits(ir, magnitude);
    unsigned dropped = 23 - format.mantissa;
    Value* last = ir.CreateAnd(ir.CreateLShr(bits, integer(bits, dropped)), integer(bits, 1));
    Value* rounded = ir.CreateAdd(bits, ir.CreateAdd(last, integer(bits, (1u << (dropped - 1)) - 1)));
    Value* normal = ir.CreateSub(ir.CreateLShr(rounded, integer(bits, dropped)),
                                 integer(bits, std::uint64_t(127 - format.bias) << format.mantissa));
    // Subnormal ones: multiples of the smallest.
    int unit_exponent = 1 - int(format.bias) - int(format.mantissa);
    Value* units = ir.CreateFMul(magnitude, real(magnitude, __builtin_ldexp(1.0, -unit_exponent)));
    units = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, units);
    Value* below = ir.CreateFCmpOLT(magnitude, real(magnitude, __builtin_ldexp(1.0, 1 - int(format.bias))));
    // Only small magnitudes are converted: others would overflow the conversion's range of definition.
    units = ir.CreateSelect(below, units, real(units, 0));
    Value* subnormal = ir.CreateFPToUI(units, bits->getType());
    Value* code = ir.CreateOr(ir.CreateSelect(below, subnormal, normal), sign);
    if (relu) code = ir.CreateSelect(ir.CreateICmpNE(sign, integer(sign, 0)), integer(sign, 0), code);
    return ir.CreateSelect(is_nan(ir, value), integer(code, format.nan), code);
}

// A code (i32 lanes) as half: exact.
Value* decode(WarpEmitter& e, Value* code, const SmallFloat& format, bool relu) {
    Ir& ir = e.ir();
    Value* magnitude = ir.CreateAnd(code, integer(code, format.sign_bit() - 1));
    // The code's fields at the places of float's, rescaled: subnormals come out right because float has room.
    Value* scaled = ir.CreateShl(magnitude, integer(code, 23 - format.mantissa));
    Value* number = ir.CreateBitCast(scaled, typed(ir.getFloatTy(), code));
    number = ir.CreateFMul(number, real(number, __builtin_ldexp(1.0, 127 - int(format.bias))));
    Value* negative = ir.CreateICmpNE(ir.CreateAnd(code, integer(code, format.sign_bit())), integer(code, 0));
    Value* result = ir.CreateSelect(negative, relu ? real(number, 0) : negate(ir, number), number);
    Value* half = ir.CreateFPTrunc(result, typed(ir.getHalfTy(), result));
    if (format.exponent + format.mantissa != 7) return half; // no infinity, no NaN
    unsigned first_nan = 0x7f;
    if (format.exponent == 5) {
        first_nan = 0x7d;
        Value* infinity = llvm::ConstantFP::getInfinity(half->getType());
        Value* minus = relu ? real(half, 0) : llvm::ConstantFP::getInfinity(half->getType(), true);
        Value* infinite = ir.CreateICmpEQ(magnitude, integer(code, 0x7c));
        half = ir.CreateSelect(infinite, ir.CreateSelect(negative, minus, infinity), half);
    }
    Value* nan = ir.CreateICmpUGE(magnitude, integer(code, first_nan));
    return ir.CreateSelect(nan, canonical_nan(half), half);
}

void to_small(WarpEmitter& e, const Instruction& inst) {
    SmallFloat format = format_of(inst.types[0]);
    bool relu = inst.has(Word::relu);
    bool packed_source = inst.types[1] == ScalarType::f16x2;
    unsigned result_bits = 2 * format.stride;
    auto build = [&](Ir& ir, Values v) {
        Value *high = v[0], *low = v.size() > 1 ? v[1] : nullptr;
        if (packed_source) {
            auto halves = unpack_halves(ir, v[0], ir.getHalfTy());
            low = widen_to_float(ir, halves.first);
            high = widen_to_float(ir, halves.second);
        }
        Value* low_code = encode(ir, low, format, relu);
        Value* high_code = encode(ir, high, format, relu);
        Value* both = ir.CreateOr(low_code, ir.CreateShl(high_code, integer(high_code, format.stride)));
        return resize(ir, both, result_bits, false);
    };
    if (packed_source) e.map(inst, {Role::a}, build);
    else e.map(inst, {Role::a, Role::b}, build);
}

void from_small(WarpEmitter& e, const Instruction& inst) {
    SmallFloat format = format_of(inst.types[1]);
    bool relu = inst.has(Word::relu);
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        Value* codes = resize(ir, v[0], 32, false);
        Value* mask = integer(codes, (1u << format.stride) - 1);
        Value* low = decode(e, ir.CreateAnd(codes, mask), format, relu);
        Value* high_code = ir.CreateAnd(ir.CreateLShr(codes, integer(codes, format.stride)), mask);
        return pack_halves(ir, low, decode(e, high_code, format, relu));
    });
}

// 2^(code - 127) as bfloat; 255 is NaN.
void from_scale(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        Value* codes = resize(ir, v[0], 32, false);
        auto one = [&](Value* code) {
            Value* bits = ir.CreateShl(code, integer(code, 7));
            bits = ir.CreateSelect(ir.CreateICmpEQ(code, integer(code, 0)), integer(code, 0x40), bits);
            return ir.CreateSelect(ir.CreateICmpEQ(code, integer(code, 255)), integer(code, 0x7fff), bits);
        };
        Value* low = one(ir.CreateAnd(codes, integer(codes, 255)));
        Value* high = one(ir.CreateLShr(codes, integer(codes, 8)));
        return ir.CreateOr(low, ir.CreateShl(high, integer(high, 16)));
    });
}

} // namespace

void cvt_narrow_float(WarpEmitter& e, const Instruction& inst) {
    if (inst.types[1] == ScalarType::ue8m0x2) return from_scale(e, inst);
    if (inst.types[0] == ScalarType::f16x2) return from_small(e, inst);
    to_small(e, inst);
}

} // namespace ptarmigan::translator::lower
