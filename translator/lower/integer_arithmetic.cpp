// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic (manual 9.7.1). All plain sums and products wrap; division never traps on the host.
#include "translator/llvm/join_byte_products.h"
#include "translator/lower/lane_calls.h"
#include "translator/lower/lane_math.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <string>

namespace ptarmigan::translator::lower {

namespace {

bool is_signed(const Instruction& inst) {
    return ptx::is_signed(inst.type());
}
unsigned bits_of(Value* value) {
    return value->getType()->getScalarSizeInBits();
}

/// Bits of an element of a packed type; 0 for others.
unsigned element_bits(ScalarType type) {
    switch (type) {
    case ScalarType::u16x2:
    case ScalarType::s16x2: return 16;
    case ScalarType::u8x4:
    case ScalarType::s8x4: return 8;
    default: return 0;
    }
}

bool is_signed_type(ScalarType type) {
    return ptx::is_signed(type) || type == ScalarType::s16x2 || type == ScalarType::s8x4;
}

// `op` on the operands, or on all elements of packed ones, which become lanes of their own.
Value* elementwise(Ir& ir, Values v, ScalarType type, const std::function<Value*(Values)>& op) {
    unsigned bits = element_bits(type);
    if (bits == 0) return op(v);
    llvm::Type* word = v[0]->getType();
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(word);
    unsigned elements = (vector ? vector->getNumElements() : 1) * 32 / bits;
    llvm::SmallVector<Value*, 2> parts;
    for (Value* value : v)
        parts.push_back(ir.CreateBitCast(value, llvm::FixedVectorType::get(ir.getIntNTy(bits), elements)));
    return ir.CreateBitCast(op(parts), word);
}

Value* product_half(Ir& ir, Value* a, Value* b, bool high, bool is_signed) {
    return high ? multiply_high(ir, a, b, is_signed) : ir.CreateMul(a, b);
}

// Bits [lo, lo + 32) of the product of the low 24 bits.
Value* product_24(Ir& ir, Value* a, Value* b, bool high, bool is_signed) {
    auto operand = [&](Value* value) {
        Value* top = ir.CreateShl(value, integer(value, 8));
        Value* low = is_signed ? ir.CreateAShr(top, integer(value, 8)) : ir.CreateLShr(top, integer(value, 8));
        return resize(ir, low, 64, is_signed);
    };
    Value* product = ir.CreateMul(operand(a), operand(b));
    if (high) product = ir.CreateLShr(product, integer(product, 16));
    return resize(ir, product, 32, false);
}

// Quotients of operands of at most 32 bits through correctly rounded double division: the quotient of two integers
// below 2^32 is never closer than 2^-32 below an integer, so truncation gives the exact result. Vectors have no
// integer division instruction; scalars do.
Value* vector_quotient(Ir& ir, Value* a, Value* b, bool is_signed) {
    llvm::Type* real_type = typed(bits_of(a) <= 16 ? ir.getFloatTy() : ir.getDoubleTy(), a);
    llvm::Type* integer_type = typed(ir.getInt32Ty(), a);
    auto as_real = [&](Value* v) { return is_signed ? ir.CreateSIToFP(v, real_type) : ir.CreateUIToFP(v, real_type); };
    Value* quotient = ir.CreateFDiv(as_real(a), as_real(b));
    quotient = is_signed ? ir.CreateFPToSI(quotient, integer_type) : ir.CreateFPToUI(quotient, integer_type);
    return ir.CreateTrunc(quotient, a->getType());
}

struct Division {
    Value* quotient;
    Value* zero_divisor; ///< i1
    Value* divisor;      ///< never zero
};

Division divide(Ir& ir, Value* a, Value* b, bool is_signed) {
    bool constant = llvm::isa<llvm::Constant>(b);
    // Lanes that don't execute may hold anything, poison too, and the host divides in all of them.
    if (!constant) b = ir.CreateFreeze(b);
    Value* zero = ir.CreateICmpEQ(b, integer(b, 0));
    Value* divisor = ir.CreateSelect(zero, integer(b, 1), b);
    // Constants become multiplications.
    bool through_real = a->getType()->isVectorTy() && bits_of(a) <= 32 && !constant;
    if (!is_signed) {
        Value* quotient = through_real ? vector_quotient(ir, a, divisor, false) : ir.CreateUDiv(a, divisor);
        return {quotient, zero, divisor};
    }
    // Host division traps on INT_MIN / -1: divide by 1 there and negate, which wraps as the GPU does.
    Value* minus_one = ir.CreateICmpEQ(divisor, integer(b, ~0ull));
    Value* safe = ir.CreateSelect(minus_one, integer(b, 1), divisor);
    Value* quotient = through_real ? vector_quotient(ir, a, safe, true) : ir.CreateSDiv(a, safe);
    return {ir.CreateSelect(minus_one, ir.CreateNeg(a), quotient), zero, divisor};
}

// bfind: index of the most significant bit that is not a copy of the sign; all ones if there is none.
Value* leading_bit(Ir& ir, Value* a, bool is_signed, bool shift_amount) {
    unsigned bits = bits_of(a);
    if (is_signed) a = ir.CreateXor(a, ir.CreateAShr(a, integer(a, bits - 1)));
    Value* zeros = ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, ir.getFalse());
    Value* index = shift_amount ? zeros : ir.CreateSub(integer(a, bits - 1), zeros);
    Value* none = ir.CreateICmpEQ(a, integer(a, 0));
    return resize(ir, ir.CreateSelect(none, integer(a, ~0ull), index), 32, false);
}

Value* byte_of(Ir& ir, Value* word, unsigned index, unsigned bits, bool is_signed) {
    Value* top = ir.CreateShl(word, integer(word, 32 - bits * (index + 1)));
    return is_signed ? ir.CreateAShr(top, integer(word, 32 - bits)) : ir.CreateLShr(top, integer(word, 32 - bits));
}

void min_or_max(WarpEmitter& e, const Instruction& inst, bool is_max) {
    ScalarType type = inst.type();
    bool sign = is_signed_type(type), relu = inst.has(Word::relu);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) {
        return elementwise(ir, v, type, [&](Values x) {
            Value* result = is_max ? maximum(ir, x[0], x[1], sign) : minimum(ir, x[0], x[1], sign);
            return relu ? maximum(ir, result, integer(result, 0), true) : result;
        });
    });
}

} // namespace

