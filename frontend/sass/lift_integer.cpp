// SPDX-License-Identifier: Apache-2.0
// Rules of integer arithmetic and comparisons; moves, logic and predicates are in lift_logic.cpp.
#include "frontend/sass/lifter.h"

#include <bit>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

bool is_zero(const Operand& operand) {
    return (operand.kind == Kind::reg && operand.index == zero_register) ||
           (operand.kind == Kind::uniform && operand.index == zero_uniform) ||
           (operand.kind == Kind::immediate && operand.value == 0);
}

} // namespace

std::string Lifter::compare_word(const Instruction& inst) {
    static constexpr const char* words[][2] = {
        {"LT", "lt"},   {"EQ", "eq"},   {"LE", "le"},   {"GT", "gt"},   {"NE", "ne"},   {"GE", "ge"},   {"NUM", "num"},
        {"NAN", "nan"}, {"LTU", "ltu"}, {"EQU", "equ"}, {"LEU", "leu"}, {"GTU", "gtu"}, {"NEU", "neu"}, {"GEU", "geu"}};
    for (const auto& word : words)
        if (inst.has(word[0])) return word[1];
    return {};
}

/// first = result OP with, second = not result OP with.
void Lifter::combine(const Instruction& inst, const std::string& result, const Operand& first, const Operand& second,
                     const Operand& with) {
    const Condition other = condition(with);
    const std::string operation = inst.has("OR") ? "or" : inst.has("XOR") ? "xor" : "and";
    const auto one = [&](const std::string& value) {
        if (other.name.empty()) {
            if (operation == "and") return other.value ? value : std::string("%pfalse");
            if (operation == "or") return other.value ? std::string("%ptrue") : value;
        }
        const std::string combined = predicate_temporary();
        emit(operation + ".pred " + combined + ", " + value + ", " + as_register(other));
        return combined;
    };
    const bool needs_second = second.index != true_predicate;
    std::string inverse;
    if (needs_second) {
        inverse = predicate_temporary();
        emit("not.pred " + inverse + ", " + result);
        inverse = one(inverse);
    }
    const std::string value = one(result);
    // A source may be a destination, too.
    if (needs_second) {
        const std::string copy = predicate_temporary();
        emit("mov.pred " + copy + ", " + inverse);
        write_predicate(first, value);
        write_predicate(second, copy);
    } else {
        write_predicate(first, value);
    }
}

void Lifter::isetp(const Instruction& inst) {
    const std::string word = compare_word(inst);
    std::string result;
    if (inst.has("S64") || inst.has("U64")) {
        if (inst.has("EX") || word.empty()) refuse_here();
        const std::string first = read_wide(inst.operands[2]), second = read_wide(inst.operands[3]);
        result = predicate_temporary();
        emit("setp." + word + (inst.has("U64") ? ".u64 " : ".s64 ") + result + ", " + first + ", " + second);
        return combine(inst, result, inst.operands[0], inst.operands[1], inst.operands[4]);
    }
    const std::string type = inst.has("U32") ? ".u32 " : ".s32 ";
    const Value a = read(inst.operands[2]), b = read(inst.operands[3]);
    if (word.empty()) {
        result = inst.has("T") ? "%ptrue" : "%pfalse";
    } else {
        result = predicate_temporary();
        emit("setp." + word + type + result + ", " + a.text + ", " + b.text);
    }
    if (inst.has("EX")) { // upper halves: where they are equal the lower ones, compared before, decide
        if (word.empty()) refuse_here();
        if (a.constant && b.constant && *a.constant == *b.constant) {
            combine(inst, as_register(condition(inst.operands[5])), inst.operands[0], inst.operands[1],
                    inst.operands[4]);
            return;
        }
        const std::string equal = predicate_temporary(), low = as_register(condition(inst.operands[5])),
                          by_low = predicate_temporary(), unequal = predicate_temporary(),
                          by_high = predicate_temporary(), both = predicate_temporary();
        emit("setp.eq.s32 " + equal + ", " + a.text + ", " + b.text);
        emit("and.pred " + by_low + ", " + equal + ", " + low);
        emit("not.pred " + unequal + ", " + equal);
        emit("and.pred " + by_high + ", " + unequal + ", " + result);
        emit("or.pred " + both + ", " + by_low + ", " + by_high);
        result = both;
    }
    combine(inst, result, inst.operands[0], inst.operands[1], inst.operands[4]);
}

