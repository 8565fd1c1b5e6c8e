// SPDX-License-Identifier: Apache-2.0
// What ptxas writes for a / b of 32 bits without a sign (I2F.U32.RP, MUFU.RCP, IADD 0xffffffe, F2I, IMAD.HI, ...):
//
//     m0 = u32(rcp(f32(b), rounded up), two in the last place less, times 2^32)
//     m  = m0 + hi(m0 * -(b * m0))                  a step of Newton's: 2^32 - 2 b <= m b <= 2^32 for all b but zero
//     q0 = hi(m * a)            r0 = a - q0 * b     so q0 is the quotient or up to two less
//     q1 = q0 + (r0 >= b)       r1 = r0 - (r0 >= b ? b : 0)
//     q2 = q1 + (r1 >= b)       r2 = likewise
//     b == 0 ? ~0 : q2 or r2
//
// The bounds of m were computed for each of the 2^32 - 1 divisors with the special function unit's reciprocal, also for
// a conversion to float that takes b for signed. For b = 0 m is zero, so q2 is 2 and r2 is a. With a sign the absolute
// values are divided, and the quotient is negated where the signs differ, the remainder where a is negative.
#include "translator/analysis/build/build_ssa.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <optional>
#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::ScalarType;

constexpr std::uint32_t two_less_times_2_32 = 0x0ffffffe; // on the bits of a float

class Restorer {
public:
    explicit Restorer(FunctionGraph& graph) : graph_(graph), made_(graph.values.size()) {}

    bool run() {
        if (!find_definitions()) return false;
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) restore_whole(instruction);
        if (changed_) return true;
        // What ptxas knows not to be divided by zero has no choice at its end.
        std::vector<std::vector<Bare>> bare;
        for (const Block& block : graph_.blocks) bare.push_back(find_bare(block));
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) restore_bare(block, bare[block]);
        return changed_;
    }

