// SPDX-License-Identifier: Apache-2.0
// Rules of integer products.
#include "frontend/sass/lifter.h"

#include <bit>

namespace ptarmigan::sass {

using Kind = Operand::Kind;

void Lifter::add_wide(std::string& total, const std::string& term) {
    if (total.empty()) {
        total = term;
        return;
    }
    const std::string sum = wide_temporary();
    emit("add.u64 " + sum + ", " + total + ", " + term);
    total = sum;
}

void Lifter::imad(const Instruction& inst) {
    const Operand &d = inst.operands[0], &p = inst.operands[1];
    const Operand &left = inst.operands[2], &right = inst.operands[3], &addend = inst.operands[4];
    const bool is_move = is_zero(left) || is_zero(right);
    if (inst.has("X")) {
        // c + carry, as the upper half of a sum; with factors, a product below it.
        const Operand& in = inst.operands[5];
        if (is_move && p.index == true_predicate) {
            static const Operand nothing = [] {
                Operand zero;
                zero.kind = Kind::reg;
                zero.index = zero_register;
                return zero;
            }();
            const Carry carry = carry_in(in);
            // Which term of the lower half this is the upper half of is told by what is negated.
            for (unsigned place = 0; carry.known && place < 3; ++place) {
                std::array<const Operand*, 3> sources = {&nothing, &nothing, &nothing};
                bool fits = true;
                for (unsigned i = 0; i < 3; ++i)
                    if (i != place && (carry.negated[i] || (carry.is_shift))) fits = false;
                if (!fits || carry.negated[place] != addend.inverted) continue;
                sources[place] = &addend;
                Operand none;
                if (upper_half(inst, d, sources, in, none, false)) return;
                break;
            }
        }
        // IMAD.X with a factor 1: an addition of three.
        if (!is_move && !(right.kind == Kind::immediate && right.value == 1)) {
            if (p.index != true_predicate) refuse_here();
            const Value a = read(left), b = read(right), c = read(addend);
            const std::string product = temporary(), one = temporary(), sum = temporary();
            emit("mad.lo.s32 " + product + ", " + a.text + ", " + b.text + ", " + c.text);
            emit("selp.b32 " + one + ", 1, 0, " + as_register(condition(in)));
            emit("add.s32 " + sum + ", " + product + ", " + one);
            write(d, value_of(sum));
            return;
        }
        if (p.index != true_predicate) refuse_here("a carry");
        if (!is_move) {
            Operand none;
            static const Operand nothing = [] {
                Operand zero;
                zero.kind = Kind::reg;
                zero.index = zero_register;
                return zero;
            }();
            if (upper_half(inst, d, {&left, &addend, &nothing}, in, none, false)) return;
        }
        const Value c = read(addend);
        std::string sum = c.text;
        if (!is_move) {
            sum = temporary();
            emit("add.s32 " + sum + ", " + read(left).text + ", " + c.text);
        }
        const std::string one = temporary(), result = temporary();
        emit("selp.b32 " + one + ", 1, 0, " + as_register(condition(in)));
        emit("add.s32 " + result + ", " + sum + ", " + one);
        write(d, value_of(result));
        return;
    }
    if (p.index != true_predicate) refuse_here("a carry");
    const Value c = read(addend);
    if (is_move) {
        write(d, c);
        return;
    }
    const Value a = read(left), b = read(right);
    if (a.constant && b.constant && c.constant) { // of the launch's numbers: by the size of a cluster, which is 0 here
        write(d, constant(*a.constant * *b.constant + *c.constant));
        return;
    }
    const std::string result = temporary();
    const bool no_addend = c.constant && *c.constant == 0;
    if (b.constant && *b.constant == 1)
        emit("add.s32 " + result + ", " + a.text + ", " + c.text);
    else if (no_addend && b.constant && std::has_single_bit(*b.constant))
        emit("shl.b32 " + result + ", " + a.text + ", " + std::to_string(std::countr_zero(*b.constant)));
    else if (no_addend)
        emit("mul.lo.s32 " + result + ", " + a.text + ", " + b.text);
    else
        emit("mad.lo.s32 " + result + ", " + a.text + ", " + b.text + ", " + c.text);
    write(d, value_of(result));
}

void Lifter::imad_wide(const Instruction& inst) {
    const Operand &d = inst.operands[0], &p = inst.operands[1], &addend = inst.operands[4];
    const std::string type = inst.has("U32") ? ".u32 " : ".s32 ";
    const Value a = read(inst.operands[2]), b = read(inst.operands[3]);
    const bool has_carries = inst.has("X") || p.index != true_predicate;
    if ((addend.negated || addend.inverted) && (has_carries || addend.inverted)) refuse_here();
    if (addend.kind == Kind::immediate && !is_zero(addend)) refuse_here("64 bits of a constant"); // nobody writes it
    int c = is_zero(addend) ? -1 : read_pair(addend);
    if (c >= 0 && addend.negated) {
        const std::string taken_away = wide_temporary();
        emit("neg.s64 " + taken_away + ", " + wide_text(c));
        c = name_wide(taken_away);
    }
    std::string product = wide_temporary();
    if (!has_carries) {
        if (c < 0)
            emit("mul.wide" + type + product + ", " + a.text + ", " + b.text);
        else
            emit("mad.wide" + type + product + ", " + a.text + ", " + b.text + ", " + wide_text(c));
        write_pair(d, name_wide(product));
        return;
    }
    emit("mul.wide" + type + product + ", " + a.text + ", " + b.text);
    std::string over;
    const auto add = [&](const std::string& term) {
        const std::string sum = wide_temporary(), carry = predicate_temporary();
        emit("add.u64 " + sum + ", " + product + ", " + term);
        emit("setp.lt.u64 " + carry + ", " + sum + ", " + product);
        if (over.empty())
            over = carry;
        else {
            const std::string either = predicate_temporary();
            emit("or.pred " + either + ", " + over + ", " + carry);
            over = either;
        }
        product = sum;
    };
    if (c >= 0) add(wide_text(c));
    if (inst.has("X")) {
        const std::string one = wide_temporary();
        emit("selp.b64 " + one + ", 1, 0, " + as_register(condition(inst.operands[5])));
        add(one);
    }
    write_pair(d, name_wide(product));
    if (p.index != true_predicate) write_predicate(p, over.empty() ? "%pfalse" : over);
}

/// The upper half of a * b + c, where c is a pair.
void Lifter::imad_hi(const Instruction& inst) {
    const Operand &d = inst.operands[0], &p = inst.operands[1], &addend = inst.operands[4];
    const Value a = read(inst.operands[2]), b = read(inst.operands[3]);
    if (inst.has("X") || addend.inverted || (addend.negated && p.index != true_predicate)) refuse_here();
    const std::string type = inst.has("U32") ? ".u32 " : ".s32 ";
    if (is_zero(addend)) {
        const std::string high = temporary();
        emit("mul.hi" + type + high + ", " + a.text + ", " + b.text);
        write(d, value_of(high));
        write_predicate(p, false);
        return;
    }
    if (addend.kind == Kind::immediate) refuse_here("64 bits of a constant");
    int c = read_pair(addend);
    if (addend.negated) {
        const std::string negated = wide_temporary();
        emit("neg.s64 " + negated + ", " + wide_text(c));
        c = name_wide(negated);
    }
    const std::string sum = wide_temporary();
    std::string over;
    if (p.index == true_predicate) {
        emit("mad.wide" + type + sum + ", " + a.text + ", " + b.text + ", " + wide_text(c));
    } else {
        const std::string product = wide_temporary();
        over = predicate_temporary();
        emit("mul.wide" + type + product + ", " + a.text + ", " + b.text);
        emit("add.u64 " + sum + ", " + product + ", " + wide_text(c));
        emit("setp.lt.u64 " + over + ", " + sum + ", " + product);
    }
    const Value high = high_half(name_wide(sum));
    write(d, value_of(high.text));
    if (!over.empty()) write_predicate(p, over);
}

void Lifter::idp(const Instruction& inst) {
    const bool a_signed = inst.code.bit(73), b_signed = inst.code.bit(74);
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const std::string result = temporary();
    emit(std::string(inst.has("4A")      ? "dp4a."
                     : inst.has("2A.LO") ? "dp2a.lo."
                                         : "dp2a.hi.") +
         (a_signed ? "s32" : "u32") + (b_signed ? ".s32 " : ".u32 ") + result + ", " + a.text + ", " + b.text + ", " +
         c.text);
    write(inst.operands[0], value_of(result));
}

} // namespace ptarmigan::sass