/// d = a + b + c and, with .X, the carries of the lower half.
void Lifter::iadd3(const Instruction& inst) {
    const Operand &d = inst.operands[0], &first = inst.operands[1], &second = inst.operands[2];
    const Operand* sources[] = {&inst.operands[3], &inst.operands[4], &inst.operands[5]};
    const bool has_carries = first.index != true_predicate || second.index != true_predicate;
    if (!inst.has("X")) {
        Value plain[3];
        for (unsigned i = 0; i < 3; ++i) plain[i] = read_plain(*sources[i]);
        std::uint32_t known = 0;
        bool is_constant = true;
        std::vector<std::string> terms;
        std::string result;
        for (unsigned i = 0; i < 3; ++i) {
            if (!plain[i].constant) {
                is_constant = false;
                continue;
            }
            known += sources[i]->negated ? 0u - *plain[i].constant : *plain[i].constant;
        }
        Value value;
        if (is_constant && !has_carries) {
            write(d, constant(known));
            return;
        }
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
        if (!has_carries) {
            write(d, value);
            return;
        }
        // The carries: of the sum of a and b, and of that and c. Negated terms are ~x with a carry in.
        Carry carry;
        const auto saved = [&](const Value& source) {
            Value copy = source;
            if (source.constant) return copy;
            copy.text = temporary();
            emit("mov.b32 " + copy.text + ", " + source.text);
            return copy;
        };
        Value* parts[] = {&carry.a, &carry.b, &carry.c};
        std::string total;
        for (unsigned i = 0; i < 3; ++i) {
            *parts[i] = saved(plain[i]);
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
                if (p->index != true_predicate)
                    carries_[p->index + (p->kind == Kind::uniform_predicate ? 8u : 0u)] = carry;
        }
        return;
    }
    // Upper half.
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
    const Carry carry = carries_[in.index + (in.kind == Kind::uniform_predicate ? 8u : 0u)];
    const bool has_second = in2.kind != Kind::none && !(in2.index == true_predicate && in2.negated);
    if (has_second != (carry.number != 0)) return false;
    if (has_second) {
        const Carry& second = carries_[in2.index + (in2.kind == Kind::uniform_predicate ? 8u : 0u)];
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
    const Operand &d = inst.operands[0], &carry_out = inst.operands[1], &a = inst.operands[2], &b = inst.operands[3],
                  &c = inst.operands[4], &in = inst.operands[6];
    const auto shift = unsigned(inst.operands[5].value);
    if (!inst.has("HI")) {
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
        const auto saved = [&](const Value& source) {
            Value copy = source;
            if (source.constant) return copy;
            copy.text = temporary();
            emit("mov.b32 " + copy.text + ", " + source.text);
            return copy;
        };
        carry.a = saved(low);
        carry.b = saved(addend);
        const std::string over = predicate_temporary();
        emit("setp.lt.u32 " + over + ", " + result + ", " + shifted);
        write(d, value_of(result));
        write_predicate(carry_out, over);
        if (is_unguarded(inst)) {
            carry.known = true;
            carry.result = index_of(d);
            carry.result_number = carry.result != zero_register ? registers_[carry.result].number : 0;
            carries_[carry_out.index + (carry_out.kind == Kind::uniform_predicate ? 8u : 0u)] = carry;
        }
        return;
    }
    const bool has_carry = carry_out.index != true_predicate;
    if (a.negated || (a.inverted && !inst.has("X")) || (has_carry && (inst.has("X") || b.negated || b.inverted)))
        refuse_here();
    const Value low = read_plain(a), addend = read(b);
    const auto widened = [&]() {
        if (!inst.has("SX32")) return join(low, read_plain(c));
        const std::string wide = wide_temporary();
        emit("cvt.s64.s32 " + wide + ", " + low.text);
        return name_wide(wide);
    };
    if (inst.has("X")) {
        const Carry carry = carries_[in.index + (in.kind == Kind::uniform_predicate ? 8u : 0u)];
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
    if (inst.has("X")) {
        const std::string one = temporary(), sum = temporary();
        emit("selp.b32 " + one + ", 1, 0, " + as_register(condition(in)));
        emit("add.s32 " + sum + ", " + result + ", " + one);
        result = sum;
    }
    std::string over;
    if (has_carry) {
        over = predicate_temporary();
        emit("setp.lt.u32 " + over + ", " + result + ", " + high.text);
    }
    write(d, value_of(result));
    if (has_carry) write_predicate(carry_out, over);
}

void Lifter::iabs(const Instruction& inst) {
    const std::string result = temporary();
    emit("abs.s32 " + result + ", " + read(inst.operands[1]).text);
    write(inst.operands[0], value_of(result));
}

void Lifter::imnmx(const Instruction& inst) {
    const unsigned first = inst.operand_count - 3u; // behind two predicates on sm_90 and sm_100
    const Value a = read(inst.operands[first]), b = read(inst.operands[first + 1]);
    const bool is_unsigned = inst.has("U32") || inst.has("U16x2"), is_packed = inst.has("U16x2") || inst.has("S16x2");
    if (inst.has("RELU") && is_unsigned) refuse_here();
    const std::string type = std::string(is_unsigned ? ".u" : ".s") + (is_packed ? "16x2 " : "32 ");
    const std::string left = is_packed ? in_register(a) : a.text, right = is_packed ? in_register(b) : b.text;
    const auto gives_predicate = [&](unsigned i) {
        return has_operand(inst, inst.form->operands[i]) && inst.operands[i].index != true_predicate;
    };
    const bool has_predicates = first == 3 && (gives_predicate(1) || gives_predicate(2));
    if (has_predicates && (!is_packed || inst.has("RELU"))) refuse_here("a predicate beside the result");
    const std::string result = extreme(inst, (inst.has("RELU") ? ".relu" : "") + type, left, right);
    // Of halves, the lower one first: whether the result is a's.
    std::array<std::string, 2> is_first;
    for (unsigned half = 0; has_predicates && half < 2; ++half) {
        is_first[half] = predicate_temporary();
        const std::string of_result = half == 0 ? half_of(result) : upper_half_of(result),
                          of_a = half == 0 ? half_of(left) : upper_half_of(left);
        emit("setp.eq.b16 " + is_first[half] + ", " + of_result + ", " + of_a);
    }
    write(inst.operands[0], value_of(result));
    for (unsigned half = 0; has_predicates && half < 2; ++half)
        if (gives_predicate(1 + half)) write_predicate(inst.operands[1 + half], is_first[half]);
}

void Lifter::vimnmx3(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const bool is_unsigned = inst.has("U32") || inst.has("U16x2"), is_packed = inst.has("U16x2") || inst.has("S16x2");
    if (inst.has("RELU") && is_unsigned) refuse_here();
    const std::string type = std::string(is_unsigned ? ".u" : ".s") + (is_packed ? "16x2 " : "32 ");
    // Zero instead of less, also of the first two, leaves what zero instead of a smaller end does.
    write_extreme(inst, (inst.has("RELU") ? ".relu" : "") + type, in_register(a), in_register(b), in_register(c));
}

void Lifter::viaddmnmx(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const std::string sum = temporary();
    if (inst.has("U16x2") || inst.has("S16x2")) {
        if (inst.operands[2].negated || (inst.has("RELU") && inst.has("U16x2"))) refuse_here();
        emit("add.u16x2 " + sum + ", " + in_register(a) + ", " + in_register(b));
        return write_extreme(inst,
                             inst.has("U16x2")  ? ".u16x2 "
                             : inst.has("RELU") ? ".relu.s16x2 "
                                                : ".s16x2 ",
                             sum, in_register(c));
    }
    emit("add.s32 " + sum + ", " + a.text + ", " + b.text);
    if (inst.has("RELU") && inst.has("U32")) refuse_here();
    write_extreme(inst, inst.has("U32") ? ".u32 " : inst.has("RELU") ? ".relu.s32 " : ".s32 ", sum, c.text);
}

void Lifter::vabsdiff(const Instruction& inst) {
    if (inst.operands[1].index != true_predicate) refuse_here();
    const Value a = read(inst.operands[2]), b = read(inst.operands[3]), c = read(inst.operands[4]);
    const std::string result = temporary();
    emit(std::string("sad") + (inst.has("U32") ? ".u32 " : ".s32 ") + result + ", " + a.text + ", " + b.text + ", " +
         c.text);
    write(inst.operands[0], value_of(result));
}

/// Of bytes: packed, or their sum and c.
void Lifter::vabsdiff4(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const std::string result = temporary(), type = inst.has("U8") ? ".u32" : ".s32";
    emit("vabsdiff4.u32" + type + type + (inst.has("ACC") ? ".add " : " ") + result + ", " + in_register(a) + ", " +
         in_register(b) + ", " + in_register(c));
    write(inst.operands[0], value_of(result));
}

/// min or max of two or three operands, as the predicate, the last operand, says.
std::string Lifter::extreme(const Instruction& inst, const std::string& words, const std::string& a,
                            const std::string& b, const std::string& c) {
    const Condition is_minimum = condition(inst.operands[inst.operand_count - 1u]);
    const auto one = [&](const char* opcode) {
        std::string result = temporary();
        emit(opcode + words + result + ", " + a + ", " + b);
        if (c.empty()) return result;
        const std::string of_three = temporary();
        emit(opcode + words + of_three + ", " + result + ", " + c);
        return of_three;
    };
    if (is_minimum.name.empty()) return one(is_minimum.value ? "min" : "max");
    const std::string low = one("min"), high = one("max"), result = temporary();
    emit("selp.b32 " + result + ", " + low + ", " + high + ", " + as_register(is_minimum));
    return result;
}

void Lifter::write_extreme(const Instruction& inst, const std::string& words, const std::string& a,
                           const std::string& b, const std::string& c) {
    write(inst.operands[0], value_of(extreme(inst, words, a, b, c)));
}

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
            const Carry carry = carries_[in.index + (in.kind == Kind::uniform_predicate ? 8u : 0u)];
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
