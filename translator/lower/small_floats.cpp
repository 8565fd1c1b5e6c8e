// SPDX-License-Identifier: Apache-2.0
// Conversions from and to the 8-, 6- and 4-bit floating formats (manual 9.7.9.21).
#include "translator/lower/conversion.h"

#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator::lower {

SmallFloat small_float(ScalarType type) {
    switch (type) {
    case ScalarType::e4m3x2:
    case ScalarType::e4m3x4: return {4, 3, 7, 0x7e, 0x7f, 8};
    case ScalarType::e5m2x2:
    case ScalarType::e5m2x4: return {5, 2, 15, 0x7b, 0x7f, 8};
    case ScalarType::e2m3x2:
    case ScalarType::e2m3x4: return {2, 3, 1, 0x1f, 0x1f, 8};
    case ScalarType::e3m2x2:
    case ScalarType::e3m2x4: return {3, 2, 3, 0x1f, 0x1f, 8};
    default: return {2, 1, 1, 0x07, 0x07, 4}; // e2m1x2
    }
}

namespace {

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

// A code (i32 lanes) as float: exact.
Value* decode(Ir& ir, Value* code, const SmallFloat& format) {
    Value* magnitude = ir.CreateAnd(code, integer(code, format.sign_bit() - 1));
    // The code's fields at the places of float's, rescaled: subnormals come out right because float has room.
    Value* scaled = ir.CreateShl(magnitude, integer(code, 23 - format.mantissa));
    Value* number = ir.CreateBitCast(scaled, typed(ir.getFloatTy(), code));
    number = ir.CreateFMul(number, real(number, __builtin_ldexp(1.0, 127 - int(format.bias))));
    bool has_nan = format.exponent + format.mantissa == 7, has_infinity = format.exponent == 5;
    if (has_infinity)
        number = ir.CreateSelect(ir.CreateICmpEQ(magnitude, integer(code, 0x7c)),
                                 llvm::ConstantFP::getInfinity(number->getType()), number);
    Value* negative = ir.CreateICmpNE(ir.CreateAnd(code, integer(code, format.sign_bit())), integer(code, 0));
    number = ir.CreateSelect(negative, negate(ir, number), number);
    if (!has_nan) return number;
    Value* nan = ir.CreateICmpUGE(magnitude, integer(code, has_infinity ? 0x7d : 0x7f));
    return ir.CreateSelect(nan, canonical_nan(number), number);
}

// A float to half or bfloat, with the words that its instruction has.
Value* finish(Ir& ir, const Instruction& inst, Value* number, llvm::Type* half) {
    if (inst.has(Word::relu)) number = clamp_relu(ir, number);
    Value* result = canonicalize(ir, narrow_to_half(ir, number, half, Rounding::nearest_even));
    return inst.has(Word::satfinite) ? clamp_finite(ir, result, largest_finite(result)) : result;
}

/// Low and high elements of packed operands.
struct Pair {
    Value *low, *high;
};

/// The `bits` low and the next `bits` bits of a packed operand, as i32 lanes.
Pair split(Ir& ir, Value* packed, unsigned bits) {
    Value* word = resize(ir, packed, 32, false);
    Value* mask = integer(word, (1u << bits) - 1);
    return {ir.CreateAnd(word, mask), ir.CreateAnd(ir.CreateLShr(word, integer(word, bits)), mask)};
}

Value* join(Ir& ir, Value* low, Value* high, unsigned bits) {
    return resize(ir, ir.CreateOr(low, ir.CreateShl(high, integer(high, bits))), 2 * bits, false);
}

/// 2^(code - 127), or 2^(127 - code) for divisors, as float; 255 is NaN.
Value* scale_factor(Ir& ir, Value* code, bool divisor) {
    Value* nan = ir.CreateICmpEQ(code, integer(code, 255));
    if (divisor) code = ir.CreateSub(integer(code, 254), code);
    Value* bits = ir.CreateShl(code, integer(code, 23));
    bits = ir.CreateSelect(ir.CreateICmpEQ(code, integer(code, 0)), integer(code, 0x00400000), bits);
    Value* factor = ir.CreateBitCast(bits, typed(ir.getFloatTy(), code));
    return ir.CreateSelect(nan, canonical_nan(factor), factor);
}

/// Both elements of the source, scaled, as floats.
struct Source {
    Pair numbers;
    Pair factors{}; ///< null without a scale-factor
};

void scale(Ir& ir, Source& source) {
    if (!source.factors.low) return;
    source.numbers.low = ir.CreateFMul(source.numbers.low, source.factors.low);
    source.numbers.high = ir.CreateFMul(source.numbers.high, source.factors.high);
}

/// Reads what all the conversions of packed numbers have: a, or a (high) and b (low), and scale-a.
LaneValue convert(WarpEmitter& e, const Instruction& inst, bool divisor, const std::function<Pair(Ir&, Value*)>& unpack,
                  const std::function<Value*(Ir&, Pair)>& build) {
    bool pair = inst[Role::b].kind != ptx::Operand::Kind::none;
    bool scaled = inst[Role::scale_a].kind != ptx::Operand::Kind::none;
    auto all = [&](Ir& ir, Values v) {
        Source source{pair ? Pair{v[1], v[0]} : unpack(ir, v[0])};
        if (scaled) {
            Pair codes = split(ir, v.back(), 8);
            source.factors = {scale_factor(ir, codes.low, divisor), scale_factor(ir, codes.high, divisor)};
        }
        scale(ir, source);
        return build(ir, source.numbers);
    };
    LaneValue a = e.read(inst[Role::a]);
    if (pair && scaled) return e.apply({a, e.read(inst[Role::b]), e.read(inst[Role::scale_a])}, all);
    if (pair) return e.apply({a, e.read(inst[Role::b])}, all);
    return scaled ? e.apply({a, e.read(inst[Role::scale_a])}, all) : e.apply({a}, all);
}

Pair widen_halves(WarpEmitter& e, const Instruction& inst, Value* packed) {
    Ir& ir = e.ir();
    auto halves = unpack_halves(ir, packed, half_type_of(e, inst.types[1]));
    return {widen_to_float(ir, halves.first), widen_to_float(ir, halves.second)};
}

void to_small(WarpEmitter& e, const Instruction& inst) {
    SmallFloat format = small_float(inst.types[0]);
    bool relu = inst.has(Word::relu);
    e.write(inst[Role::d], convert(
                               e, inst, true, [&](Ir&, Value* a) { return widen_halves(e, inst, a); },
                               [&](Ir& ir, Pair numbers) {
                                   return join(ir, encode(ir, numbers.low, format, relu),
                                               encode(ir, numbers.high, format, relu), format.stride);
                               }));
}

void from_small(WarpEmitter& e, const Instruction& inst, const std::function<Value*(Ir&, Value*)>& element,
                unsigned bits) {
    llvm::Type* half = half_type_of(e, inst.types[0]);
    auto unpack = [&](Ir& ir, Value* packed) {
        Pair codes = split(ir, packed, bits);
        return Pair{element(ir, codes.low), element(ir, codes.high)};
    };
    e.write(inst[Role::d], convert(e, inst, false, unpack, [&](Ir& ir, Pair numbers) {
                return pack_halves(ir, finish(ir, inst, numbers.low, half), finish(ir, inst, numbers.high, half));
            }));
}

// --- s2f6: signed bytes, multiples of 1/64 -----------------------------------------------------------------------

// NaN gives the largest number.
Value* encode_fixed(Ir& ir, Value* value, bool relu) {
    if (relu) value = clamp_relu(ir, value);
    Value* units = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, ir.CreateFMul(value, real(value, 64)));
    units = ir.CreateSelect(ir.CreateFCmpOLT(units, real(units, 127)), units, real(units, 127));
    units = ir.CreateSelect(ir.CreateFCmpOGT(units, real(units, -128)), units, real(units, -128));
    Value* code = ir.CreateFPToSI(units, typed(ir.getInt32Ty(), units));
    return ir.CreateAnd(code, integer(code, 255));
}

