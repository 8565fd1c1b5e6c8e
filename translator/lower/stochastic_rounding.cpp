// SPDX-License-Identifier: Apache-2.0
// cvt.rs (manual 9.7.9.21): a number is rounded away from zero if random bits, added to those that it loses, carry.
#include "translator/lower/conversion.h"

#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator::lower {

namespace {

/// A format, what becomes of what is too large for it, and how many random bits are added.
struct Target {
    SmallFloat format;
    unsigned overflow; ///< code
    unsigned random_bits;
};

Target target_of(const Instruction& inst) {
    bool satfinite = inst.has(Word::satfinite);
    switch (inst.types[0]) {
    case ScalarType::f16x2: return {{5, 10, 15, 0x7bff, 0x7fff, 16}, satfinite ? 0x7bffu : 0x7c00u, 13};
    case ScalarType::bf16x2: return {{8, 7, 127, 0x7f7f, 0x7fff, 16}, satfinite ? 0x7f7fu : 0x7f80u, 16};
    default: {
        SmallFloat format = small_float(inst.types[0]);
        return {format, format.largest, 16};
    }
    }
}

/// The code (i32 lanes) of a float. The random bits meet the highest of the bits that are lost; what is lost below them
/// can't carry. Results that are subnormal lose more bits, of which again the highest count.
Value* round(Ir& ir, Value* value, Value* random, const Target& target, bool relu) {
    const SmallFloat& format = target.format;
    Value* bits = to_bits(ir, value);
    Value* field = ir.CreateAnd(ir.CreateLShr(bits, integer(bits, 23)), integer(bits, 255));
    Value* fraction = ir.CreateAnd(bits, integer(bits, 0x7fffff));
    Value* normal = ir.CreateICmpNE(field, integer(bits, 0));
    Value* significand = ir.CreateSelect(normal, ir.CreateOr(fraction, integer(bits, 0x800000)), fraction);
    Value* exponent = maximum(ir, field, integer(bits, 1), false);
    // The exponent field of the result, as far as it has one, and by how much its last bit lies above the source's.
    Value* rebased = ir.CreateSub(exponent, integer(bits, std::uint64_t(127 - format.bias)));
    Value* result_field = maximum(ir, rebased, integer(bits, 1), true);
    Value* lost = ir.CreateAdd(integer(bits, 23 - format.mantissa), ir.CreateSub(result_field, rebased));
    Value* unseen = minimum(ir, ir.CreateSub(lost, integer(bits, target.random_bits)), integer(bits, 31), true);
    Value* sum = ir.CreateAdd(ir.CreateLShr(significand, unseen), random);
    Value* units = ir.CreateLShr(sum, integer(bits, target.random_bits));
    Value* base = ir.CreateShl(ir.CreateSub(result_field, integer(bits, 1)), integer(bits, format.mantissa));
    Value* code = ir.CreateAdd(base, units);
    code = ir.CreateSelect(ir.CreateICmpUGT(code, integer(bits, format.largest)), integer(bits, target.overflow), code);
    Value* negative = ir.CreateICmpSLT(bits, integer(bits, 0));
    code =
        ir.CreateSelect(negative, relu ? integer(bits, 0) : ir.CreateOr(code, integer(bits, format.sign_bit())), code);
    return ir.CreateSelect(is_nan(ir, value), integer(bits, format.nan), code);
}

/// The lowest 16 bits, the first last.
Value* reversed(Ir& ir, Value* bits) {
    Value* all = ir.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, bits);
    return ir.CreateLShr(all, integer(all, 16));
}

/// The 16 random bits that a and b share, or e and f: a half of rbits; for e2m1 the upper or the lower bytes of both.
Value* random_of_pair(Ir& ir, Value* rbits, bool first, bool bytes) {
    auto field = [&](unsigned from, unsigned mask) {
        return ir.CreateAnd(ir.CreateLShr(rbits, integer(rbits, from)), integer(rbits, mask));
    };
    if (!bytes) return field(first ? 16 : 0, 0xffff);
    return ir.CreateOr(field(first ? 16 : 8, 0xff00), field(first ? 8 : 0, 0xff));
}

/// cvt.rs to f16x2 and bf16x2: a, the upper half, takes the upper half of rbits, b the lower one.
Value* two_halves(Ir& ir, Values v, const Target& target, bool relu) {
    Value* rbits = v[2];
    Value* mask = integer(rbits, (1u << target.random_bits) - 1);
    Value* high = round(ir, v[0], ir.CreateAnd(ir.CreateLShr(rbits, integer(rbits, 16)), mask), target, relu);
    Value* low = round(ir, v[1], ir.CreateAnd(rbits, mask), target, relu);
    return ir.CreateOr(ir.CreateShl(high, integer(high, 16)), low);
}

/// cvt.rs to four small numbers, the first one uppermost. Both numbers of a pair take the same 16 bits: the first one,
/// a or e, in reverse. The manual says which bits a pair has; the rest is what two public emulations found on B200s.
Value* four_numbers(Ir& ir, Values v, const Target& target, bool relu) {
    Value* result = integer(v[4], 0);
    for (unsigned i = 0; i < 4; ++i) {
        Value* random = random_of_pair(ir, v[4], i < 2, target.format.stride == 4);
        Value* code = round(ir, v[i], i % 2 == 0 ? reversed(ir, random) : random, target, relu);
        result = ir.CreateOr(ir.CreateShl(result, integer(result, target.format.stride)), code);
    }
    return resize(ir, result, 4 * target.format.stride, false);
}

} // namespace

void cvt_stochastic(WarpEmitter& e, const Instruction& inst) {
    Target target = target_of(inst);
    bool relu = inst.has(Word::relu);
    LaneValue rbits = e.read(inst[Role::rbits]);
    if (inst[Role::b].kind != ptx::Operand::Kind::none)
        return e.write(inst[Role::d], e.apply({e.read(inst[Role::a]), e.read(inst[Role::b]), rbits},
                                              [&](Ir& ir, Values v) { return two_halves(ir, v, target, relu); }));
    auto source = [&](unsigned index) { return e.read(e.element(inst[Role::a], index)); };
    e.write(inst[Role::d], e.apply({source(0), source(1), source(2), source(3), rbits},
                                   [&](Ir& ir, Values v) { return four_numbers(ir, v, target, relu); }));
}

} // namespace ptarmigan::translator::lower