void add_int(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b}, [](Ir& ir, Values v) { return ir.CreateAdd(v[0], v[1]); });
}

void add_sat_int(WarpEmitter& e, const Instruction& inst) {
    auto sum = is_signed_type(inst.type()) ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::uadd_sat;
    e.map(inst, {Role::a, Role::b}, [&](Ir& ir, Values v) {
        return elementwise(ir, v, inst.type(), [&](Values x) { return ir.CreateBinaryIntrinsic(sum, x[0], x[1]); });
    });
}

void add_packed_int(WarpEmitter& e, const Instruction& inst) {
    if (inst.has(Word::sat)) return add_sat_int(e, inst);
    e.map(inst, {Role::a, Role::b}, [&](Ir& ir, Values v) {
        return elementwise(ir, v, inst.type(), [&](Values x) { return ir.CreateAdd(x[0], x[1]); });
    });
}

void sub_int(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b}, [&](Ir& ir, Values v) {
        return elementwise(ir, v, inst.type(), [&](Values x) { return ir.CreateSub(x[0], x[1]); });
    });
}

void sub_sat_int(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b},
          [](Ir& ir, Values v) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, v[0], v[1]); });
}

void mul_int(WarpEmitter& e, const Instruction& inst) {
    bool high = inst.has(Word::hi), sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) { return product_half(ir, v[0], v[1], high, sign); });
}

void mul_wide(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) {
        unsigned bits = 2 * bits_of(v[0]);
        return ir.CreateMul(resize(ir, v[0], bits, sign), resize(ir, v[1], bits, sign));
    });
}

void mad_int(WarpEmitter& e, const Instruction& inst) {
    bool high = inst.has(Word::hi), sat = inst.has(Word::sat), sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) -> Value* {
        Value* product = product_half(ir, v[0], v[1], high, sign);
        return sat ? ir.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, v[2]) : ir.CreateAdd(product, v[2]);
    });
}

void mad_wide(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        unsigned bits = 2 * bits_of(v[0]);
        return ir.CreateAdd(ir.CreateMul(resize(ir, v[0], bits, sign), resize(ir, v[1], bits, sign)), v[2]);
    });
}

