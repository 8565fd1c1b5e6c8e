// SPDX-License-Identifier: Apache-2.0
// Rules of integer sums: of three with carries, pairs of words that are 64-bit sums, shifted ones.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

using Kind = Operand::Kind;

/// a + b + c. `has_carries`: somebody asks for them, and the sum of constants is a statement, too.
Value Lifter::sum_of_three(std::span<const Operand* const, 3> sources, std::span<const Value, 3> plain,
                           bool has_carries) {
    std::uint32_t known = 0;
    bool is_constant = true;
    std::string result;
    for (unsigned i = 0; i < 3; ++i) {
        if (!plain[i].constant) {
            is_constant = false;
            continue;
        }
        known += sources[i]->negated ? 0u - *plain[i].constant : *plain[i].constant;
    }
    if (is_constant && !has_carries) return constant(known);
    Value value;
    // Positive terms first, then what is taken away, then constants.
    for (unsigned pass = 0; pass < 2; ++pass)
        for (unsigned i = 0; i < 3; ++i) {
            if (plain[i].constant || sources[i]->negated != (pass == 1)) continue;
            if (result.empty() && pass == 0) {
                result = plain[i].text;
                value = plain[i];
                continue;
            }
            const std::string sum = temporary();
            if (pass == 0)
                emit("add.s32 " + sum + ", " + result + ", " + plain[i].text);
            else
                emit("sub.s32 " + sum + ", " + (result.empty() ? std::string("0") : result) + ", " + plain[i].text);
            result = sum;
            value = value_of(sum);
        }
    if (known != 0 || result.empty()) {
        const std::string sum = temporary();
        emit("add.s32 " + sum + ", " + (result.empty() ? std::string("0") : result) + ", " +
             std::to_string(std::int32_t(known)));
        value = value_of(sum);
    }
    return value;
}

/// As it is now, for the upper half to find.
Value Lifter::kept_copy(const Value& source) {
    Value copy = source;
    if (source.constant) return copy;
    copy.text = temporary();
    emit("mov.b32 " + copy.text + ", " + source.text);
    return copy;
}

/// d = a + b + c and, with .X, the carries of the lower half.
void Lifter::iadd3(const Instruction& inst) {
    if (inst.has("X")) return add_upper_halves(inst);
    const Operand* const sources[] = {&inst.operands[3], &inst.operands[4], &inst.operands[5]};
    const Value plain[] = {read_plain(*sources[0]), read_plain(*sources[1]), read_plain(*sources[2])};
    const bool has_carries = inst.operands[1].index != true_predicate || inst.operands[2].index != true_predicate;
    const Value value = sum_of_three(sources, plain, has_carries);
    if (has_carries)
        write_with_carries(inst, plain, value);
    else
        write(inst.operands[0], value);
}

/// The sum of `plain` and its carries: of a and b, and of that and c. Negated terms are ~x with a carry in.
void Lifter::write_with_carries(const Instruction& inst, std::span<const Value, 3> plain, const Value& value) {
    const Operand &d = inst.operands[0], &first = inst.operands[1], &second = inst.operands[2];
    const Operand* const sources[] = {&inst.operands[3], &inst.operands[4], &inst.operands[5]};
    Carry carry;
    Value* parts[] = {&carry.a, &carry.b, &carry.c};
    std::string total;
    for (unsigned i = 0; i < 3; ++i) {
        *parts[i] = kept_copy(plain[i]);
        carry.negated[i] = sources[i]->negated;
        const std::string wide = wide_temporary();
        // -x contributes 2^32 - x, also for x = 0: hardware adds ~x and 1 and counts that carry.
        if (parts[i]->constant)
            emit("mov.b64 " + wide + ", " +
                 hexadecimal(sources[i]->negated ? 0x100000000ull - *parts[i]->constant
                                                 : std::uint64_t(*parts[i]->constant)));
        else {
            emit("cvt.u64.u32 " + wide + ", " + parts[i]->text);
            if (sources[i]->negated) emit("sub.u64 " + wide + ", 0x100000000, " + wide);
        }
        add_wide(total, wide);
    }
    const Value over = high_half(name_wide(total));
    const std::string at_least_one = predicate_temporary(), two = predicate_temporary();
    emit("setp.ge.u32 " + at_least_one + ", " + over.text + ", 1");
    emit("setp.ge.u32 " + two + ", " + over.text + ", 2");
    // The two carries of three terms only ever count together: the first is there from one on, the second from two.
    bool has_zero = false;
    for (unsigned i = 0; i < 3; ++i)
        if (is_zero(*sources[i]) && !sources[i]->negated) has_zero = true;
    const bool has_both = first.index != true_predicate && second.index != true_predicate;
    if (!has_zero && !has_both) refuse_here("one carry of three terms");
    write(d, value);
    write_predicate(first, at_least_one);
    write_predicate(second, has_both ? two : at_least_one);
    if (is_unguarded(inst)) {
        carry.known = true;
        carry.result = index_of(d);
        carry.result_number =
            carry.result < register_count && carry.result != zero_register ? registers_[carry.result].number : 0;
        carry.number = has_both ? next_number_++ : 0;
        for (const Operand* p : {&first, &second})
            if (p->index != true_predicate) carry_in(*p) = carry;
    }
}

