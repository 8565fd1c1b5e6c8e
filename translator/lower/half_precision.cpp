// SPDX-License-Identifier: Apache-2.0
// Half precision, f16 and bf16, scalar and packed (manual 9.7.4), and its comparisons (9.7.7).
#include "translator/lower/comparison.h"
#include "translator/lower/conversion.h"
#include "translator/lower/floating_point.h"

#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator::lower {

namespace {

using Op = FloatOperation;

struct HalfOptions {
    bool ftz = false, sat = false, relu = false;
};
HalfOptions half_options(const Instruction& inst) {
    return {inst.has(Word::ftz), inst.has(Word::sat), inst.has(Word::relu)};
}

bool is_packed(ScalarType type) {
    return ptx::type_class(type) == ptx::TypeClass::packed;
}

Value* native(Ir& ir, Op operation, Values v) {
    switch (operation) {
    case Op::add: return ir.CreateFAdd(v[0], v[1]);
    case Op::sub: return ir.CreateFSub(v[0], v[1]);
    case Op::mul: return ir.CreateFMul(v[0], v[1]);
    default: return ir.CreateIntrinsic(llvm::Intrinsic::fma, {v[0]->getType()}, {v[0], v[1], v[2]});
    }
}

/// The operation on floats, inexact results with an odd last bit: of the two neighbours the odd one. Exact results are
/// both; x + (-x) is -0 below and +0, which is even like it, above.
Value* to_odd(WarpEmitter& e, Op operation, Values v) {
    Ir& ir = e.ir();
    Value* below = directed(e, operation, v, Rounding::down);
    Value* above = directed(e, operation, v, Rounding::up);
    // If one is a NaN, so is the other.
    Value* bits = to_bits(ir, any_nan(ir, below));
    Value* is_odd = ir.CreateICmpNE(ir.CreateAnd(bits, integer(bits, 1)), integer(bits, 0));
    return ir.CreateSelect(is_odd, below, above);
}

// Sums of halves round twice harmlessly (24 >= 2 * 11 + 2 bits). Products are exact in float, but for those of bfloats
// below 2^-134, which are no half of anything, and beyond float's range, which is bfloats' own. Fused sums have more
// bits than the carrier: its last one is sticky. With embedded rounding that is two instructions and a choice,
// else the error of the sum, in double for bfloats. The result is exact or such that rounding it to a half is right.
Value* carrier(WarpEmitter& e, Op operation, Values v) {
    Ir& ir = e.ir();
    const bool is_bfloat = v[0]->getType()->getScalarType()->isBFloatTy();
    llvm::SmallVector<Value*, 3> wide;
    for (Value* value : v) wide.push_back(widen_to_float(ir, value));
    if (operation != Op::fma) return native(ir, operation, wide);
    if (e.options().target.avx512 && wide[0]->getType()->isVectorTy()) return to_odd(e, operation, wide);
    if (is_bfloat)
        for (Value*& value : wide) value = ir.CreateFPExt(value, typed(ir.getDoubleTy(), value));
    Value* exact = ir.CreateFMul(wide[0], wide[1]);
    Value* sum = ir.CreateFAdd(exact, wide[2]);
    return sticky(ir, sum, sum_error(ir, exact, wide[2], sum));
}

/// Rounded once, with the hardware's NaN.
Value* rounded(WarpEmitter& e, Op operation, Values v) {
    Ir& ir = e.ir();
    llvm::Type* type = v[0]->getType()->getScalarType();
    const bool has_halves = has_feature(e, "avx512fp16") || has_feature(e, "fullfp16"); // AArch64's
    if (type->isHalfTy() && has_halves) return canonicalize(ir, native(ir, operation, v));
    Value* exact = carrier(e, operation, v);
    // The float's NaN becomes the half's.
    if (type->isHalfTy()) exact = canonicalize(ir, exact);
    return narrow_to_half(ir, exact, type, Rounding::nearest_even);
}

// The hardware flushes what is below 2^-14 after rounding to 11 bits with an unbounded exponent; rounding to a
// subnormal brings some of that up to 2^-14.
Value* flush_result(WarpEmitter& e, Op operation, Values v, Value* result) {
    Ir& ir = e.ir();
    Value* exact = carrier(e, operation, v);
    Value* tiny = ir.CreateFCmpOLT(absolute(ir, exact), real(exact, 0x1.ffep-15));
    Value* bits = to_bits(ir, result);
    return choose(ir, tiny, from_bits(ir, ir.CreateAnd(bits, integer(bits, 0x8000)), result), result);
}

Value* half_arithmetic(WarpEmitter& e, Op operation, Values v, const HalfOptions& options) {
    Ir& ir = e.ir();
    llvm::SmallVector<Value*, 3> operands(v.begin(), v.end());
    if (options.ftz)
        for (Value*& operand : operands) operand = flush_subnormal(ir, operand);
    Value* result = rounded(e, operation, operands);
    if (options.ftz) result = flush_result(e, operation, operands, result);
    if (options.sat) result = saturate_unit(ir, result);
    return options.relu ? clamp_relu(ir, result) : result;
}

// Applies `op` to half lanes: directly for f16 and bf16, to twice as many lanes for the packed types in vectors, per
// half for a packed one alone.
Value* on_halves(WarpEmitter& e, ScalarType type, Values v, const std::function<Value*(Ir&, Values)>& op) {
    Ir& ir = e.ir();
    if (!is_packed(type)) return op(ir, v);
    llvm::Type* packed = v[0]->getType();
    if (auto* words = llvm::dyn_cast<llvm::FixedVectorType>(packed)) {
        auto* lanes = llvm::FixedVectorType::get(half_type_of(e, type), words->getNumElements() * 2);
        llvm::SmallVector<Value*, 3> halves;
        for (Value* value : v) halves.push_back(ir.CreateBitCast(value, lanes));
        return ir.CreateBitCast(op(ir, halves), packed);
    }
    llvm::SmallVector<Value*, 3> low, high;
    for (Value* value : v) {
        auto halves = unpack_halves(ir, value, half_type_of(e, type));
        low.push_back(halves.first);
        high.push_back(halves.second);
    }
    Value* low_result = op(ir, low);
    return pack_halves(ir, low_result, op(ir, high));
}

void binary(WarpEmitter& e, const Instruction& inst, Op operation) {
    HalfOptions options = half_options(inst);
    e.map(inst, {Role::a, Role::b}, [&](Ir&, Values v) {
        return on_halves(e, inst.type(), v, [&](Ir&, Values h) { return half_arithmetic(e, operation, h, options); });
    });
}

void unary(WarpEmitter& e, const Instruction& inst, const std::function<Value*(Ir&, Value*)>& op) {
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a}, [&](Ir&, Values v) {
        return on_halves(e, inst.type(), v,
                         [&](Ir& ir, Values h) { return op(ir, ftz ? flush_subnormal(ir, h[0]) : h[0]); });
    });
}

