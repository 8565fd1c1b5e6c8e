// SPDX-License-Identifier: Apache-2.0
// Conversions (manual 9.7.9.21 and 9.7.9.22) between integers and the wide floating types. The small formats are in
// small_floats.cpp.
#include "translator/lower/conversion.h"

#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator::lower {

namespace {

namespace In = llvm::Intrinsic;

bool is_half(ScalarType type) {
    return type == ScalarType::f16 || type == ScalarType::bf16;
}

// Clamps an integer to the range of `to`, in its own width, and resizes it.
Value* saturate_integer(Ir& ir, Value* value, ScalarType from, ScalarType to) {
    unsigned from_bits = ptx::bit_size(from), to_bits = ptx::bit_size(to);
    bool from_signed = ptx::is_signed(from), to_signed = ptx::is_signed(to);
    unsigned from_magnitude = from_bits - from_signed, to_magnitude = to_bits - to_signed;
    if (from_signed && !to_signed) value = maximum(ir, value, integer(value, 0), true);
    if (from_signed && to_signed && to_bits < from_bits)
        value = maximum(ir, value, integer(value, ~0ull << to_magnitude), true);
    if (to_magnitude < from_magnitude)
        value = minimum(ir, value, integer(value, ~(~0ull << to_magnitude)), from_signed);
    return resize(ir, value, to_bits, from_signed);
}

struct IntegerParts {
    Value *high, *low; ///< doubles whose exact sum is the integer
};
IntegerParts split_integer(Ir& ir, Value* value, bool is_signed) {
    llvm::Type* type = typed(ir.getDoubleTy(), value);
    Value* high = is_signed ? ir.CreateAShr(value, integer(value, 32)) : ir.CreateLShr(value, integer(value, 32));
    high = is_signed ? ir.CreateSIToFP(high, type) : ir.CreateUIToFP(high, type);
    Value* low = ir.CreateUIToFP(ir.CreateAnd(value, integer(value, 0xffffffffu)), type);
    return {ir.CreateFMul(high, real(high, 0x1p32)), low};
}

// An integer as double, exact or with a sticky last bit.
Value* integer_carrier(Ir& ir, Value* value, bool is_signed) {
    llvm::Type* type = typed(ir.getDoubleTy(), value);
    if (value->getType()->getScalarSizeInBits() < 64)
        return is_signed ? ir.CreateSIToFP(value, type) : ir.CreateUIToFP(value, type);
    IntegerParts parts = split_integer(ir, value, is_signed);
    Value* sum = ir.CreateFAdd(parts.high, parts.low);
    return sticky(ir, sum, sum_error(ir, parts.high, parts.low, sum));
}

Value* integer_to_double(Ir& ir, Value* value, bool is_signed, Rounding mode) {
    llvm::Type* type = typed(ir.getDoubleTy(), value);
    Value* nearest = is_signed ? ir.CreateSIToFP(value, type) : ir.CreateUIToFP(value, type);
    if (mode == Rounding::nearest_even || value->getType()->getScalarSizeInBits() < 64) return nearest;
    IntegerParts parts = split_integer(ir, value, is_signed);
    return step_by_error(ir, nearest, sum_error(ir, parts.high, parts.low, nearest), mode);
}

Value* integer_to_float(WarpEmitter& e, Value* value, ScalarType from, ScalarType to, Rounding mode) {
    Ir& ir = e.ir();
    bool sign = ptx::is_signed(from);
    if (to == ScalarType::f64) return integer_to_double(ir, value, sign, mode);
    if (is_half(to)) return narrow_to_half(ir, integer_carrier(ir, value, sign), e.type(to), mode);
    if (mode != Rounding::nearest_even) return narrow_to_float(ir, integer_carrier(ir, value, sign), mode);
    llvm::Type* type = typed(ir.getFloatTy(), value);
    return sign ? ir.CreateSIToFP(value, type) : ir.CreateUIToFP(value, type);
}

Value* to_integral(Ir& ir, Value* value, const Instruction& inst) {
    switch (inst.one_of({Word::rni, Word::rzi, Word::rmi, Word::rpi})) {
    case Word::rni: return ir.CreateUnaryIntrinsic(In::roundeven, value);
    case Word::rzi: return ir.CreateUnaryIntrinsic(In::trunc, value);
    case Word::rmi: return ir.CreateUnaryIntrinsic(In::floor, value);
    case Word::rpi: return ir.CreateUnaryIntrinsic(In::ceil, value);
    default: return value;
    }
}

// `value`, which is integral, NaN or infinite, as an integer of the type `to` (32 or 64 bits), clamped to its range;
// NaN gives zero. Not llvm.fptosi.sat: LLVM takes it apart lane by lane. Conversions out of range are poison, and
// discarded.
Value* saturating_conversion(Ir& ir, Value* value, unsigned bits, bool is_signed) {
    llvm::Type* type = typed(ir.getIntNTy(bits), value);
    Value* limit = real(value, __builtin_ldexp(1.0, int(bits) - is_signed));
    Value* too_large = ir.CreateFCmpOGE(value, limit);
    if (!is_signed) {
        Value* result = ir.CreateFPToUI(value, type);
        result = ir.CreateSelect(ir.CreateFCmpOGT(value, real(value, 0)), result, integer(result, 0));
        return ir.CreateSelect(too_large, integer(result, ~0ull), result);
    }
    Value* result = ir.CreateFPToSI(value, type);
    std::uint64_t lowest = ~0ull << (bits - 1);
    result = ir.CreateSelect(ir.CreateFCmpOLT(value, negate(ir, limit)), integer(result, lowest), result);
    result = ir.CreateSelect(is_nan(ir, value), integer(result, 0), result);
    return ir.CreateSelect(too_large, integer(result, ~lowest), result);
}

// Clamped to the range of `to`; NaN gives zero, or the top bit alone where double or 64 bits are involved.
Value* float_to_integer(WarpEmitter& e, const Instruction& inst, Value* value, ScalarType from, ScalarType to) {
    Ir& ir = e.ir();
    if (is_half(from)) value = widen_to_float(ir, value);
    unsigned bits = ptx::bit_size(to);
    bool sign = ptx::is_signed(to);
    // Narrow results through 32 bits: vectors convert to 32 and 64.
    unsigned work = std::max(bits, 32u);
    const Word mode = inst.one_of({Word::rni, Word::rzi, Word::rmi, Word::rpi});
    Value* result = nullptr;
    if (work == 32 && (mode == Word::rni || mode == Word::rzi))
        result = convert_by_instruction(e, value, mode == Word::rni, sign);
    if (result && bits == 32) return result;
    if (!result) {
        value = to_integral(ir, value, inst);
        result = saturating_conversion(ir, value, work, sign);
    }
    if (work != bits) result = saturate_integer(ir, result, sign ? ScalarType::s32 : ScalarType::u32, to);
    if (from != ScalarType::f64 && bits < 64) return result;
    return ir.CreateSelect(is_nan(ir, value), integer(result, 1ull << (bits - 1)), result);
}

// float and double to float, half and bfloat.
Value* float_to_float(WarpEmitter& e, const Instruction& inst, Value* value, ScalarType from, ScalarType to) {
    Ir& ir = e.ir();
    Rounding mode = rounding_of(inst);
    if (from == to) {
        // Halves round to integral as floats, which is exact.
        if (!is_half(from)) return to_integral(ir, value, inst);
        Value* integral = to_integral(ir, widen_to_float(ir, value), inst);
        return narrow_to_half(ir, integral, e.type(to), Rounding::nearest_even);
    }
    if (is_half(from)) value = widen_to_float(ir, value);
    bool is_double = value->getType()->getScalarType()->isDoubleTy();
    if (is_half(to)) return narrow_to_half(ir, value, e.type(to), mode);
    if (to == ScalarType::f64) return is_double ? value : ir.CreateFPExt(value, typed(ir.getDoubleTy(), value));
    return is_double ? narrow_to_float(ir, value, mode) : value;
}

// A double about to be narrowed, out of LLVM's sight: what was widened before would come out as it went in, a
// signalling NaN still signalling (llvm/drop_idle_fences). No instruction.
Value* hide_widening(Ir& ir, Value* value) {
    return ir.CreateIntrinsic(In::arithmetic_fence, {value->getType()}, {value});
}

// A float result of double is flushed by its magnitude before the subnormal rounding, as float_arithmetic does.
Value* flush_narrowed(Ir& ir, Value* exact, Value* result, Rounding mode) {
    Value* scaled = narrow_to_float(ir, ir.CreateFMul(exact, real(exact, 0x1p24)), mode);
    Value* tiny = ir.CreateFCmpOLT(absolute(ir, scaled), real(scaled, 0x1p-102));
    Value* zero = ir.CreateAnd(to_bits(ir, result), integer(to_bits(ir, result), 0x80000000u));
    return ir.CreateSelect(tiny, from_bits(ir, zero, result), result);
}

} // namespace