void Lifter::add_upper_halves(const Instruction& inst) {
    const Operand &d = inst.operands[0], &first = inst.operands[1], &second = inst.operands[2];
    const Operand* const sources[] = {&inst.operands[3], &inst.operands[4], &inst.operands[5]};
    const bool has_carries = first.index != true_predicate || second.index != true_predicate;
    const Operand &in = inst.operands[6], &in2 = inst.operands[7];
    const Condition first_in = condition(in), second_in = condition(in2);
    if (upper_half(inst, d, {sources[0], sources[1], sources[2]}, in, in2, has_carries)) return;
    std::string result;
    for (unsigned i = 0; i < 3; ++i) {
        const Value part = read(*sources[i]);
        if (result.empty()) {
            result = part.text;
            continue;
        }
        const std::string sum = temporary();
        emit("add.s32 " + sum + ", " + result + ", " + part.text);
        result = sum;
    }
    if (has_carries) { // by 64-bit sums
        std::string total;
        for (unsigned i = 0; i < 3; ++i) {
            const Value part = read(*sources[i]);
            const std::string wide = wide_temporary();
            emit("cvt.u64.u32 " + wide + ", " + part.text);
            add_wide(total, wide);
        }
        for (const Condition& carry : {first_in, second_in}) {
            if (carry.name.empty() && !carry.value) continue;
            const std::string one = wide_temporary();
            emit("selp.b64 " + one + ", 1, 0, " + as_register(carry));
            add_wide(total, one);
        }
        const bool has_both = first.index != true_predicate && second.index != true_predicate;
        bool has_zero = false;
        for (unsigned i = 0; i < 3; ++i)
            if (is_zero(*sources[i]) && !sources[i]->inverted) has_zero = true;
        if (!has_zero && !has_both) refuse_here("one carry of three terms");
        const int wide = name_wide(total);
        const Value low = low_half(wide), high = high_half(wide);
        const std::string over = predicate_temporary();
        emit("setp.ge.u32 " + over + ", " + high.text + ", 1");
        const std::string twice = predicate_temporary();
        emit("setp.ge.u32 " + twice + ", " + high.text + ", 2");
        write(d, value_of(low.text));
        write_predicate(first, over);
        write_predicate(second, has_both ? twice : over);
        return;
    }
    for (const Condition& carry : {first_in, second_in}) {
        if (carry.name.empty() && !carry.value) continue;
        const std::string one = temporary(), sum = temporary();
        emit("selp.b32 " + one + ", 1, 0, " + as_register(carry));
        emit("add.s32 " + sum + ", " + result + ", " + one);
        result = sum;
    }
    write(d, value_of(result));
}

bool Lifter::is_unguarded(const Instruction& inst) {
    return inst.guard == true_predicate && !inst.guard_negated;
}