Value* decode_fixed(Ir& ir, Value* code) {
    Value* units = ir.CreateAShr(ir.CreateShl(code, integer(code, 24)), integer(code, 24));
    Value* number = ir.CreateSIToFP(units, typed(ir.getFloatTy(), code));
    return ir.CreateFMul(number, real(number, 0x1p-6));
}

void to_fixed(WarpEmitter& e, const Instruction& inst) {
    bool relu = inst.has(Word::relu);
    e.write(inst[Role::d], convert(
                               e, inst, true, [&](Ir&, Value* a) { return widen_halves(e, inst, a); },
                               [&](Ir& ir, Pair numbers) {
                                   return join(ir, encode_fixed(ir, numbers.low, relu),
                                               encode_fixed(ir, numbers.high, relu), 8);
                               }));
}

// --- ue8m0: powers of two ----------------------------------------------------------------------------------------

// The exponent of the magnitude; the sign is ignored, as by the emulation in CUDA's cuda_fp8.hpp.
Value* encode_scale(Ir& ir, Value* value, const Instruction& inst) {
    Value* bits = ir.CreateAnd(to_bits(ir, value), integer(to_bits(ir, value), 0x7fffffff));
    Value* code = ir.CreateLShr(bits, integer(bits, 23));
    Value* infinity = integer(bits, 0x7f800000);
    if (inst.has(Word::rp)) {
        // Everything up to 2^-127 is the smallest number.
        Value* inexact = ir.CreateICmpNE(ir.CreateAnd(bits, integer(bits, 0x007fffff)), integer(bits, 0));
        Value* above = ir.CreateAnd(inexact, ir.CreateICmpUGT(bits, integer(bits, 0x00400000)));
        above = ir.CreateAnd(above, ir.CreateICmpULT(bits, infinity));
        code = ir.CreateAdd(code, ir.CreateZExt(above, bits->getType()));
    }
    if (!inst.has(Word::satfinite)) return code;
    Value* number = ir.CreateICmpULE(bits, infinity);
    return ir.CreateSelect(number, minimum(ir, code, integer(code, 254), false), code);
}

void to_scale(WarpEmitter& e, const Instruction& inst) {
    e.write(inst[Role::d], convert(
                               e, inst, true, [&](Ir&, Value* a) { return widen_halves(e, inst, a); },
                               [&](Ir& ir, Pair numbers) {
                                   return join(ir, encode_scale(ir, numbers.low, inst),
                                               encode_scale(ir, numbers.high, inst), 8);
                               }));
}

} // namespace

void cvt_narrow_float(WarpEmitter& e, const Instruction& inst) {
    switch (inst.types[0]) {
    case ScalarType::ue8m0x2: return to_scale(e, inst);
    case ScalarType::s2f6x2: return to_fixed(e, inst);
    case ScalarType::f16x2:
    case ScalarType::bf16x2: break;
    default: return to_small(e, inst);
    }
    if (inst.types[1] == ScalarType::ue8m0x2)
        return from_small(
            e, inst, [](Ir& ir, Value* code) { return scale_factor(ir, code, false); }, 8);
    if (inst.types[1] == ScalarType::s2f6x2) return from_small(e, inst, decode_fixed, 8);
    SmallFloat format = small_float(inst.types[1]);
    from_small(
        e, inst, [=](Ir& ir, Value* code) { return decode(ir, code, format); }, format.stride);
}

} // namespace ptarmigan::translator::lower
