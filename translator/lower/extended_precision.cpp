// SPDX-License-Identifier: Apache-2.0
// Extended-precision integer arithmetic (manual 9.7.2). The carry flag is the hidden predicate operand cc_in/cc_out.
// The manual speaks of a borrow for differences; the hardware has one adder, whose carry out of a + ~b + 1 is the
// borrow negated. Programs see that where differences and sums share a chain, as in the compiler's own 128-bit division
// (`subc.cc` ... `addc d, 0, 0`).
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

namespace {

// d = a + b + carry, or a + ~b + carry; without a carry in that is 0 or 1. Writes the carry out where the row has one.
void add_with_carry(WarpEmitter& e, const Instruction& inst, const LaneValue& a, const LaneValue& b, bool subtract) {
    auto step = [subtract](Ir& ir, Value* x, Value* y) { return subtract ? ir.CreateSub(x, y) : ir.CreateAdd(x, y); };
    // A sum wrapped if it is below an addend; a difference did not if the minuend is not below the subtrahend.
    auto carried = [subtract](Ir& ir, Value* x, Value* y, Value* result) {
        return subtract ? ir.CreateICmpUGE(x, y) : ir.CreateICmpULT(result, x);
    };
    LaneValue result = e.apply({a, b}, [&](Ir& ir, Values v) { return step(ir, v[0], v[1]); });
    LaneValue carry = e.apply({a, b, result}, [&](Ir& ir, Values v) { return carried(ir, v[0], v[1], v[2]); });
    const ptx::Operand& carry_in = inst[Role::cc_in];
    if (carry_in.kind != ptx::Operand::Kind::none) {
        LaneValue in = e.apply({e.read(carry_in), result}, [subtract](Ir& ir, Values v) {
            return ir.CreateZExt(subtract ? ir.CreateNot(v[0]) : v[0], v[1]->getType());
        });
        LaneValue total = e.apply({result, in}, [&](Ir& ir, Values v) { return step(ir, v[0], v[1]); });
        carry = e.apply({carry, result, in, total}, [&](Ir& ir, Values v) {
            Value* second = carried(ir, v[1], v[2], v[3]);
            return subtract ? ir.CreateAnd(v[0], second) : ir.CreateOr(v[0], second);
        });
        result = total;
    }
    e.write(inst[Role::d], result);
    const ptx::Operand& carry_out = inst[Role::cc_out];
    if (carry_out.kind != ptx::Operand::Kind::none) e.write(carry_out, carry);
}

void multiply_add_with_carry(WarpEmitter& e, const Instruction& inst) {
    bool high = inst.has(Word::hi), sign = ptx::is_signed(inst.type());
    LaneValue product = e.apply({e.read(inst[Role::a]), e.read(inst[Role::b])}, [=](Ir& ir, Values v) {
        return high ? multiply_high(ir, v[0], v[1], sign) : ir.CreateMul(v[0], v[1]);
    });
    add_with_carry(e, inst, product, e.read(inst[Role::c]), false);
}

} // namespace

void add_cc(WarpEmitter& e, const Instruction& inst) {
    add_with_carry(e, inst, e.read(inst[Role::a]), e.read(inst[Role::b]), false);
}
void addc(WarpEmitter& e, const Instruction& inst) {
    add_cc(e, inst);
}

void sub_cc(WarpEmitter& e, const Instruction& inst) {
    add_with_carry(e, inst, e.read(inst[Role::a]), e.read(inst[Role::b]), true);
}
void subc(WarpEmitter& e, const Instruction& inst) {
    sub_cc(e, inst);
}

void mad_cc(WarpEmitter& e, const Instruction& inst) {
    multiply_add_with_carry(e, inst);
}
void madc(WarpEmitter& e, const Instruction& inst) {
    multiply_add_with_carry(e, inst);
}

} // namespace ptarmigan::translator::lower