void min_max(WarpEmitter& e, const Instruction& inst, bool is_max) {
    MinMaxOptions options = min_max_options(inst, is_max);
    e.map(inst, {Role::a, Role::b}, [&](Ir&, Values v) {
        return on_halves(e, inst.type(), v, [&](Ir& ir, Values h) { return float_min_max(ir, h[0], h[1], options); });
    });
}

} // namespace

void add_f16(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::add);
}
void sub_f16(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::sub);
}
void mul_f16(WarpEmitter& e, const Instruction& inst) {
    binary(e, inst, Op::mul);
}

void fma_f16(WarpEmitter& e, const Instruction& inst) {
    HalfOptions options = half_options(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [&](Ir&, Values v) {
        return on_halves(e, inst.type(), v, [&](Ir&, Values h) { return half_arithmetic(e, Op::fma, h, options); });
    });
}

// A factor that is the NaN of elements outside of a tensor (0x7ff7, of either sign) gives +0. The manual leaves that
// NaN open; the H200 was asked for all 65536 values of each operand.
void fma_oob_f16(WarpEmitter& e, const Instruction& inst) {
    HalfOptions options = half_options(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [&](Ir&, Values v) {
        return on_halves(e, inst.type(), v, [&](Ir& ir, Values h) {
            auto outside = [&](Value* value) {
                Value* bits = to_bits(ir, value);
                return ir.CreateICmpEQ(ir.CreateAnd(bits, integer(bits, 0x7fff)), integer(bits, 0x7ff7));
            };
            Value* result = half_arithmetic(e, Op::fma, h, options);
            return choose(ir, ir.CreateOr(outside(h[0]), outside(h[1])), real(result, 0), result);
        });
    });
}