Value* clamp_finite(Ir& ir, Value* value, Value* largest) {
    Value* bits = to_bits(ir, value);
    std::uint64_t sign_bit = 1ull << (bits->getType()->getScalarSizeInBits() - 1);
    Value* sign = ir.CreateAnd(bits, integer(bits, sign_bit));
    Value* infinity = to_bits(ir, llvm::ConstantFP::getInfinity(value->getType()));
    Value* infinite = ir.CreateICmpEQ(ir.CreateXor(bits, sign), infinity);
    Value* bounded = from_bits(ir, ir.CreateOr(sign, to_bits(ir, largest)), value);
    return choose(ir, infinite, bounded, value);
}

Value* clamp_relu(Ir& ir, Value* value) {
    Value* key = value->getType()->getScalarSizeInBits() == 16 ? widen_to_float(ir, value) : value;
    return choose(ir, ir.CreateFCmpUGT(key, real(key, 0)), value, real(value, 0));
}

Value* largest_finite(Value* like) {
    const llvm::fltSemantics& semantics = like->getType()->getScalarType()->getFltSemantics();
    return llvm::ConstantFP::get(like->getType(), llvm::APFloat::getLargest(semantics));
}

void cvt_int(WarpEmitter& e, const Instruction& inst) {
    ScalarType to = inst.types[0], from = inst.types[1];
    bool sat = inst.has(Word::sat);
    e.map(inst, {Role::a}, [=](Ir& ir, Values v) {
        return sat ? saturate_integer(ir, v[0], from, to) : resize(ir, v[0], ptx::bit_size(to), ptx::is_signed(from));
    });
}

