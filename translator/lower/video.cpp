// SPDX-License-Identifier: Apache-2.0
// Video instructions (manual 9.7.18). The scalar ones work on 64-bit lanes that hold the manual's signed 33- and 34-bit
// numbers, the packed ones on 32-bit lanes, part by part; LLVM narrows both again where the bits allow.
// The H200 has none of them: its driver makes programs of them, which for scalar ones leave the manual in many corners.
// What they give was recorded (tests/recordings) and is followed; each corner says so.
#include "translator/lower/comparison.h"

namespace ptarmigan::translator::lower {

namespace {

using ptx::Operand;
using Primary = std::function<Value*(Ir&, Value*, Value*)>;

/// Parts of a register: how many bits one has, and the digits of the selector (video_selectors.h).
struct Parts {
    unsigned bits = 32, count = 0;
    std::uint64_t digits = 0;

    unsigned digit(unsigned place) const { return unsigned(digits >> 4 * place & 15); }
};

Parts parts_of(const Operand& operand) {
    if (operand.kind != Operand::Kind::reg || operand.component == 0) return {};
    return {operand.component & 0x10 ? 8u : 16u, operand.component & 15u, operand.value};
}

/// The whole register, without selector and sign.
LaneValue read_whole(WarpEmitter& e, const Operand& operand) {
    Operand plain = operand;
    plain.negated = false;
    if (plain.kind == Operand::Kind::reg) plain.component = 0;
    return e.read(plain);
}

/// Part `index` of a 32-bit word, extended to 32 bits.
Value* extract(Ir& ir, Value* word, unsigned bits, unsigned index, bool is_signed) {
    if (bits == 32) return word;
    Value* top = ir.CreateShl(word, integer(word, 32 - bits * (index + 1)));
    return is_signed ? ir.CreateAShr(top, integer(word, 32 - bits)) : ir.CreateLShr(top, integer(word, 32 - bits));
}

/// `part` put at place `index` of `word`, whose other bits stay.
Value* insert(Ir& ir, Value* word, Value* part, unsigned bits, unsigned index) {
    std::uint64_t mask = ((1ull << bits) - 1) << bits * index;
    Value* moved = ir.CreateAnd(ir.CreateShl(part, integer(word, bits * index)), integer(word, mask));
    return ir.CreateOr(moved, ir.CreateAnd(word, integer(word, ~mask)));
}

/// Likewise for scalar forms. Recorded: .h1 takes the upper half of the result, not its lower one.
Value* merge(Ir& ir, Value* word, Value* result, const Parts& part) {
    if (part.bits == 16 && part.digit(0) == 1) result = ir.CreateLShr(result, integer(result, 16));
    return insert(ir, word, result, part.bits, part.digit(0));
}

/// To the range of `bits` bits.
Value* saturate(Ir& ir, Value* value, unsigned bits, bool is_signed) {
    std::int64_t low = is_signed ? -(1ll << (bits - 1)) : 0;
    std::int64_t high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
    value = maximum(ir, value, integer(value, std::uint64_t(low)), true);
    return minimum(ir, value, integer(value, std::uint64_t(high)), true);
}

struct Signs {
    bool d, a, b;
};

/// vset has no type of the result. Packed results are unsigned; recorded: scalar ones have a's sign.
Signs signs_of(const Instruction& inst, bool comparison) {
    auto sign = [&](unsigned index) { return ptx::is_signed(inst.types[index]); };
    return comparison ? Signs{sign(0), sign(0), sign(1)} : Signs{sign(0), sign(1), sign(2)};
}

// --- primary operations ------------------------------------------------------------------------------------------

Value* add(Ir& ir, Value* a, Value* b) {
    return ir.CreateAdd(a, b);
}
Value* subtract(Ir& ir, Value* a, Value* b) {
    return ir.CreateSub(a, b);
}
Value* least(Ir& ir, Value* a, Value* b) {
    return minimum(ir, a, b, true);
}
Value* greatest(Ir& ir, Value* a, Value* b) {
    return maximum(ir, a, b, true);
}
Value* difference(Ir& ir, Value* a, Value* b) {
    return ir.CreateSub(greatest(ir, a, b), least(ir, a, b));
}

/// Half the sum, ties away from zero.
Value* average(Ir& ir, Value* a, Value* b) {
    Value* sum = ir.CreateAdd(a, b);
    Value* round = ir.CreateZExt(ir.CreateICmpSGE(sum, integer(sum, 0)), sum->getType());
    return ir.CreateAShr(ir.CreateAdd(sum, round), integer(sum, 1));
}

/// Lanes hold the values of both types exactly, so that all comparisons are signed.
Primary comparing(const Instruction& inst) {
    return [word = comparison_of(inst)](Ir& ir, Value* a, Value* b) -> Value* {
        using P = llvm::CmpInst;
        P::Predicate predicate = word == Word::eq   ? P::ICMP_EQ
                                 : word == Word::ne ? P::ICMP_NE
                                 : word == Word::lt ? P::ICMP_SLT
                                 : word == Word::le ? P::ICMP_SLE
                                 : word == Word::gt ? P::ICMP_SGT
                                                    : P::ICMP_SGE;
        return ir.CreateZExt(ir.CreateICmp(predicate, a, b), a->getType());
    };
}

/// Shifts of 33-bit numbers. Recorded: of what is shifted to the left 34 bits count where it is saturated, else all.
Primary shifting(const Instruction& inst, bool left) {
    return [left, wrap = inst.has(Word::wrap), sat = inst.has(Word::sat)](Ir& ir, Value* a, Value* b) {
        b = wrap ? ir.CreateAnd(b, integer(b, 31)) : minimum(ir, b, integer(b, 32), false);
        if (!left) return ir.CreateAShr(a, b);
        Value* shifted = ir.CreateShl(a, b);
        return sat ? ir.CreateAShr(ir.CreateShl(shifted, integer(a, 30)), integer(a, 30)) : shifted;
    };
}

// --- scalar forms ------------------------------------------------------------------------------------------------

enum class Family : std::uint8_t { sum, order, shift };

/// Recorded: sums, differences, minima and maxima have no upper limit where the result is an unsigned word (its low 32
/// bits stay), and are compared as unsigned numbers where it is a part, so that negative ones become the largest;
/// shifts are limited to words even where a part is written.
Value* saturate_scalar(Ir& ir, Value* value, Family family, const Parts& d, bool is_signed) {
    if (family == Family::shift) return saturate(ir, value, 32, is_signed);
    if (d.count != 0) return minimum(ir, value, integer(value, (1ull << (d.bits - is_signed)) - 1), false);
    return is_signed ? saturate(ir, value, 32, true) : maximum(ir, value, integer(value, 0), true);
}

/// Recorded: sums and saturated shifts are compared with c by their low 32 bits as a signed number; that number and c
/// are then signed or unsigned, all 64 bits, by the type of d.
Value* secondary(Ir& ir, Word operation, Value* value, Value* c, bool low_half, bool is_signed) {
    if (low_half) value = resize(ir, resize(ir, value, 32, false), 64, true);
    switch (operation) {
    case Word::add: return ir.CreateAdd(value, c);
    case Word::min: return minimum(ir, value, c, is_signed);
    default: return maximum(ir, value, c, is_signed);
    }
}

void scalar(WarpEmitter& e, const Instruction& inst, Family family, const Primary& primary, bool comparison = false) {
    Signs sign = signs_of(inst, comparison);
    Parts d = parts_of(inst[Role::d]), a = parts_of(inst[Role::a]), b = parts_of(inst[Role::b]);
    Parts c = parts_of(inst[Role::c]);
    Word second = inst.one_of({Word::add, Word::min, Word::max});
    bool sat = inst.has(Word::sat), merges = d.count != 0;
    bool low_half = family == Family::sum || (family == Family::shift && sat);
    auto build = [&](Ir& ir, Values v) {
        auto operand = [&](unsigned index, const Parts& part, bool is_signed) {
            return resize(ir, extract(ir, v[index], part.bits, part.digit(0), is_signed), 64, is_signed);
        };
        Value* value = primary(ir, operand(0, a, sign.a), operand(1, b, sign.b));
        if (sat) value = saturate_scalar(ir, value, family, d, sign.d);
        if (second != Word::none) value = secondary(ir, second, value, operand(2, c, sign.d), low_half, sign.d);
        value = resize(ir, value, 32, false);
        return merges ? merge(ir, v[2], value, d) : value;
    };
    LaneValue first = read_whole(e, inst[Role::a]), other = read_whole(e, inst[Role::b]);
    bool has_c = second != Word::none || merges;
    e.write(inst[Role::d],
            has_c ? e.apply({first, other, read_whole(e, inst[Role::c])}, build) : e.apply({first, other}, build));
}

// --- packed forms ------------------------------------------------------------------------------------------------

/// `count` parts per word. The elements of both sources are chosen among the parts of a (0 ...) and b (count ...).
void packed(WarpEmitter& e, const Instruction& inst, unsigned count, const Primary& primary, bool comparison = false) {
    Signs sign = signs_of(inst, comparison);
    unsigned bits = 32 / count;
    bool sat = inst.has(Word::sat), accumulate = inst.has(Word::add);
    Parts d = parts_of(inst[Role::d]), a = parts_of(inst[Role::a]), b = parts_of(inst[Role::b]);
    if (a.count == 0) a.digits = 0x3210;
    if (b.count == 0) b.digits = count == 2 ? 0x32 : 0x7654;
    unsigned mask = d.count == 0 ? 15 : 0;
    for (unsigned place = 0; place < d.count; ++place) mask |= 1u << d.digit(place);
    auto build = [&](Ir& ir, Values v) {
        auto element = [&](const Parts& selector, unsigned place, bool is_signed) {
            unsigned part = selector.digit(place);
            return extract(ir, v[part / count], bits, part % count, is_signed);
        };
        Value* result = v[2];
        for (unsigned place = 0; place < count; ++place) {
            if ((mask >> place & 1) == 0) continue;
            Value* value = primary(ir, element(a, place, sign.a), element(b, place, sign.b));
            if (sat) value = saturate(ir, value, bits, sign.d);
            result = accumulate ? ir.CreateAdd(result, value) : insert(ir, result, value, bits, place);
        }
        return result;
    };
    e.write(inst[Role::d],
            e.apply({read_whole(e, inst[Role::a]), read_whole(e, inst[Role::b]), read_whole(e, inst[Role::c])}, build));
}

} // namespace

void vadd(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::sum, add);
}
void vsub(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::sum, subtract);
}
void vabsdiff(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::order, difference);
}
void vmin(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::order, least);
}
void vmax(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::order, greatest);
}
void vshl(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::shift, shifting(inst, true));
}
void vshr(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::shift, shifting(inst, false));
}
void vset(WarpEmitter& e, const Instruction& inst) {
    scalar(e, inst, Family::order, comparing(inst), true);
}

