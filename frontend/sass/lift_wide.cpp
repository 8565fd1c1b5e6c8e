// SPDX-License-Identifier: Apache-2.0
// Rules of whole pairs of registers: uniform sums of sm_90, integers of 64 bits of sm_120.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

bool is_zero_pair(const Operand& operand) {
    return (operand.kind == Kind::reg && operand.index == zero_register) ||
           (operand.kind == Kind::uniform && operand.index == zero_uniform) ||
           (operand.kind == Kind::immediate && operand.value == 0);
}

} // namespace

/// A pair as an integer; an immediate is one of 64 bits here, whose sign is extended.
std::string Lifter::read_wide(const Operand& operand) {
    if (operand.kind == Kind::immediate)
        return std::to_string(operand.negated ? 0 - operand.value : operand.inverted ? ~operand.value : operand.value);
    std::string text = wide_text(read_pair(operand));
    if (!operand.negated && !operand.inverted) return text;
    std::string result = wide_temporary();
    emit((operand.negated ? "neg.s64 " : "not.b64 ") + result + ", " + text);
    return result;
}

void Lifter::write_wide(const Operand& operand, const std::string& value) {
    const std::string copy = wide_temporary();
    emit("mov.b64 " + copy + ", " + value);
    write_pair(operand, name_wide(copy));
}

void Lifter::mov_wide(const Instruction& inst) {
    const auto bits = static_cast<std::uint64_t>(inst.operands[1].value);
    Operand half = inst.operands[0];
    if (half.index % 2 != 0) refuse_here("a pair at an odd register");
    write(half, constant(std::uint32_t(bits)));
    ++half.index;
    write(half, constant(std::uint32_t(bits >> 32)));
}

void Lifter::sel_wide(const Instruction& inst) {
    const std::string a = read_wide(inst.operands[1]), b = read_wide(inst.operands[2]);
    const Condition first = condition(inst.operands[3]);
    if (first.name.empty()) return write_wide(inst.operands[0], first.value ? a : b);
    const std::string result = wide_temporary();
    emit("selp.b64 " + result + ", " + a + ", " + b + ", " + as_register(first));
    write_pair(inst.operands[0], name_wide(result));
}

/// d = a + b and, with .X, a carry. Its own carry is that of the whole sum, where -x is ~x and 1.
void Lifter::iadd_wide(const Instruction& inst) {
    const Operand &d = inst.operands[0], &p = inst.operands[1];
    Operand a = inst.operands[2], b = inst.operands[3];
    if (p.index == true_predicate && !inst.has("X")) {
        if (!a.negated && b.negated && b.kind != Kind::immediate) {
            b.negated = false;
            const std::string difference = wide_temporary(), first = read_wide(a);
            emit("sub.s64 " + difference + ", " + first + ", " + read_wide(b));
            return write_pair(d, name_wide(difference));
        }
        if (is_zero_pair(b) && !is_zero_pair(a)) return write_wide(d, read_wide(a));
        const std::string sum = wide_temporary(), first = read_wide(a);
        emit("add.s64 " + sum + ", " + first + ", " + read_wide(b));
        return write_pair(d, name_wide(sum));
    }
    if (a.negated && b.negated) refuse_here();
    std::string one;
    for (Operand* operand : {&a, &b}) {
        if (!operand->negated) continue;
        operand->negated = false;
        operand->inverted = true;
        one = "1";
    }
    if (inst.has("X")) {
        if (!one.empty()) refuse_here();
        one = wide_temporary();
        emit("selp.b64 " + one + ", 1, 0, " + as_register(condition(inst.operands[4])));
    }
    const std::string first = read_wide(a), second = read_wide(b);
    std::string over;
    const auto plus = [&](const std::string& x, const std::string& y) {
        std::string total = wide_temporary();
        emit("add.s64 " + total + ", " + x + ", " + y);
        if (p.index == true_predicate) return total;
        const std::string carry = predicate_temporary();
        emit("setp.lt.u64 " + carry + ", " + total + ", " + y);
        if (over.empty()) {
            over = carry;
        } else {
            const std::string either = predicate_temporary();
            emit("or.pred " + either + ", " + over + ", " + carry);
            over = either;
        }
        return total;
    };
    std::string sum = plus(first, second);
    if (!one.empty()) sum = plus(sum, one);
    write_pair(d, name_wide(sum));
    write_predicate(p, over.empty() ? "%pfalse" : over);
}

/// FADD2, FMUL2, FFMA2: both halves of the pairs, each rounded once.
void Lifter::pair_of_floats(const Instruction& inst) {
    const bool multiplies = inst.form->id != FormId::fadd2, adds = inst.form->id != FormId::fmul2;
    if (inst.has("FMZ")) refuse_here();
    const std::string round = rounding(inst);
    const std::string opcode = (multiplies && adds ? "fma"
                                : multiplies       ? "mul"
                                                   : "add") +
                               round + (inst.has("FTZ") ? ".ftz" : "") + ".f32 ";
    std::string results[2];
    for (unsigned half = 0; half < 2; ++half) {
        std::string terms;
        for (unsigned i = 1; i < inst.operand_count; ++i) {
            Operand operand = inst.operands[i];
            if (operand.index != zero_register) {
                if (operand.index % 2 != 0) refuse_here("a pair at an odd register");
                operand.index = std::uint8_t(operand.index + half);
            }
            terms += ", " + read_float(operand);
        }
        results[half] = temporary();
        emit(opcode + results[half] + terms);
    }
    Operand d = inst.operands[0];
    if (d.index == zero_register) return;
    write(d, value_of(results[0]));
    ++d.index;
    write(d, value_of(results[1]));
}

/// min or max of pairs.
void Lifter::imnmx_wide(const Instruction& inst) {
    const Operand &chain = inst.operands[6], &which = inst.operands[5];
    if (inst.operands[0].index != true_predicate || inst.operands[1].index != true_predicate ||
        chain.index != true_predicate || !chain.negated || which.index != true_predicate)
        refuse_here();
    const std::string a = read_wide(inst.operands[3]), b = read_wide(inst.operands[4]), result = wide_temporary();
    emit((which.negated ? "max" : "min") + std::string(inst.has("U64") ? ".u64 " : ".s64 ") + result + ", " + a + ", " +
         b);
    write_pair(inst.operands[2], name_wide(result));
}

/// A sum of pairs, of which an immediate is the sign-extended lower half.
void Lifter::add_wide_uniform(const Instruction& inst) {
    if (inst.has("X") || inst.operands[1].index != true_predicate || inst.operands[2].index != true_predicate)
        refuse_here();
    std::string total;
    for (unsigned i = 3; i < 6; ++i) {
        const Operand& operand = inst.operands[i];
        if (is_zero_pair(operand)) continue;
        std::string term = wide_temporary();
        if (operand.kind == Kind::immediate)
            emit("mov.b64 " + term + ", " + std::to_string(operand.negated ? -operand.value : operand.value));
        else if (operand.negated)
            emit("neg.s64 " + term + ", " + wide_text(read_pair(operand)));
        else
            term = wide_text(read_pair(operand));
        add_wide(total, term);
    }
    if (total.empty()) {
        write_pair(inst.operands[0], join(constant(0), constant(0)));
        return;
    }
    write_pair(inst.operands[0], name_wide(total));
}

} // namespace ptarmigan::sass
