// SPDX-License-Identifier: Apache-2.0
// 64-bit numbers that machine code computes half by half become one number each: sums with a carry that a comparison
// makes, what is added to the upper half alone, a lower half that is computed again beside the whole, and bits that
// change in the lower half only. ptxas does so wherever it moves the two instructions of a sum apart, mostly with
// addresses, of which shapes know nothing then.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::ScalarType;

constexpr unsigned deepest = 6; ///< definitions of a whole number that a lower half is followed through
constexpr std::uint64_t word_bits = 0xffffffff;

class HalfSums {
public:
    explicit HalfSums(FunctionGraph& graph) : graph_(graph), made_(graph.values.size()), halves_(graph.values.size()) {}

    bool run() {
        find_definitions();
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            const auto& code = graph_.blocks[block].instructions;
            for (std::size_t i = 0; i < code.size(); ++i) {
                block_ = block;
                joined_.clear();
                if (join(code[i]) || drop_zero(code[i])) plan_.push_back({block, i, std::move(joined_)});
            }
        }
        for (auto item = plan_.rbegin(); item != plan_.rend(); ++item) {
            auto& code = graph_.blocks[item->block].instructions;
            const auto at = code.begin() + std::ptrdiff_t(item->place);
            *at = std::move(item->code.back());
            item->code.pop_back();
            code.insert(at, item->code.begin(), item->code.end());
        }
        return !plan_.empty();
    }