/// The upper half of a sum whose lower half left its carry in `in`: both halves become one 64-bit sum.
bool Lifter::upper_half(const Instruction& inst, const Operand& d, std::array<const Operand*, 3> sources,
                        const Operand& in, const Operand& in2, bool has_carries) {
    if (has_carries || !is_unguarded(inst) || in.negated || in.index == true_predicate) return false;
    const Carry carry = carry_in(in);
    const bool has_second = in2.kind != Kind::none && !(in2.index == true_predicate && in2.negated);
    if (has_second != (carry.number != 0)) return false;
    if (has_second) {
        const Carry& second = carry_in(in2);
        if (in2.negated || !second.known || second.number != carry.number || in2.index == in.index) return false;
    }
    const unsigned index = index_of(d);
    if (!carry.known || carry.is_shift) return false;
    // Terms of the upper half in any order: each belongs to one of the lower half, negated as that is.
    const Value low[3] = {carry.a, carry.b, carry.c};
    Value high[3];
    for (unsigned i = 0; i < 3; ++i) high[i] = read_plain(*sources[i]);
    // A generic address of shared memory stays in its window.
    const auto is_below_zero = [&](unsigned i) {
        return high[i].constant && *high[i].constant == 0xffffffff && low[i].constant &&
               std::int32_t(*low[i].constant) < 0;
    };
    if (high[0].is_window_high || high[1].is_window_high || high[2].is_window_high) {
        unsigned windows = 0;
        bool stays = true;
        for (unsigned i = 0; i < 3; ++i) {
            windows += high[i].is_window_high;
            stays = stays && !sources[i]->negated && !sources[i]->inverted && !carry.negated[i] &&
                    (high[i].is_window_high || (high[i].constant && *high[i].constant == 0) || is_below_zero(i));
        }
        if (stays && windows == 1) {
            write_index(index, shared_window_high());
            return true;
        }
    }
    // Any order has the same sum. Halves of one value belong together.
    for (unsigned i = 0; i < 3; ++i)
        for (unsigned k = 0; k < 3; ++k)
            if (k != i && high[i].wide >= 0 && high[i].is_high && low[k].wide == high[i].wide && !low[k].is_high &&
                low[i].wide != high[i].wide && carry.negated[i] == carry.negated[k]) {
                std::swap(sources[i], sources[k]);
                std::swap(high[i], high[k]);
            }
    // Registers belong to registers, constants to constants.
    for (unsigned i = 0; i < 3; ++i)
        for (unsigned k = 0; k < 3; ++k)
            if (!low[i].constant && high[i].constant && low[k].constant && !high[k].constant &&
                carry.negated[i] == carry.negated[k]) {
                std::swap(sources[i], sources[k]);
                std::swap(high[i], high[k]);
            }
    std::string total;
    for (const bool negated : {false, true})
        for (unsigned i = 0; i < 3; ++i) {
            if (carry.negated[i] != negated) continue;
            if (sources[i]->inverted != negated || sources[i]->negated) return false;
            const bool is_nothing =
                low[i].constant && *low[i].constant == 0 && high[i].constant && *high[i].constant == 0;
            if (is_nothing) continue;
            const int wide = join(low[i], high[i]);
            if (total.empty() && !negated) {
                total = wide_text(wide);
                continue;
            }
            const std::string sum = wide_temporary();
            emit((negated ? "sub.s64 " : "add.s64 ") + sum + ", " + (total.empty() ? std::string("0") : total) + ", " +
                 wide_text(wide));
            total = sum;
        }
    if (total.empty()) return false;
    finish_pair(index, carry, name_wide(total));
    return true;
}

/// The lower half is in its register already: if that is the one before `index`, both are now halves of `wide`.
void Lifter::finish_pair(unsigned index, const Carry& carry, int wide) {
    if (index % 2 == 1 && carry.result + 1 == index && index < register_count && carry.result_number != 0 &&
        registers_[carry.result].number == carry.result_number) {
        Operand pair;
        pair.kind = index >= uniform_base ? Kind::uniform : Kind::reg;
        pair.index = std::uint8_t((index - 1) % uniform_base);
        write_pair(pair, wide);
        return;
    }
    write_index(index, high_half(wide));
    // The lower half's register holds the other half, wherever it is, and is seen to.
    if (carry.result < register_count && carry.result_number != 0 &&
        registers_[carry.result].number == carry.result_number && carry.result != index) {
        emit("cvt.u32.u64 " + register_name(carry.result) + ", " + wide_text(wide));
        registers_[carry.result].wide = wide;
        registers_[carry.result].is_high = false;
    }
}