// The sign operations are arithmetic to the hardware: NaNs become the canonical one.
static Value* keep_nan(Ir& ir, Value* bits, Value* result, Value* like) {
    std::uint64_t infinity = like->getType()->getScalarType()->isHalfTy() ? 0x7c00 : 0x7f80;
    Value* nan = ir.CreateICmpUGT(ir.CreateAnd(bits, integer(bits, 0x7fff)), integer(bits, infinity));
    return choose(ir, nan, canonical_nan(like), from_bits(ir, result, like));
}

void neg_f16(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, [](Ir& ir, Value* v) {
        Value* bits = to_bits(ir, v);
        return keep_nan(ir, bits, ir.CreateXor(bits, integer(bits, 0x8000)), v);
    });
}

void abs_f16(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, [](Ir& ir, Value* v) {
        Value* bits = to_bits(ir, v);
        return keep_nan(ir, bits, ir.CreateAnd(bits, integer(bits, 0x7fff)), v);
    });
}

void min_f16(WarpEmitter& e, const Instruction& inst) {
    min_max(e, inst, false);
}
void max_f16(WarpEmitter& e, const Instruction& inst) {
    min_max(e, inst, true);
}

// --- comparisons ---------------------------------------------------------------------------------

void setp_f16(WarpEmitter& e, const Instruction& inst) {
    if (!is_packed(inst.type())) return setp(e, inst);
    // p is the low half's result, q the high half's.
    LaneValue halves[2];
    for (unsigned i = 0; i < 2; ++i)
        halves[i] = e.apply({e.read(inst[Role::a]), e.read(inst[Role::b])}, [&](Ir& ir, Values v) {
            llvm::Type* type = half_type_of(e, inst.type());
            auto a = unpack_halves(ir, v[0], type), b = unpack_halves(ir, v[1], type);
            return i == 0 ? compare(e, inst, a.first, b.first, inst.type())
                          : compare(e, inst, a.second, b.second, inst.type());
        });
    write_predicates(e, inst, halves[0], halves[1]);
}

void set_f16(WarpEmitter& e, const Instruction& inst) {
    ScalarType result_type = inst.types[0], source_type = inst.types[1];
    if (!is_packed(source_type)) return set(e, inst);
    // Integer results of packed comparisons are 0xffff or 0 per half.
    llvm::Type* half = is_packed(result_type) ? half_type_of(e, result_type) : e.ir().getInt16Ty();
    auto build = [&](Ir& ir, Values v) {
        llvm::Type* type = half_type_of(e, source_type);
        auto a = unpack_halves(ir, v[0], type), b = unpack_halves(ir, v[1], type);
        auto one = [&](Value* x, Value* y) {
            Value* truth = compare(e, inst, x, y, source_type);
            if (v.size() > 2) truth = combine(ir, inst, truth, v[2]);
            return truth_value(ir, truth, half);
        };
        Value* low = one(a.first, b.first);
        return pack_halves(ir, low, one(a.second, b.second));
    };
    if (inst[Role::c].kind == ptx::Operand::Kind::none)
        e.map(inst, {Role::a, Role::b}, build);
    else
        e.map(inst, {Role::a, Role::b, Role::c}, build);
}

} // namespace ptarmigan::translator::lower