void mul24(WarpEmitter& e, const Instruction& inst) {
    bool high = inst.has(Word::hi), sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) { return product_24(ir, v[0], v[1], high, sign); });
}

void mad24(WarpEmitter& e, const Instruction& inst) {
    bool high = inst.has(Word::hi), sat = inst.has(Word::sat), sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) -> Value* {
        Value* product = product_24(ir, v[0], v[1], high, sign);
        return sat ? ir.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, v[2]) : ir.CreateAdd(product, v[2]);
    });
}

void sad(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        Value* difference = ir.CreateSub(maximum(ir, v[0], v[1], sign), minimum(ir, v[0], v[1], sign));
        return ir.CreateAdd(v[2], difference);
    });
}

void div_int(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) {
        Division division = divide(ir, v[0], v[1], sign);
        return ir.CreateSelect(division.zero_divisor, integer(v[0], ~0ull), division.quotient);
    });
}

void rem_int(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) {
        Division division = divide(ir, v[0], v[1], sign);
        Value* rest = ir.CreateSub(v[0], ir.CreateMul(division.quotient, division.divisor));
        return ir.CreateSelect(division.zero_divisor, integer(v[0], ~0ull), rest);
    });
}

void abs_int(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a},
          [](Ir& ir, Values v) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v[0], ir.getFalse()); });
}

void neg_int(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        return elementwise(ir, v, inst.type(), [&](Values x) { return ir.CreateNeg(x[0]); });
    });
}

void min_int(WarpEmitter& e, const Instruction& inst) {
    min_or_max(e, inst, false);
}
void max_int(WarpEmitter& e, const Instruction& inst) {
    min_or_max(e, inst, true);
}

void popc(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [](Ir& ir, Values v) {
        return resize(ir, ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, v[0]), 32, false);
    });
}

void clz(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [](Ir& ir, Values v) {
        return resize(ir, ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v[0], ir.getFalse()), 32, false);
    });
}

void bfind(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst), shift_amount = inst.has(Word::shiftamt);
    e.map(inst, {Role::a}, [=](Ir& ir, Values v) { return leading_bit(ir, v[0], sign, shift_amount); });
}

// The n-th set bit from `base`, upwards for positive offsets and downwards for negative ones (which the bit reversal
// turns into an upward search). Clearing the lowest set bit n - 1 times takes at most 31 rounds for all lanes; the
// binary search below takes five: the position is the largest p whose prefix holds fewer than n set bits.
void fns(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::mask, Role::base, Role::offset}, [](Ir& ir, Values v) {
        Value* base = v[1];
        Value* in_range = ir.CreateICmpULT(base, integer(base, 32));
        Value* downward = ir.CreateICmpSLT(v[2], integer(base, 0));
        auto mirrored = [&](Value* position) { return ir.CreateSub(integer(base, 31), position); };
        Value* reversed = ir.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, v[0]);
        Value* bits = ir.CreateSelect(downward, reversed, v[0]);
        Value* start = ir.CreateAnd(ir.CreateSelect(downward, mirrored(base), base), integer(base, 31));
        bits = ir.CreateAnd(bits, ir.CreateShl(integer(base, ~0ull), start));
        Value* count = ir.CreateSelect(downward, ir.CreateNeg(v[2]), v[2]);
        Value* position = integer(base, 0);
        for (unsigned step = 16; step; step /= 2) {
            Value* next = ir.CreateAdd(position, integer(base, step));
            Value* below = ir.CreateSub(ir.CreateShl(integer(base, 1), next), integer(base, 1));
            Value* set = ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, ir.CreateAnd(bits, below));
            position = ir.CreateSelect(ir.CreateICmpULT(set, count), next, position);
        }
        Value* total = ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
        Value* found = ir.CreateAnd(ir.CreateICmpULE(count, total), in_range);
        Value* nth = ir.CreateSelect(downward, mirrored(position), position);
        Value* self_bit = ir.CreateAnd(ir.CreateLShr(v[0], ir.CreateAnd(base, integer(base, 31))), integer(base, 1));
        Value* self = ir.CreateAnd(ir.CreateICmpNE(self_bit, integer(base, 0)), in_range);
        Value* none = integer(base, ~0ull);
        Value* result = ir.CreateSelect(ir.CreateICmpEQ(v[2], integer(base, 0)), ir.CreateSelect(self, base, none),
                                        ir.CreateSelect(found, nth, none));
        // The offset that has no opposite gives 0 (recorded on the H200).
        return ir.CreateSelect(ir.CreateICmpEQ(v[2], integer(base, 0x80000000u)), integer(base, 0), result);
    });
}

