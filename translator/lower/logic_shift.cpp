// SPDX-License-Identifier: Apache-2.0
// Logic and shift (manual 9.7.8) and byte permutation (9.7.9.7).
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

namespace {

// Shift amounts are u32 whatever the width of the value; clamp before narrowing so that nothing wraps.
Value* shift_amount(Ir& ir, Value* amount, Value* value) {
    unsigned bits = value->getType()->getScalarSizeInBits();
    return resize(ir, minimum(ir, amount, integer(amount, bits), false), bits, false);
}

// The function of a, b and c whose truth table is `table`, by Shannon expansion on a and b.
Value* truth_table(Ir& ir, Value* a, Value* b, Value* c, unsigned table) {
    // Two bits of the table: what remains as a function of c.
    auto of_c = [&](unsigned pair) -> Value* {
        switch (pair & 3) {
        case 0: return integer(c, 0);
        case 1: return ir.CreateNot(c);
        case 2: return c;
        default: return integer(c, ~0ull);
        }
    };
    auto choose = [&](Value* selector, Value* if_zero, Value* if_one) -> Value* {
        if (if_zero == if_one) return if_zero;
        return ir.CreateOr(ir.CreateAnd(selector, if_one), ir.CreateAnd(ir.CreateNot(selector), if_zero));
    };
    auto of_b_c = [&](unsigned quad) -> Value* {
        if ((quad & 3) == (quad >> 2 & 3)) return of_c(quad);
        if ((quad & 3) == 0 && (quad >> 2 & 3) == 3) return b;
        if ((quad & 3) == 3 && (quad >> 2 & 3) == 0) return ir.CreateNot(b);
        if ((quad & 15) == 6) return ir.CreateXor(b, c);
        if ((quad & 15) == 9) return ir.CreateNot(ir.CreateXor(b, c));
        return choose(b, of_c(quad), of_c(quad >> 2));
    };
    unsigned low = table & 15, high = table >> 4 & 15;
    if (low == high) return of_b_c(low);
    if ((low ^ high) == 15) return ir.CreateXor(a, of_b_c(low));
    if (low == 0) return ir.CreateAnd(a, of_b_c(high));
    if (high == 0) return ir.CreateAnd(ir.CreateNot(a), of_b_c(low));
    if (high == 15) return ir.CreateOr(a, of_b_c(low));
    if (low == 15) return ir.CreateOr(ir.CreateNot(a), of_b_c(high));
    return choose(a, of_b_c(low), of_b_c(high));
}

// Source byte numbers of the four result bytes for each value of c[1:0], lowest byte first.
using ByteTable = std::array<std::array<std::uint8_t, 4>, 4>;
ByteTable byte_table(Word mode) {
    switch (mode) {
    case Word::f4e: return {{{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}};
    case Word::b4e: return {{{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}};
    case Word::rc8: return {{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}};
    case Word::ecl: return {{{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}};
    case Word::ecr: return {{{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}};
    default: return {{{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}};
    }
}

// Four selectors of four bits each, for a special mode: a table lookup by the two low bits of c.
Value* selectors_of_mode(Ir& ir, Value* c, Word mode) {
    ByteTable table = byte_table(mode);
    Value* selectors = integer(c, 0);
    Value* index = ir.CreateAnd(c, integer(c, 3));
    for (unsigned row = 0; row < 4; ++row) {
        std::uint64_t nibbles = 0;
        for (unsigned i = 0; i < 4; ++i) nibbles |= std::uint64_t(table[row][i]) << 4 * i;
        selectors = ir.CreateSelect(ir.CreateICmpEQ(index, integer(c, row)), integer(c, nibbles), selectors);
    }
    return selectors;
}

Value* permute_bytes(Ir& ir, Value* a, Value* b, Value* selectors) {
    llvm::Type* wide = typed(ir.getInt64Ty(), a);
    Value* source =
        ir.CreateOr(ir.CreateZExt(a, wide), ir.CreateShl(ir.CreateZExt(b, wide), integer(ir.CreateZExt(b, wide), 32)));
    Value* result = integer(a, 0);
    for (unsigned i = 0; i < 4; ++i) {
        Value* selector = ir.CreateAnd(ir.CreateLShr(selectors, integer(selectors, 4 * i)), integer(selectors, 15));
        Value* shift = ir.CreateShl(ir.CreateAnd(selector, integer(selector, 7)), integer(selector, 3));
        Value* byte = ir.CreateTrunc(ir.CreateLShr(source, ir.CreateZExt(shift, wide)), typed(ir.getInt8Ty(), a));
        Value* sign = ir.CreateAShr(byte, integer(byte, 7));
        Value* replicate = ir.CreateICmpUGE(selector, integer(selector, 8));
        Value* placed = ir.CreateZExt(ir.CreateSelect(replicate, sign, byte), a->getType());
        result = ir.CreateOr(result, ir.CreateShl(placed, integer(a, 8 * i)));
    }
    return result;
}

} // namespace

void logic_and(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b}, [](Ir& ir, Values v) { return ir.CreateAnd(v[0], v[1]); });
}

void logic_or(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b}, [](Ir& ir, Values v) { return ir.CreateOr(v[0], v[1]); });
}

void logic_xor(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b}, [](Ir& ir, Values v) { return ir.CreateXor(v[0], v[1]); });
}