private:
    struct Division {
        Operand a, b;
    };
    /// a >= b without signs.
    struct Comparison {
        Operand a, b;
    };
    /// A choice by a predicate that `not` does not make.
    struct Choice {
        ValueId predicate = no_value;
        Operand yes, no;
    };

    /// Whether there is the mark of such a division.
    bool find_definitions() {
        bool any = false;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                const bool is_plain = inst.guard == ptx::no_id || inst.form == FormId::mov;
                if (is_plain)
                    for (const ValueId value : definitions(graph_, instruction)) made_[value] = &instruction;
                any = any || (inst.form == FormId::add_int && (is_number(inst.operands[1], two_less_times_2_32) ||
                                                               is_number(inst.operands[2], two_less_times_2_32)));
            }
        return any;
    }

    // --- operands ---
    std::optional<std::uint32_t> number(const Operand& operand) const {
        const auto value = constant_of(graph_, operand);
        return value ? std::optional(std::uint32_t(*value)) : std::nullopt;
    }
    bool is_number(const Operand& operand, std::uint32_t value) const { return number(operand) == value; }
    /// A register of 32 bits or a constant.
    bool is_word(const Operand& operand) const {
        if (number(operand)) return true;
        return operand.kind == Operand::Kind::reg && !operand.negated &&
               ptx::bit_size(graph_.values[operand.index].type) == 32;
    }
    bool same(const Operand& a, const Operand& b) const {
        if (const auto value = number(a)) return number(b) == value;
        return a.kind == Operand::Kind::reg && b.kind == Operand::Kind::reg && a.index == b.index && !number(b);
    }
    /// The instruction without a guard that makes it, all of 32 bits.
    const ptx::Instruction* made_by(const Operand& operand, FormId form) const {
        if (operand.kind != Operand::Kind::reg || operand.negated || made_[operand.index] == nullptr) return nullptr;
        const ptx::Instruction& inst = made_[operand.index]->inst;
        return inst.form == form && inst.guard == ptx::no_id ? &inst : nullptr;
    }
    const ptx::Instruction* made_by_word(const Operand& operand, FormId form) const {
        const ptx::Instruction* inst = made_by(operand, form);
        return inst != nullptr && ptx::bit_size(inst->type()) == 32 && inst->operands[0].kind == Operand::Kind::reg
                   ? inst
                   : nullptr;
    }

    // --- sums ---
    bool is_negation(const Operand& operand, const Operand& of) const {
        if (const auto value = number(of)) return is_number(operand, 0u - *value);
        if (const ptx::Instruction* inst = made_by_word(operand, FormId::neg_int)) return same(inst->operands[1], of);
        const ptx::Instruction* inst = made_by_word(operand, FormId::sub_int);
        return inst != nullptr && is_number(inst->operands[1], 0) && same(inst->operands[2], of);
    }
    /// The number that it is the negation of.
    std::optional<Operand> negated(const Operand& operand) const {
        if (const ptx::Instruction* inst = made_by_word(operand, FormId::neg_int)) return inst->operands[1];
        const ptx::Instruction* inst = made_by_word(operand, FormId::sub_int);
        if (inst != nullptr && is_number(inst->operands[1], 0)) return inst->operands[2];
        return std::nullopt;
    }
    bool is_difference(const Operand& operand, const Operand& a, const Operand& b) const {
        if (const ptx::Instruction* inst = made_by_word(operand, FormId::sub_int))
            return same(inst->operands[1], a) && same(inst->operands[2], b);
        const ptx::Instruction* inst = made_by_word(operand, FormId::add_int);
        if (inst == nullptr) return false;
        const Operand &x = inst->operands[1], &y = inst->operands[2];
        return (same(x, a) && is_negation(y, b)) || (same(y, a) && is_negation(x, b));
    }
    bool is_one_more(const Operand& operand, const Operand& than) const {
        const ptx::Instruction* inst = made_by_word(operand, FormId::add_int);
        if (inst == nullptr) return false;
        const Operand &x = inst->operands[1], &y = inst->operands[2];
        return (same(x, than) && is_number(y, 1)) || (same(y, than) && is_number(x, 1));
    }
    /// ~b; where b is zero all ones is the same.
    bool is_complement(const Operand& operand, const Operand& b) const {
        if (number(operand)) return is_number(operand, 0xffffffff);
        if (const ptx::Instruction* inst = made_by_word(operand, FormId::not_bits)) return same(inst->operands[1], b);
        const ptx::Instruction* inst = made_by_word(operand, FormId::sub_int);
        return inst != nullptr && is_number(inst->operands[1], 0xffffffff) && same(inst->operands[2], b);
    }

    // --- predicates and choices ---
    /// Without inversions.
    std::pair<ValueId, bool> plain(ValueId predicate, bool inverted) const {
        for (unsigned step = 0; step < 8 && made_[predicate] != nullptr; ++step) {
            const ptx::Instruction& inst = made_[predicate]->inst;
            const Operand& source = inst.operands[1];
            if (inst.form != FormId::not_bits || inst.guard != ptx::no_id || source.kind != Operand::Kind::reg) break;
            inverted = inverted != !source.negated;
            predicate = source.index;
        }
        return {predicate, inverted};
    }
    std::optional<Choice> choice(const Operand& operand) const {
        if (operand.kind != Operand::Kind::reg || operand.negated || made_[operand.index] == nullptr)
            return std::nullopt;
        const GraphInstruction& instruction = *made_[operand.index];
        const ptx::Instruction& inst = instruction.inst;
        if (ptx::bit_size(inst.type()) != 32 || !is_word(inst.operands[1])) return std::nullopt;
        Choice result;
        result.yes = inst.operands[1];
        bool inverted = false;
        if (inst.form == FormId::selp && inst.guard == ptx::no_id && inst.operands[3].kind == Operand::Kind::reg) {
            result.no = inst.operands[2];
            std::tie(result.predicate, inverted) = plain(inst.operands[3].index, inst.operands[3].negated);
        } else if (inst.form == FormId::mov && instruction.previous.size() == 1) {
            result.no = register_operand(instruction.previous[0], inst.operands[0].type);
            std::tie(result.predicate, inverted) = plain(inst.guard, inst.guard_negated);
        } else {
            return std::nullopt;
        }
        if (inverted) std::swap(result.yes, result.no);
        return is_word(result.no) ? std::optional(result) : std::nullopt;
    }
    /// The comparison that makes a predicate, alone.
    const ptx::Instruction* comparison(ValueId predicate, FormId form) const {
        if (made_[predicate] == nullptr) return nullptr;
        const ptx::Instruction& inst = made_[predicate]->inst;
        const bool is_alone = inst.form == form && inst.guard == ptx::no_id && ptx::bit_size(inst.type()) == 32 &&
                              inst.operands[0].kind == Operand::Kind::reg && inst.operands[0].index == predicate;
        return is_alone ? &inst : nullptr;
    }
    /// Changed so that `predicate` is a >= b; a predicate that is a < b has its sides changed.
    std::optional<Comparison> at_least(Choice& choice) const {
        const ptx::Instruction* inst = comparison(choice.predicate, FormId::setp_unsigned);
        if (inst == nullptr) return std::nullopt;
        const auto is = [&](Modifier one, Modifier other) { return inst->has(one) || inst->has(other); };
        const Operand &a = inst->operands[2], &b = inst->operands[3];
        const bool is_less = is(Modifier::lt, Modifier::lo), is_greater = is(Modifier::gt, Modifier::hi);
        if (is_less || is_greater) std::swap(choice.yes, choice.no);
        if (is_less || is(Modifier::ge, Modifier::hs)) return Comparison{a, b};
        if (is_greater || is(Modifier::le, Modifier::ls)) return Comparison{b, a};
        return std::nullopt;
    }
    /// What is compared with zero, so that `yes` is where it is not.
    std::optional<Operand> unequal_zero(Choice& choice) const {
        const ptx::Instruction* inst = comparison(choice.predicate, FormId::setp_unsigned);
        if (inst == nullptr) inst = comparison(choice.predicate, FormId::setp_signed);
        if (inst == nullptr || (!inst->has(Modifier::eq) && !inst->has(Modifier::ne))) return std::nullopt;
        if (inst->has(Modifier::eq)) std::swap(choice.yes, choice.no);
        if (is_number(inst->operands[3], 0)) return inst->operands[2];
        if (is_number(inst->operands[2], 0)) return inst->operands[3];
        return std::nullopt;
    }
    /// What has a sign, so that `yes` is where it is not negative.
    std::optional<Operand> not_negative(Choice& choice) const {
        const ptx::Instruction* inst = comparison(choice.predicate, FormId::setp_signed);
        if (inst == nullptr || !is_number(inst->operands[3], 0)) return std::nullopt;
        if (!inst->has(Modifier::ge) && !inst->has(Modifier::lt)) return std::nullopt;
        if (inst->has(Modifier::lt)) std::swap(choice.yes, choice.no);
        return inst->operands[2];
    }

    // --- the division ---
    /// Whether m0 is the first estimate of 2^32 / b.
    bool is_estimate(const Operand& m0, const Operand& b) const {
        const ptx::Instruction* to_integer = made_by(m0, FormId::cvt_int_f32);
        if (to_integer == nullptr || !to_integer->has(Modifier::rzi) || to_integer->has(Modifier::sat) ||
            to_integer->types[0] != ScalarType::u32)
            return false;
        const ptx::Instruction* scaled = made_by_word(to_integer->operands[1], FormId::add_int);
        if (scaled == nullptr) return false;
        const bool is_second = is_number(scaled->operands[2], two_less_times_2_32);
        if (!is_second && !is_number(scaled->operands[1], two_less_times_2_32)) return false;
        const ptx::Instruction* reciprocal = made_by(scaled->operands[is_second ? 1 : 2], FormId::rcp_approx);
        if (reciprocal == nullptr) return false;
        const ptx::Instruction* to_float = made_by(reciprocal->operands[1], FormId::cvt_f32_int);
        return to_float != nullptr && to_float->has(Modifier::rp) && !to_float->has(Modifier::sat) &&
               ptx::bit_size(to_float->types[1]) == 32 && same(to_float->operands[1], b);
    }
    bool is_product_with_negation(const Operand& operand, const Operand& x, const Operand& y) const {
        if (const auto product = negated(operand)) return is_product(*product, x, y);
        const ptx::Instruction* inst = made_by_word(operand, FormId::mul_lo);
        if (inst == nullptr) return false;
        for (const bool swapped : {false, true}) {
            const Operand &first = inst->operands[swapped ? 2 : 1], &second = inst->operands[swapped ? 1 : 2];
            if ((same(first, x) && is_negation(second, y)) || (same(first, y) && is_negation(second, x))) return true;
        }
        return false;
    }
    bool is_product(const Operand& operand, const Operand& x, const Operand& y) const {
        const ptx::Instruction* inst = made_by_word(operand, FormId::mul_lo);
        if (inst == nullptr) return false;
        const Operand &first = inst->operands[1], &second = inst->operands[2];
        return (same(first, x) && same(second, y)) || (same(first, y) && same(second, x));
    }
    /// Whether m is the second estimate: the upper half of m0 * -(b * m0) + (m0 << 32).
    bool is_reciprocal(const Operand& m, const Operand& b) const {
        const ptx::Instruction* halves = made_by(m, FormId::mov_unpack);
        if (halves == nullptr) return false;
        const Operand& parts = halves->operands[0];
        if (parts.kind != Operand::Kind::vector || parts.count != 2) return false;
        const Operand& upper = graph_.pool[parts.first + 1];
        if (upper.kind != Operand::Kind::reg || upper.index != m.index) return false;
        const ptx::Instruction* sum = made_by(halves->operands[1], FormId::mad_wide);
        if (sum == nullptr || sum->type() != ScalarType::u32) return false;
        const ptx::Instruction* pack = made_by(sum->operands[3], FormId::mov_pack);
        if (pack == nullptr || pack->operands[1].kind != Operand::Kind::vector || pack->operands[1].count != 2)
            return false;
        const Operand& m0 = graph_.pool[pack->operands[1].first + 1];
        if (!is_number(graph_.pool[pack->operands[1].first], 0) || !is_estimate(m0, b)) return false;
        for (const bool swapped : {false, true})
            if (same(sum->operands[swapped ? 2 : 1], m0) &&
                is_product_with_negation(sum->operands[swapped ? 1 : 2], b, m0))
                return true;
        return false;
    }
    /// r0 = a - q0 * b, q0 = hi(m * a): a, where the rest fits.
    std::optional<Division> first_remainder(const Operand& r0, const Operand& b, const Operand* q0) const {
        const auto fits = [&](const Operand& quotient, const Operand& a) {
            if (q0 != nullptr && !same(*q0, quotient)) return false;
            const ptx::Instruction* inst = made_by(quotient, FormId::mul_hi);
            if (inst == nullptr || inst->type() != ScalarType::u32) return false;
            for (const bool swapped : {false, true})
                if (same(inst->operands[swapped ? 1 : 2], a) && is_reciprocal(inst->operands[swapped ? 2 : 1], b))
                    return true;
            return false;
        };
        const auto fits_product = [&](const Operand& x, const Operand& y, const Operand& a) {
            for (const bool swapped : {false, true}) {
                const Operand &first = swapped ? y : x, &second = swapped ? x : y;
                if (same(first, b))
                    if (const auto quotient = negated(second); quotient && fits(*quotient, a)) return true;
                if (is_negation(first, b) && fits(second, a)) return true;
            }
            return false;
        };
        if (const ptx::Instruction* inst = made_by_word(r0, FormId::mad_lo)) {
            if (fits_product(inst->operands[1], inst->operands[2], inst->operands[3]))
                return Division{inst->operands[3], b};
            return std::nullopt;
        }
        if (const ptx::Instruction* inst = made_by_word(r0, FormId::add_int)) {
            for (const bool swapped : {false, true}) {
                const ptx::Instruction* product = made_by_word(inst->operands[swapped ? 2 : 1], FormId::mul_lo);
                const Operand& a = inst->operands[swapped ? 1 : 2];
                if (product != nullptr && fits_product(product->operands[1], product->operands[2], a))
                    return Division{a, b};
            }
            return std::nullopt;
        }
        const ptx::Instruction* inst = made_by_word(r0, FormId::sub_int);
        if (inst == nullptr) return std::nullopt;
        const ptx::Instruction* product = made_by_word(inst->operands[2], FormId::mul_lo);
        if (product == nullptr) return std::nullopt;
        for (const bool swapped : {false, true})
            if (same(product->operands[swapped ? 2 : 1], b) &&
                fits(product->operands[swapped ? 1 : 2], inst->operands[1]))
                return Division{inst->operands[1], b};
        return std::nullopt;
    }
    /// r, if `operand` is r >= b ? r - b : r.
    std::optional<Operand> before_subtraction(const Operand& operand, const Operand& b) const {
        if (const ptx::Instruction* inst = made_by_word(operand, FormId::min_int)) { // r - b wraps where r is less
            if (inst->type() != ScalarType::u32) return std::nullopt;
            for (const bool swapped : {false, true})
                if (is_difference(inst->operands[swapped ? 2 : 1], inst->operands[swapped ? 1 : 2], b))
                    return inst->operands[swapped ? 1 : 2];
            return std::nullopt;
        }
        std::optional<Choice> step = choice(operand);
        if (!step) return std::nullopt;
        const std::optional<Comparison> asked = at_least(*step);
        if (!asked || !same(asked->b, b) || !same(asked->a, step->no) || !is_difference(step->yes, step->no, b))
            return std::nullopt;
        return step->no;
    }
    std::optional<Division> remainder(const Operand& r2) const {
        Operand b;
        if (std::optional<Choice> step = choice(r2)) {
            const std::optional<Comparison> asked = at_least(*step);
            if (!asked) return std::nullopt;
            b = asked->b;
        } else if (const ptx::Instruction* inst = made_by_word(r2, FormId::min_int)) {
            const ptx::Instruction* difference = nullptr;
            for (unsigned i = 1; i < 3 && difference == nullptr; ++i)
                difference = made_by_word(inst->operands[i], FormId::sub_int);
            if (difference == nullptr) return std::nullopt;
            b = difference->operands[2];
        } else {
            return std::nullopt;
        }
        const std::optional<Operand> r1 = before_subtraction(r2, b);
        const std::optional<Operand> r0 = r1 ? before_subtraction(*r1, b) : std::nullopt;
        return r0 ? first_remainder(*r0, b, nullptr) : std::nullopt;
    }
    std::optional<Division> quotient(const Operand& q2) const {
        std::optional<Choice> second = choice(q2);
        const std::optional<Comparison> asked_second = second ? at_least(*second) : std::nullopt;
        if (!asked_second || !is_one_more(second->yes, second->no)) return std::nullopt;
        const Operand& b = asked_second->b;
        std::optional<Choice> first = choice(second->no);
        const std::optional<Comparison> asked_first = first ? at_least(*first) : std::nullopt;
        if (!asked_first || !is_one_more(first->yes, first->no) || !same(asked_first->b, b)) return std::nullopt;
        const std::optional<Operand> r0 = before_subtraction(asked_second->a, b);
        if (!r0 || !same(*r0, asked_first->a)) return std::nullopt;
        return first_remainder(*r0, b, &first->no);
    }

    // --- with a sign ---
    bool is_absolute(const Operand& operand, const Operand& of) const {
        if (const auto value = number(of)) return is_number(operand, std::int32_t(*value) < 0 ? 0u - *value : *value);
        const ptx::Instruction* inst = made_by_word(operand, FormId::abs_int);
        return inst != nullptr && same(inst->operands[1], of);
    }
    /// The number that it is the absolute value of.
    std::optional<Operand> without_absolute(const Operand& operand) const {
        if (const ptx::Instruction* inst = made_by_word(operand, FormId::abs_int)) return inst->operands[1];
        return std::nullopt;
    }
    bool is_exclusive_or(const Operand& operand, const Operand& a, const Operand& b) const {
        const ptx::Instruction* inst = made_by_word(operand, FormId::xor_bits);
        if (inst == nullptr) return false;
        const Operand &x = inst->operands[1], &y = inst->operands[2];
        return (same(x, a) && same(y, b)) || (same(x, b) && same(y, a));
    }
    struct Restored {
        FormId form;
        ScalarType type;
        Division of;
    };
    /// A quotient or remainder by b, which is not zero.
    std::optional<Restored> division_by(const Operand& value, const Operand& b) const {
        if (const auto of = quotient(value); of && same(of->b, b))
            return Restored{FormId::div_int, ScalarType::u32, *of};
        if (const auto of = remainder(value); of && same(of->b, b))
            return Restored{FormId::rem_int, ScalarType::u32, *of};
        std::optional<Choice> sign = choice(value);
        const std::optional<Operand> of_sign = sign ? not_negative(*sign) : std::nullopt;
        if (!of_sign || !is_negation(sign->no, sign->yes)) return std::nullopt;
        if (const auto of = quotient(sign->yes); of && is_absolute(of->b, b))
            if (const auto a = without_absolute(of->a); a && is_exclusive_or(*of_sign, *a, b))
                return Restored{FormId::div_int, ScalarType::s32, {*a, b}};
        if (const auto of = remainder(sign->yes); of && is_absolute(of->b, b))
            if (is_absolute(of->a, *of_sign)) return Restored{FormId::rem_int, ScalarType::s32, {*of_sign, b}};
        return std::nullopt;
    }

    static ptx::Instruction made(const ptx::Instruction& at, FormId form, ScalarType type,
                                 std::initializer_list<Operand> operands) {
        ptx::Instruction inst;
        inst.form = form;
        inst.location = at.location;
        inst.types[0] = type;
        for (Operand operand : operands) {
            if (operand.type != ScalarType::pred) operand.type = type;
            inst.operands[inst.operand_count++] = operand;
        }
        return inst;
    }
    void restore_whole(GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if ((inst.form != FormId::selp && inst.form != FormId::mov) || inst.operands[0].kind != Operand::Kind::reg ||
            ptx::bit_size(graph_.values[inst.operands[0].index].type) != 32)
            return;
        const Operand target = inst.operands[0];
        std::optional<Choice> last = choice(target);
        const std::optional<Operand> b = last ? unequal_zero(*last) : std::nullopt;
        std::optional<Restored> found;
        if (b && is_complement(last->no, *b)) found = division_by(last->yes, *b);
        if (!found) // a divisor that is known
            if (const auto of = quotient(target); of && number(of->b).value_or(0) != 0)
                found = Restored{FormId::div_int, ScalarType::u32, *of};
        if (!found)
            if (const auto of = remainder(target); of && number(of->b).value_or(0) != 0)
                found = Restored{FormId::rem_int, ScalarType::u32, *of};
        if (!found) return;
        instruction.inst = made(inst, found->form, found->type, {target, found->of.a, found->of.b});
        instruction.previous.clear();
        changed_ = true;
    }
    struct Bare {
        std::size_t place;
        Division of;
        bool is_quotient;
    };
    std::vector<Bare> find_bare(const Block& block) const {
        std::vector<Bare> found;
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            const ptx::Instruction& inst = block.instructions[i].inst;
            const Operand& target = inst.operands[0];
            if (inst.operand_count == 0 || target.kind != Operand::Kind::reg) continue;
            if (inst.form != FormId::selp && inst.form != FormId::mov && inst.form != FormId::min_int) continue;
            if (const auto of = quotient(target))
                found.push_back({i, *of, true});
            else if (const auto of_remainder = remainder(target))
                found.push_back({i, *of_remainder, false});
        }
        return found;
    }
    /// Where b is zero q2 is 2 and r2 is a.
    void restore_bare(BlockId id, const std::vector<Bare>& found) {
        std::vector<GraphInstruction>& code = graph_.blocks[id].instructions;
        for (auto bare = found.rbegin(); bare != found.rend(); ++bare) {
            const ValueId value = new_value(graph_, ScalarType::b32, id),
                          is_zero = new_value(graph_, ScalarType::pred, id);
            GraphInstruction division = code[bare->place], test = division, select = division;
            const ptx::Instruction& at = code[bare->place].inst;
            const Operand &a = bare->of.a, &b = bare->of.b;
            division.inst = made(at, bare->is_quotient ? FormId::div_int : FormId::rem_int, ScalarType::u32,
                                 {register_operand(value, ScalarType::u32), a, b});
            test.inst =
                made(at, FormId::setp_unsigned, ScalarType::u32,
                     {register_operand(is_zero, ScalarType::pred), Operand(), b, constant_operand(0, ScalarType::u32)});
            test.inst.operands[1] = Operand();
            test.inst.modifiers[test.inst.modifier_count++] = Modifier::eq;
            const Operand by_zero = bare->is_quotient ? constant_operand(2, ScalarType::b32) : a;
            select.inst =
                made(at, FormId::selp, ScalarType::b32,
                     {at.operands[0], by_zero, register_operand(value, ScalarType::b32), test.inst.operands[0]});
            for (GraphInstruction* part : {&division, &test, &select}) part->previous.clear();
            const auto place = code.begin() + std::ptrdiff_t(bare->place);
            *place = std::move(select);
            code.insert(place, {std::move(division), std::move(test)});
            changed_ = true;
        }
    }

    FunctionGraph& graph_;
    std::vector<const GraphInstruction*> made_; ///< by value; without a guard, or a copy under one
    bool changed_ = false;
};

} // namespace

bool restore_divisions(FunctionGraph& graph) {
    return Restorer(graph).run();
}

} // namespace ptarmigan::translator