void Lifter::viadd(const Instruction& inst) {
    if (inst.has("S32")) { // sm_120, with saturation only
        Operand left = inst.operands[1], right = inst.operands[2];
        if (!inst.has("ISAT") || (left.negated && right.negated)) refuse_here();
        if (left.negated) std::swap(left, right);
        const bool is_difference = right.negated;
        right.negated = false;
        const std::string result = temporary();
        emit((is_difference ? "sub.sat.s32 " : "add.sat.s32 ") + result + ", " + read(left).text + ", " +
             read(right).text);
        write(inst.operands[0], value_of(result));
        return;
    }
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]);
    if (inst.has("16x2")) {
        if (inst.operands[1].negated || inst.operands[2].negated || inst.has("ISAT")) refuse_here();
        const std::string sums = temporary();
        emit("add.u16x2 " + sums + ", " + in_register(a) + ", " + in_register(b));
        write(inst.operands[0], value_of(sums));
        return;
    }
    if (a.constant && b.constant) {
        write(inst.operands[0], constant(*a.constant + *b.constant));
        return;
    }
    const std::string result = temporary();
    emit("add.s32 " + result + ", " + a.text + ", " + b.text);
    write(inst.operands[0], value_of(result));
}

/// LEA.X: a << shift, b and a carry.
void Lifter::add_shifted_with_carry(const Instruction& inst) {
    const Operand &carry_out = inst.operands[1], &a = inst.operands[2], &b = inst.operands[3];
    if (a.inverted || a.negated || b.negated) refuse_here();
    const std::string shifted = temporary(), one = wide_temporary(), sum = wide_temporary(), term = wide_temporary(),
                      result = temporary(), over = temporary(), carries = predicate_temporary();
    emit("shl.b32 " + shifted + ", " + read(a).text + ", " + std::to_string(inst.operands[5].value));
    emit("cvt.u64.u32 " + sum + ", " + shifted);
    emit("cvt.u64.u32 " + term + ", " + in_register(read(b)));
    emit("add.u64 " + sum + ", " + sum + ", " + term);
    emit("selp.b64 " + one + ", 1, 0, " + as_register(condition(inst.operands[6])));
    emit("add.u64 " + sum + ", " + sum + ", " + one);
    emit("mov.b64 {" + result + ", " + over + "}, " + sum);
    emit("setp.ne.s32 " + carries + ", " + over + ", 0");
    write(inst.operands[0], value_of(result));
    write_predicate(carry_out, carries);
}

void Lifter::lea(const Instruction& inst) {
    if (inst.has("HI"))
        add_shifted_above(inst);
    else
        add_shifted(inst);
}

/// (a << shift) + b, where either may be negated.
void Lifter::add_shifted(const Instruction& inst) {
    const Operand &d = inst.operands[0], &carry_out = inst.operands[1], &a = inst.operands[2], &b = inst.operands[3];
    const auto shift = unsigned(inst.operands[5].value);
    const Value low = read_plain(a), addend = read_plain(b);
    if (inst.has("SX32")) refuse_here();
    if (inst.has("X")) {
        add_shifted_with_carry(inst);
        return;
    }
    if (a.negated && b.negated) refuse_here();
    std::string shifted = low.text;
    if (shift != 0) {
        shifted = temporary();
        emit("shl.b32 " + shifted + ", " + low.text + ", " + std::to_string(shift));
    }
    const std::string result = temporary();
    if (a.negated) { // ~a and 1, shifted: what comes out is right for the upper half of a difference
        emit("sub.s32 " + result + ", " + addend.text + ", " + shifted);
        const std::string over = predicate_temporary();
        if (carry_out.index != true_predicate) emit("setp.ge.u32 " + over + ", " + addend.text + ", " + shifted);
        write(d, value_of(result));
        if (carry_out.index != true_predicate) write_predicate(carry_out, over);
        return;
    }
    emit((b.negated ? "sub.s32 " : "add.s32 ") + result + ", " + shifted + ", " + addend.text);
    if (b.negated && carry_out.index != true_predicate) { // ~b and 1 are added
        const std::string over = predicate_temporary();
        emit("setp.ge.u32 " + over + ", " + shifted + ", " + addend.text);
        write(d, value_of(result));
        write_predicate(carry_out, over);
        return;
    }
    if (carry_out.index == true_predicate) {
        write(d, value_of(result));
        return;
    }
    Carry carry;
    carry.is_shift = true;
    carry.shift = shift;
    carry.a = kept_copy(low);
    carry.b = kept_copy(addend);
    const std::string over = predicate_temporary();
    emit("setp.lt.u32 " + over + ", " + result + ", " + shifted);
    write(d, value_of(result));
    write_predicate(carry_out, over);
    if (is_unguarded(inst)) {
        carry.known = true;
        carry.result = index_of(d);
        carry.result_number = carry.result != zero_register ? registers_[carry.result].number : 0;
        carry_in(carry_out) = carry;
    }
}