void cvt_float(WarpEmitter& e, const Instruction& inst) {
    ScalarType to = inst.types[0], from = inst.types[1];
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) -> Value* {
        Value* value = v[0];
        // .ftz speaks of single-precision inputs and results only.
        // Halves keep subnormal sources: rounded up, the smallest float is the smallest half.
        if (ftz && from == ScalarType::f32 && to != ScalarType::f16) value = flush_subnormal(ir, value);
        if (ftz && from == ScalarType::f32 && to == ScalarType::f64) value = canonicalize(ir, value);
        if (!ptx::is_float(to)) return float_to_integer(e, inst, value, from, to);
        if (from == ScalarType::f64 && to != ScalarType::f64) value = hide_widening(ir, value);
        Value* result = ptx::is_float(from) ? float_to_float(e, inst, value, from, to)
                                            : integer_to_float(e, value, from, to, rounding_of(inst));
        if (ftz && to == ScalarType::f32)
            result = from == ScalarType::f64 ? flush_narrowed(ir, value, result, rounding_of(inst))
                                             : flush_subnormal(ir, result);
        if (inst.has(Word::sat)) return saturate_unit(ir, result);
        // NaN doubles keep their sign and the top of their payload; bfloats are the upper half of a float; float to
        // float without further words is a move.
        bool moved = from == ScalarType::bf16 && to == ScalarType::f32 && !ftz;
        moved |= from == to && !ftz && result == value;
        if (from != ScalarType::f64 && !moved) result = canonicalize(ir, result);
        if (from == ScalarType::f64 && to == ScalarType::bf16) {
            Value* narrow = ir.CreateFPTrunc(value, typed(ir.getFloatTy(), value));
            Value* upper = resize(ir, ir.CreateLShr(to_bits(ir, narrow), integer(to_bits(ir, narrow), 16)), 16, false);
            result = choose(ir, is_nan(ir, value), from_bits(ir, upper, result), result);
        }
        if (inst.has(Word::satfinite)) result = clamp_finite(ir, result, largest_finite(result));
        return inst.has(Word::relu) ? clamp_relu(ir, result) : result;
    });
}