void logic_not(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [](Ir& ir, Values v) { return ir.CreateNot(v[0]); });
}

void cnot(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a},
          [](Ir& ir, Values v) { return ir.CreateZExt(ir.CreateICmpEQ(v[0], integer(v[0], 0)), v[0]->getType()); });
}

void lop3(WarpEmitter& e, const Instruction& inst) {
    unsigned table = inst[Role::lut].value & 255;
    LaneValue result = e.apply({e.read(inst[Role::a]), e.read(inst[Role::b]), e.read(inst[Role::c])},
                               [=](Ir& ir, Values v) { return truth_table(ir, v[0], v[1], v[2], table); });
    const ptx::Operand& predicate = inst[Role::p];
    if (predicate.kind != ptx::Operand::Kind::none) {
        bool is_or = inst.has(Word::or_);
        LaneValue truth = e.apply({result, e.read(inst[Role::e])}, [=](Ir& ir, Values v) {
            Value* nonzero = ir.CreateICmpNE(v[0], integer(v[0], 0));
            return is_or ? ir.CreateOr(nonzero, v[1]) : ir.CreateAnd(nonzero, v[1]);
        });
        e.write(predicate, truth);
    }
    e.write(inst[Role::d], result);
}

void shf(WarpEmitter& e, const Instruction& inst) {
    bool left = inst.has(Word::l), clamp = inst.has(Word::clamp);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        // llvm.fshl and fshr wrap the amount; 32, which .clamp allows, selects the other word whole.
        llvm::Intrinsic::ID shift = left ? llvm::Intrinsic::fshl : llvm::Intrinsic::fshr;
        Value* shifted = ir.CreateIntrinsic(shift, {v[0]->getType()}, {v[1], v[0], v[2]});
        if (!clamp) return shifted;
        return ir.CreateSelect(ir.CreateICmpUGE(v[2], integer(v[2], 32)), left ? v[0] : v[1], shifted);
    });
}

void shl(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b},
          [](Ir& ir, Values v) { return shift_left(ir, v[0], shift_amount(ir, v[1], v[0])); });
}

void shr(WarpEmitter& e, const Instruction& inst) {
    bool sign = ptx::is_signed(inst.type());
    e.map(inst, {Role::a, Role::b},
          [=](Ir& ir, Values v) { return shift_right(ir, v[0], shift_amount(ir, v[1], v[0]), sign); });
}

void prmt(WarpEmitter& e, const Instruction& inst) {
    Word mode = inst.one_of({Word::f4e, Word::b4e, Word::rc8, Word::ecl, Word::ecr, Word::rc16});
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        Value* selectors = mode == Word::none ? v[2] : selectors_of_mode(ir, v[2], mode);
        return permute_bytes(ir, v[0], v[1], selectors);
    });
}

} // namespace ptarmigan::translator::lower