/// The upper half of c:a << shift, and b and, with .X, the carry of the lower half.
void Lifter::add_shifted_above(const Instruction& inst) {
    const Operand &d = inst.operands[0], &carry_out = inst.operands[1], &a = inst.operands[2], &b = inst.operands[3],
                  &c = inst.operands[4], &in = inst.operands[6];
    const auto shift = unsigned(inst.operands[5].value);
    const bool has_carry = carry_out.index != true_predicate;
    if (a.negated || (a.inverted && !inst.has("X")) || (has_carry && (a.inverted || b.negated || b.inverted)))
        refuse_here();
    const Value low = read_plain(a), addend = read(b);
    const auto widened = [&]() {
        if (!inst.has("SX32")) return join(low, read_plain(c));
        const std::string wide = wide_temporary();
        emit("cvt.s64.s32 " + wide + ", " + low.text);
        return name_wide(wide);
    };
    if (inst.has("X") && !has_carry) {
        const Carry carry = carry_in(in);
        if (is_unguarded(inst) && !a.inverted && !b.inverted && !in.negated && in.index != true_predicate &&
            carry.known && carry.is_shift && carry.shift == shift &&
            (carry.a.number == low.number && low.number != 0)) {
            std::string wide = wide_text(widened());
            if (shift != 0) {
                const std::string shifted = wide_temporary();
                emit("shl.b64 " + shifted + ", " + wide + ", " + std::to_string(shift));
                wide = shifted;
            }
            const std::string total = wide_temporary();
            emit("add.s64 " + total + ", " + wide + ", " + wide_text(join(carry.b, addend)));
            finish_pair(index_of(d), carry, name_wide(total));
            return;
        }
        // The sign of a number of 32 bits as its upper half, in a sum whose lower half is IADD3's: arrays of bytes.
        const bool is_sign = is_unguarded(inst) && inst.has("SX32") && shift == 1 && !a.inverted && !b.inverted &&
                             !in.negated && in.index != true_predicate;
        const bool is_pair = carry.known && !carry.is_shift && carry.number == 0 && !carry.negated[0] &&
                             !carry.negated[1] && !carry.negated[2] && carry.c.constant && *carry.c.constant == 0;
        if (is_sign && is_pair && low.number != 0 && (carry.a.number == low.number || carry.b.number == low.number)) {
            const Value& other = carry.a.number == low.number ? carry.b : carry.a;
            const std::string total = wide_temporary();
            emit("add.s64 " + total + ", " + wide_text(widened()) + ", " + wide_text(join(other, addend)));
            finish_pair(index_of(d), carry, name_wide(total));
            return;
        }
    }
    Value high;
    const bool is_sign_extended = inst.has("SX32");
    const Value above = is_sign_extended ? Value() : read_plain(c);
    if (shift != 0 && (is_sign_extended || above.constant == 0u)) { // a shift to the right, of a number of 32 bits
        high = value_of(temporary());
        emit((is_sign_extended ? "shr.s32 " : "shr.u32 ") + high.text + ", " + in_register(low) + ", " +
             std::to_string(32 - shift));
    } else {
        const std::string shifted = wide_temporary();
        emit("shl.b64 " + shifted + ", " + wide_text(widened()) + ", " + std::to_string(shift));
        high = high_half(name_wide(shifted));
    }
    if (a.inverted) { // both registers are; with the carry of -a it is the upper half of a difference
        const std::string inverse = temporary();
        emit("not.b32 " + inverse + ", " + high.text);
        high = value_of(inverse);
    }
    std::string result = temporary();
    emit("add.s32 " + result + ", " + high.text + ", " + addend.text);
    std::string over;
    if (has_carry) {
        over = predicate_temporary();
        emit("setp.lt.u32 " + over + ", " + result + ", " + high.text);
    }
    if (inst.has("X")) {
        const std::string one = temporary(), sum = temporary();
        emit("selp.b32 " + one + ", 1, 0, " + as_register(condition(in)));
        emit("add.s32 " + sum + ", " + result + ", " + one);
        if (has_carry) { // at most one of the two sums carries
            const std::string again = predicate_temporary(), either = predicate_temporary();
            emit("setp.lt.u32 " + again + ", " + sum + ", " + one);
            emit("or.pred " + either + ", " + over + ", " + again);
            over = either;
        }
        result = sum;
    }
    write(d, value_of(result));
    if (has_carry) write_predicate(carry_out, over);
}

} // namespace ptarmigan::sass