void cvt_pack2(WarpEmitter& e, const Instruction& inst) {
    llvm::Type* half = half_type_of(e, inst.types[0]);
    e.map(inst, {Role::a, Role::b}, [&](Ir& ir, Values v) {
        auto convert = [&](Value* value) {
            Value* result = canonicalize(ir, narrow_to_half(ir, value, half, rounding_of(inst)));
            if (inst.has(Word::satfinite)) result = clamp_finite(ir, result, largest_finite(result));
            return inst.has(Word::relu) ? clamp_relu(ir, result) : result;
        };
        Value* low = convert(v[1]);
        return pack_halves(ir, low, convert(v[0]));
    });
}

// tf32 is float with the low 13 bits of the mantissa zero.
void cvt_tf32(WarpEmitter& e, const Instruction& inst) {
    Word mode = inst.one_of({Word::rna, Word::rn, Word::rz});
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        Value* bits = to_bits(ir, v[0]);
        Value* addend = integer(bits, 0);
        if (mode == Word::rna) addend = integer(bits, 0x1000);
        if (mode == Word::rn)
            addend = ir.CreateAdd(ir.CreateAnd(ir.CreateLShr(bits, integer(bits, 13)), integer(bits, 1)),
                                  integer(bits, 0xfff));
        Value* rounded = ir.CreateAnd(ir.CreateAdd(bits, addend), integer(bits, 0xffffe000u));
        // Behind .rna the hardware's code knows no NaNs: what is not finite stays as it is but for the lower bits, and
        // .satfinite takes 0x2000 away from it.
        if (mode == Word::rna) {
            Value* cut = ir.CreateAnd(bits, integer(bits, 0xffffe000u));
            Value* finite = ir.CreateFCmpOLT(absolute(ir, v[0]), llvm::ConstantFP::getInfinity(v[0]->getType()));
            rounded = ir.CreateSelect(finite, rounded, cut);
            if (!inst.has(Word::satfinite)) return rounded;
            Value* magnitude = absolute(ir, from_bits(ir, rounded, v[0]));
            finite = ir.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(v[0]->getType()));
            return ir.CreateSelect(finite, rounded, ir.CreateSub(rounded, integer(bits, 0x2000)));
        }
        Value* result = from_bits(ir, rounded, v[0]);
        if (inst.has(Word::satfinite)) result = clamp_finite(ir, result, real_bits(result, 0x7f7fe000u));
        if (inst.has(Word::relu)) result = clamp_relu(ir, result);
        return ir.CreateSelect(is_nan(ir, v[0]), integer(bits, 0x7fffe000u), to_bits(ir, result));
    });
}

void cvt_pack(WarpEmitter& e, const Instruction& inst) {
    unsigned bits = 16;
    bool sign = false;
    if (ptx::bit_size(inst.types[0]) == 8) bits = 8;
    if (inst.has(Word::u4) || inst.has(Word::s4)) bits = 4;
    if (inst.has(Word::u2) || inst.has(Word::s2)) bits = 2;
    if (bits >= 8)
        sign = ptx::is_signed(inst.types[0]);
    else
        sign = inst.has(Word::s4) || inst.has(Word::s2);
    auto build = [=](Ir& ir, Values v) {
        std::uint64_t low = sign ? ~0ull << (bits - 1) : 0;
        std::uint64_t high = sign ? (1ull << (bits - 1)) - 1 : (1ull << bits) - 1;
        auto field = [&](Value* value) {
            value = maximum(ir, value, integer(value, low), true);
            value = minimum(ir, value, integer(value, high), true);
            return ir.CreateAnd(value, integer(value, (1ull << bits) - 1));
        };
        Value* a = ir.CreateShl(field(v[0]), integer(v[0], bits));
        Value* result = ir.CreateOr(a, field(v[1]));
        return v.size() > 2 ? ir.CreateOr(result, ir.CreateShl(v[2], integer(v[2], 2 * bits))) : result;
    };
    if (inst[Role::c].kind == ptx::Operand::Kind::none)
        e.map(inst, {Role::a, Role::b}, build);
    else
        e.map(inst, {Role::a, Role::b, Role::c}, build);
}

} // namespace ptarmigan::translator::lower