void brev(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [](Ir& ir, Values v) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, v[0]); });
}

// Position or length of a bit field: eight bits count, but for 64-bit fields all do, whatever the manual says
// (recorded on the H200).
static Value* field_operand(Ir& ir, Value* x, unsigned bits) {
    return resize(ir, bits == 64 ? x : ir.CreateAnd(x, integer(x, 255)), bits, false);
}

void bfe(WarpEmitter& e, const Instruction& inst) {
    bool sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        Value* a = v[0];
        unsigned bits = bits_of(a);
        Value* position = field_operand(ir, v[1], bits);
        Value* length = field_operand(ir, v[2], bits);
        // Bring the field's top bit to the register's: it is at min(position + length, bits) - 1.
        Value* end = ir.CreateAdd(position, length);
        Value* above = ir.CreateSub(integer(a, bits), minimum(ir, end, integer(a, bits), false));
        // position <= bits after clamping, so above + position never exceeds what the shifts clamp to.
        Value* top = shift_left(ir, a, above);
        Value* field = shift_right(ir, top, ir.CreateAdd(above, position), sign);
        return ir.CreateSelect(ir.CreateICmpEQ(length, integer(a, 0)), integer(a, 0), field);
    });
}

void bfi(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b, Role::c, Role::e}, [](Ir& ir, Values v) {
        Value* a = v[0];
        unsigned bits = bits_of(a);
        Value* position = field_operand(ir, v[2], bits);
        Value* length = field_operand(ir, v[3], bits);
        Value* field = ir.CreateNot(shift_left(ir, integer(a, ~0ull), length));
        Value* mask = shift_left(ir, field, position);
        return ir.CreateOr(ir.CreateAnd(shift_left(ir, a, position), mask), ir.CreateAnd(v[1], ir.CreateNot(mask)));
    });
}

void szext(WarpEmitter& e, const Instruction& inst) {
    bool clamp = inst.has(Word::clamp), sign = is_signed(inst);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) {
        Value* n = ir.CreateAnd(v[1], integer(v[1], 31));
        Value* above = ir.CreateSub(integer(n, 32), n);
        Value* extended = shift_right(ir, shift_left(ir, v[0], above), above, sign);
        // n = 0 keeps no bits, not even a sign.
        extended = ir.CreateSelect(ir.CreateICmpEQ(n, integer(n, 0)), integer(n, 0), extended);
        if (!clamp) return extended;
        return ir.CreateSelect(ir.CreateICmpUGE(v[1], integer(n, 32)), v[0], extended);
    });
}

void bmsk(WarpEmitter& e, const Instruction& inst) {
    bool clamp = inst.has(Word::clamp);
    e.map(inst, {Role::a, Role::b}, [=](Ir& ir, Values v) {
        auto low5 = [&](Value* x) { return ir.CreateAnd(x, integer(x, 31)); };
        Value* start = clamp ? v[0] : low5(v[0]);
        Value* width = clamp ? v[1] : low5(v[1]);
        Value* ones = ir.CreateNot(shift_left(ir, integer(start, ~0ull), width));
        return shift_left(ir, ones, start);
    });
}

/// Lanes of one VPDPBUSD: c + a * b of four unsigned bytes and four signed ones; 0: the target has none.
static unsigned byte_product_lanes(WarpEmitter& e) {
    const TargetCpu& target = e.options().target;
    const auto has = [&](const char* feature) {
        return ("," + target.features + ",").find(feature) != std::string::npos;
    };
    if (target.avx512 && has(",+avx512vnni,")) return e.width() < 16 ? 8 : 16;
    return has(",+avxvnni,") ? 8 : 0;
}