private:
    struct Half {
        ValueId whole = no_value;
        unsigned place = 0;
    };
    struct Joined {
        BlockId block;
        std::size_t place;
        std::vector<GraphInstruction> code; ///< in the place of the instruction
    };

    bool has_size(ValueId value, unsigned bits) const { return ptx::bit_size(graph_.values[value].type) == bits; }
    bool is_value(const Operand& operand, unsigned bits) const {
        return operand.kind == Operand::Kind::reg && !operand.negated && has_size(operand.index, bits);
    }
    std::optional<std::uint64_t> number(const Operand& operand) const {
        if (operand.negated) return std::nullopt;
        const auto value = constant_of(graph_, operand);
        return value && ptx::bit_size(operand.type) == 32 ? std::optional(*value & word_bits) : value;
    }
    bool is_number(const Operand& operand, std::uint64_t value) const { return number(operand) == value; }
    bool same(const Operand& a, const Operand& b) const {
        if (const auto value = number(a)) return number(b) == value;
        return a.kind == Operand::Kind::reg && b.kind == Operand::Kind::reg && !a.negated && !b.negated &&
               a.index == b.index && !number(b);
    }

    void find_definitions() {
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                if (inst.guard != ptx::no_id || inst.operand_count < 2) continue;
                const Operand &d = inst.operands[0], &a = inst.operands[1];
                if (d.kind == Operand::Kind::reg && ptx::bit_size(d.type) == ptx::bit_size(graph_.values[d.index].type))
                    made_[d.index] = &inst;
                if (!is_value(a, 64) || ptx::bit_size(a.type) != 64) continue;
                if (inst.form == FormId::cvt_narrow_32 && !inst.has(Modifier::sat) && is_value(d, 32) &&
                    ptx::bit_size(d.type) == 32)
                    halves_[d.index] = {a.index, 0};
                if (inst.form == FormId::mov_unpack && d.kind == Operand::Kind::vector && d.count == 2)
                    for (unsigned place = 0; place < 2; ++place)
                        if (const Operand& half = graph_.pool[d.first + place]; is_value(half, 32))
                            halves_[half.index] = {a.index, place};
            }
    }
    /// What makes a value of `bits`, without saturation and the like.
    const ptx::Instruction* made_by(const Operand& operand, FormId form, unsigned bits) const {
        if (!is_value(operand, bits) || made_[operand.index] == nullptr) return nullptr;
        const ptx::Instruction& inst = *made_[operand.index];
        return inst.form == form && ptx::bit_size(inst.type()) == bits && !inst.has(Modifier::sat) ? &inst : nullptr;
    }

    // --- halves of one number ---
    bool is_half(const Operand& operand, ValueId whole, unsigned place) const {
        return is_value(operand, 32) && halves_[operand.index].whole == whole && halves_[operand.index].place == place;
    }
    bool are_low(const Operand& a, const Operand& b, const Operand& x, const Operand& y, unsigned depth) const {
        return (is_low(a, x, depth) && is_low(b, y, depth)) || (is_low(a, y, depth) && is_low(b, x, depth));
    }
    /// Whether `low` is the lower half of `whole`, by what both are computed of.
    bool is_low(const Operand& low, const Operand& whole, unsigned depth = deepest) const {
        if (const auto value = number(whole)) return is_number(low, *value & word_bits);
        if (!is_value(whole, 64)) return false;
        if (is_half(low, whole.index, 0)) return true;
        const ptx::Instruction* made = made_[whole.index];
        if (depth == 0 || made == nullptr || made->has(Modifier::sat)) return false;
        const Operand &a = made->operands[1], &b = made->operands[2];
        switch (made->form) {
        case FormId::cvt_widen_64: return ptx::bit_size(a.type) == 32 && same(low, a);
        case FormId::mov_pack:
            return a.kind == Operand::Kind::vector && a.count == 2 && same(low, graph_.pool[a.first]);
        case FormId::shl: {
            const ptx::Instruction* word = made_by(low, FormId::shl, 32);
            const auto amount = number(b);
            return word != nullptr && amount && *amount < 32 && is_number(word->operands[2], *amount) &&
                   is_low(word->operands[1], a, depth - 1);
        }
        case FormId::add_int: {
            const ptx::Instruction* word = made_by(low, FormId::add_int, 32);
            return word != nullptr && are_low(word->operands[1], word->operands[2], a, b, depth - 1);
        }
        case FormId::mul_wide: {
            const ptx::Instruction* word = made_by(low, FormId::mul_lo, 32);
            return word != nullptr && ptx::bit_size(a.type) == 32 &&
                   ((same(word->operands[1], a) && same(word->operands[2], b)) ||
                    (same(word->operands[1], b) && same(word->operands[2], a)));
        }
        case FormId::mad_wide: {
            const ptx::Instruction* word = made_by(low, FormId::mad_lo, 32);
            return word != nullptr && ptx::bit_size(a.type) == 32 && same(word->operands[1], a) &&
                   same(word->operands[2], b) && is_low(word->operands[3], made->operands[3], depth - 1);
        }
        default: return false;
        }
    }
    /// The number that a value is the upper half of.
    ValueId upper_half_of(const Operand& high) const {
        const bool is_known = is_value(high, 32) && high.index < halves_.size(); // it may be a new one
        return is_known && halves_[high.index].place == 1 ? halves_[high.index].whole : no_value;
    }
    /// The number that has these halves, if there is one.
    std::optional<Operand> whole(const Operand& low, const Operand& high) const {
        const auto a = number(low), b = number(high);
        if (a && b) return constant_operand(*b << 32 | *a, ScalarType::u64);
        const ValueId other = upper_half_of(high);
        if (other == no_value) return std::nullopt;
        const Operand found = register_operand(other, ScalarType::u64);
        return is_low(low, found) ? std::optional(found) : std::nullopt;
    }

    // --- sums ---
    /// 1 where low = a + b wraps, else 0.
    bool is_carry(const Operand& operand, const Operand& low, const Operand& a, const Operand& b) const {
        const ptx::Instruction* chosen = made_by(operand, FormId::selp, 32);
        if (chosen == nullptr || !is_number(chosen->operands[1], 1) || !is_number(chosen->operands[2], 0)) return false;
        const Operand& predicate = chosen->operands[3];
        if (predicate.kind != Operand::Kind::reg || predicate.negated || made_[predicate.index] == nullptr)
            return false;
        const ptx::Instruction& compared = *made_[predicate.index];
        if (compared.form != FormId::setp_unsigned || ptx::bit_size(compared.type()) != 32 ||
            compared.operands[1].kind != Operand::Kind::none)
            return false;
        const Operand &left = compared.operands[2], &right = compared.operands[3];
        const bool is_less = compared.has(Modifier::lt) || compared.has(Modifier::lo);
        const bool is_greater = compared.has(Modifier::gt) || compared.has(Modifier::hi);
        const Operand &less = is_less ? left : right, &more = is_less ? right : left;
        if ((is_less || is_greater) && same(less, low)) return same(more, a) || same(more, b);
        const bool is_at_least = compared.has(Modifier::ge) || compared.has(Modifier::hs);
        const bool is_above_zero =
            is_at_least ? is_number(right, 1) : (is_greater || compared.has(Modifier::ne)) && is_number(right, 0);
        return is_above_zero && is_upper_half_of_sum(left, a, b);
    }
    /// Of a and b, made wider.
    bool is_upper_half_of_sum(const Operand& operand, const Operand& a, const Operand& b) const {
        const ValueId whole = upper_half_of(operand);
        if (whole == no_value || made_[whole] == nullptr || made_[whole]->form != FormId::add_int) return false;
        const Operand &x = made_[whole]->operands[1], &y = made_[whole]->operands[2];
        return (is_widened(x, a) && is_widened(y, b)) || (is_widened(x, b) && is_widened(y, a));
    }
    bool is_widened(const Operand& wide, const Operand& word) const {
        if (const auto value = number(wide)) return number(word) == value;
        const ptx::Instruction* made = made_by(wide, FormId::cvt_widen_64, 64);
        return made != nullptr && made->types[1] == ScalarType::u32 && same(made->operands[1], word);
    }
    /// x and y, where `high` is x + y + the carry of low = a + b; y is none where there is only one.
    std::optional<std::pair<Operand, Operand>> without_carry(const Operand& high, const Operand& low, const Operand& a,
                                                             const Operand& b) const {
        const ptx::Instruction* sum = made_by(high, FormId::add_int, 32);
        if (sum == nullptr) return std::nullopt;
        for (const unsigned i : {1u, 2u}) {
            const Operand &one = sum->operands[i], &other = sum->operands[3 - i];
            const ptx::Instruction* inner = made_by(other, FormId::add_int, 32);
            if (is_carry(one, low, a, b)) {
                if (inner != nullptr) return std::pair(inner->operands[1], inner->operands[2]);
                return std::pair(other, constant_operand(0, ScalarType::u32));
            }
            if (inner == nullptr) continue;
            for (const unsigned k : {1u, 2u})
                if (is_carry(inner->operands[k], low, a, b)) return std::pair(one, inner->operands[3 - k]);
        }
        return std::nullopt;
    }

    bool join(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        const Operand &d = inst.operands[0], &halves = inst.operands[1];
        if (inst.form != FormId::mov_pack || inst.guard != ptx::no_id || ptx::bit_size(inst.type()) != 64 ||
            !is_value(d, 64) || halves.kind != Operand::Kind::vector || halves.count != 2)
            return false;
        const Operand low = graph_.pool[halves.first], high = graph_.pool[halves.first + 1];
        if (!is_value(low, 32) || number(low) || !is_value(high, 32)) return false;
        if (const auto found = whole(low, high)) {
            push(instruction, FormId::mov, ScalarType::b64, {d, *found});
            return true;
        }
        return join_bits(instruction, low, high) || join_sum(instruction, low, high) ||
               join_upper_sum(instruction, low, high);
    }
    /// Bits of the lower half that a constant changes.
    bool join_bits(const GraphInstruction& instruction, const Operand& low, const Operand& high) {
        const ValueId whole = upper_half_of(high);
        if (whole == no_value) return false;
        const Operand other = register_operand(whole, ScalarType::b64);
        for (const FormId form : {FormId::or_bits, FormId::xor_bits, FormId::and_bits}) {
            const ptx::Instruction* made = made_by(low, form, 32);
            if (made == nullptr) continue;
            for (const unsigned i : {1u, 2u}) {
                const auto bits = number(made->operands[i]);
                if (!bits || !is_low(made->operands[3 - i], other)) continue;
                const std::uint64_t above = form == FormId::and_bits ? ~word_bits : 0;
                push(instruction, form, ScalarType::b64,
                     {instruction.inst.operands[0], other, constant_operand(*bits | above, ScalarType::b64)});
                return true;
            }
        }
        return false;
    }
    bool join_sum(const GraphInstruction& instruction, const Operand& low, const Operand& high) {
        const ptx::Instruction* sum = made_by(low, FormId::add_int, 32);
        if (sum == nullptr) return false;
        Operand a = sum->operands[1], b = sum->operands[2];
        const auto above = without_carry(high, low, a, b);
        if (!above) return false;
        auto [x, y] = *above;
        // Which upper half belongs to which lower one is the same to the sum.
        const auto is_known = [&](const Operand& p, const Operand& q) { return is_number(q, 0) || whole(p, q); };
        const auto score = [&](const Operand& p, const Operand& q) {
            return int(is_known(a, p)) + int(is_known(b, q));
        };
        if (score(y, x) > score(x, y)) std::swap(x, y);
        if (score(x, y) == 0) return false;
        const Operand first = packed(instruction, a, x), second = packed(instruction, b, y);
        push(instruction, FormId::add_int, ScalarType::u64, {instruction.inst.operands[0], first, second});
        return true;
    }
    /// The lower half of a number, and its upper half plus something.
    bool join_upper_sum(const GraphInstruction& instruction, const Operand& low, const Operand& high) {
        const ptx::Instruction* sum = made_by(high, FormId::add_int, 32);
        if (sum != nullptr)
            for (const unsigned i : {1u, 2u})
                if (const auto found = whole(low, sum->operands[i]))
                    return add_above(instruction, *found, sum->operands[3 - i]);
        const ptx::Instruction* product = made_by(high, FormId::mad_lo, 32);
        if (product == nullptr) return false;
        const auto found = whole(low, product->operands[3]);
        if (!found) return false;
        const ValueId value = new_value(ScalarType::b32);
        push(instruction, FormId::mul_lo, ScalarType::u32,
             {register_operand(value, ScalarType::u32), product->operands[1], product->operands[2]}, Modifier::lo);
        return add_above(instruction, *found, register_operand(value, ScalarType::u32));
    }
    bool add_above(const GraphInstruction& instruction, const Operand& found, const Operand& more) {
        const Operand above = packed(instruction, constant_operand(0, ScalarType::u32), more);
        push(instruction, FormId::add_int, ScalarType::u64, {instruction.inst.operands[0], found, above});
        return true;
    }

    /// x + 0.
    bool drop_zero(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        const unsigned bits = ptx::bit_size(inst.type());
        if (inst.form != FormId::add_int || inst.guard != ptx::no_id || inst.has(Modifier::sat) ||
            (bits != 32 && bits != 64))
            return false;
        for (const unsigned i : {1u, 2u})
            if (is_number(inst.operands[i], 0)) {
                push(instruction, FormId::mov, bits == 64 ? ScalarType::b64 : ScalarType::b32,
                     {inst.operands[0], inst.operands[3 - i]});
                return true;
            }
        return false;
    }

    // --- new instructions ---
    ValueId new_value(ScalarType type) { return translator::new_value(graph_, type, block_); }
    /// The number of two halves, packed if there is none.
    Operand packed(const GraphInstruction& at, Operand low, Operand high) {
        if (const auto found = whole(low, high)) return *found;
        const ValueId value = new_value(ScalarType::b64);
        Operand halves;
        halves.kind = Operand::Kind::vector;
        halves.type = ScalarType::b32;
        halves.first = std::uint32_t(graph_.pool.size());
        halves.count = 2;
        for (Operand half : {low, high}) {
            half.type = ScalarType::b32;
            graph_.pool.push_back(half);
        }
        push(at, FormId::mov_pack, ScalarType::b64, {register_operand(value, ScalarType::b64), halves});
        return register_operand(value, ScalarType::u64);
    }
    void push(const GraphInstruction& at, FormId form, ScalarType type, std::initializer_list<Operand> operands,
              Modifier modifier = Modifier::none) {
        GraphInstruction instruction = at;
        ptx::Instruction inst;
        inst.form = form;
        inst.location = at.inst.location;
        inst.types[0] = type;
        if (modifier != Modifier::none) inst.modifiers[inst.modifier_count++] = modifier;
        for (Operand operand : operands) {
            if (operand.kind != Operand::Kind::vector) operand.type = type;
            inst.operands[inst.operand_count++] = operand;
        }
        instruction.inst = inst;
        joined_.push_back(std::move(instruction));
    }

    FunctionGraph& graph_;
    std::vector<const ptx::Instruction*> made_; ///< by value: what makes it without a guard
    std::vector<Half> halves_;                  ///< by value
    std::vector<Joined> plan_;
    std::vector<GraphInstruction> joined_; ///< of the instruction that is looked at
    BlockId block_ = no_block;
};

} // namespace

bool join_half_sums(FunctionGraph& graph) {
    return HalfSums(graph).run();
}

} // namespace ptarmigan::translator