// The 64-bit sum wraps; it is signed if a factor is or if anything is negated. Recorded: words are multiplied and added
// as signed ones whatever their types, which count where the sum is shifted and saturated.
void vmad(WarpEmitter& e, const Instruction& inst) {
    Parts a = parts_of(inst[Role::a]), b = parts_of(inst[Role::b]);
    bool sign_a = ptx::is_signed(inst.types[1]), sign_b = ptx::is_signed(inst.types[2]);
    bool minus_product = inst[Role::a].negated != inst[Role::b].negated, minus_c = inst[Role::c].negated;
    bool sign = sign_a || sign_b || minus_product || minus_c;
    bool po = inst.has(Word::po), sat = inst.has(Word::sat);
    unsigned scale = inst.has(Word::shr7) ? 7 : inst.has(Word::shr15) ? 15 : 0;
    auto build = [&](Ir& ir, Values v) {
        Value* x = resize(ir, extract(ir, v[0], a.bits, a.digit(0), sign_a), 64, true);
        Value* y = resize(ir, extract(ir, v[1], b.bits, b.digit(0), sign_b), 64, true);
        Value* z = resize(ir, v[2], 64, true);
        Value* product = ir.CreateMul(x, y);
        if (minus_product) product = ir.CreateNeg(product);
        Value* sum = minus_c ? ir.CreateSub(product, z) : ir.CreateAdd(product, z);
        if (po) sum = ir.CreateAdd(sum, integer(sum, 1));
        if (scale) sum = sign ? ir.CreateAShr(sum, integer(sum, scale)) : ir.CreateLShr(sum, integer(sum, scale));
        if (sat) sum = saturate(ir, sum, 32, sign);
        return resize(ir, sum, 32, false);
    };
    e.write(inst[Role::d],
            e.apply({read_whole(e, inst[Role::a]), read_whole(e, inst[Role::b]), read_whole(e, inst[Role::c])}, build));
}

void vadd2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, add);
}
void vsub2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, subtract);
}
void vavrg2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, average);
}
void vabsdiff2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, difference);
}
void vmin2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, least);
}
void vmax2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, greatest);
}
void vset2(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 2, comparing(inst), true);
}
void vadd4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, add);
}
void vsub4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, subtract);
}
void vavrg4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, average);
}
void vabsdiff4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, difference);
}
void vmin4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, least);
}
void vmax4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, greatest);
}
void vset4(WarpEmitter& e, const Instruction& inst) {
    packed(e, inst, 4, comparing(inst), true);
}

} // namespace ptarmigan::translator::lower