/// dp4a by VPDPBUSD, whose intermediate sums are exact. Of two signed numbers the first is taken 128 higher, of two
/// unsigned ones the second 128 lower, and the difference is put right.
static Value* byte_products(Ir& ir, Values v, unsigned lanes, bool a_signed, bool b_signed) {
    const auto product = [&](Value* c, Value* unsigned_bytes, Value* signed_bytes, bool is_sum = true) {
        return in_chunks(ir, {c, unsigned_bytes, signed_bytes}, lanes, [&](Ir& chunk_ir, Values part) -> Value* {
            llvm::CallInst* sum = chunk_ir.CreateIntrinsic(lanes == 16 ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                                                                       : llvm::Intrinsic::x86_avx512_vpdpbusd_256,
                                                           {}, {part[0], part[1], part[2]});
            if (is_sum) mark_byte_products(*sum);
            return sum;
        });
    };
    const auto bytes = [&](std::uint32_t each) { return integer(v[0], each * 0x01010101u); };
    const auto moved = [&](Value* x) { return ir.CreateXor(x, bytes(0x80)); };
    if (a_signed != b_signed) return a_signed ? product(v[2], v[1], v[0]) : product(v[2], v[0], v[1]);
    if (a_signed)
        return ir.CreateSub(product(v[2], moved(v[0]), v[1]), product(integer(v[0], 0), bytes(0x80), v[1], false));
    Value* more = ir.CreateShl(product(integer(v[0], 0), v[0], bytes(1), false), integer(v[0], 7));
    return ir.CreateAdd(product(v[2], v[0], moved(v[1])), more);
}

/// Lanes of one VPMADDWD, which multiplies signed halves and adds the two products of a word; 0: the target has none.
static unsigned half_product_lanes(WarpEmitter& e) {
    const TargetCpu& target = e.options().target;
    if (target.avx512 && e.width() >= 16) return 16;
    return has_avx2(target) && e.width() >= 8 ? 8 : 0;
}

/// dp4a by VPMADDWD: the products of the even bytes, then those of the odd ones.
static Value* byte_products_as_halves(Ir& ir, Values v, unsigned lanes, bool a_signed, bool b_signed) {
    return in_chunks(ir, {v[0], v[1], v[2]}, lanes, [&](Ir& chunk_ir, Values part) -> Value* {
        auto* halves = llvm::FixedVectorType::get(chunk_ir.getInt16Ty(), 2 * lanes);
        Value* sum = part[2];
        for (bool odd : {false, true}) {
            const auto bytes = [&](Value* word, bool is_signed) {
                Value* half = chunk_ir.CreateBitCast(word, halves);
                if (!odd) half = chunk_ir.CreateShl(half, integer(half, 8));
                return is_signed ? chunk_ir.CreateAShr(half, integer(half, 8))
                                 : chunk_ir.CreateLShr(half, integer(half, 8));
            };
            Value* products = chunk_ir.CreateIntrinsic(lanes == 16 ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                                                                   : llvm::Intrinsic::x86_avx2_pmadd_wd,
                                                       {}, {bytes(part[0], a_signed), bytes(part[1], b_signed)});
            sum = chunk_ir.CreateAdd(sum, products);
        }
        return sum;
    });
}

void dp4a(WarpEmitter& e, const Instruction& inst) {
    bool a_signed = ptx::is_signed(inst.types[0]), b_signed = ptx::is_signed(inst.types[1]);
    const unsigned lanes = byte_product_lanes(e), half_lanes = half_product_lanes(e);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        if (lanes != 0 && v[0]->getType()->isVectorTy()) return byte_products(ir, v, lanes, a_signed, b_signed);
        if (half_lanes != 0 && v[0]->getType()->isVectorTy())
            return byte_products_as_halves(ir, v, half_lanes, a_signed, b_signed);
        Value* sum = v[2];
        for (unsigned i = 0; i < 4; ++i)
            sum = ir.CreateAdd(sum, ir.CreateMul(byte_of(ir, v[0], i, 8, a_signed), byte_of(ir, v[1], i, 8, b_signed)));
        return sum;
    });
}

void dp2a(WarpEmitter& e, const Instruction& inst) {
    bool a_signed = ptx::is_signed(inst.types[0]), b_signed = ptx::is_signed(inst.types[1]);
    unsigned first = inst.has(Word::hi) ? 2 : 0;
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        Value* sum = v[2];
        for (unsigned i = 0; i < 2; ++i)
            sum = ir.CreateAdd(
                sum, ir.CreateMul(byte_of(ir, v[0], i, 16, a_signed), byte_of(ir, v[1], first + i, 8, b_signed)));
        return sum;
    });
}

} // namespace ptarmigan::translator::lower
