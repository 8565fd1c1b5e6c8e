// SPDX-License-Identifier: Apache-2.0
// `rcp.rn.f32` and `sqrt.rn.f32` as ptxas writes them: a test of the operand's exponent, a short way by the special
// function unit and a step of Newton's, and a slow way, which the lifter of machine code has made the statement again.
// For each of the operands that are sent the short way what it leaves was computed to be what the statement leaves (all
// 2^32, with the unit's bits), so all may go the other way.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;

constexpr std::uint32_t minus_one = 0xbf800000, half = 0x3f000000, minus_zero = 0x80000000;

class RootRestorer {
public:
    explicit RootRestorer(FunctionGraph& graph) : graph_(graph), made_(graph.values.size()) {}

    bool run() {
        bool any = false;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                any = any || inst.form == FormId::rcp_f32 || inst.form == FormId::sqrt_f32;
                if (inst.guard != ptx::no_id) continue;
                const FewValues results = definitions(graph_, instruction);
                if (results.size() == 1) made_[results[0]] = &inst;
            }
        if (!any) return false;
        bool changed = false;
        for (Block& block : graph_.blocks) changed |= leave_short_way(block);
        return changed;
    }

private:
    std::optional<std::uint32_t> number(const Operand& operand) const {
        const auto value = constant_of(graph_, operand);
        return value ? std::optional(std::uint32_t(*value)) : std::nullopt;
    }
    bool is_number(const Operand& operand, std::uint32_t value) const { return number(operand) == value; }
    bool is_value(const Operand& operand, ValueId value) const {
        return operand.kind == Operand::Kind::reg && !operand.negated && operand.index == value && !number(operand);
    }
    /// One result, of 32 bits.
    const ptx::Instruction* made_by(const Operand& operand, FormId form) const {
        return operand.kind == Operand::Kind::reg && !operand.negated ? made_by(operand.index, form) : nullptr;
    }
    const ptx::Instruction* made_by(ValueId value, FormId form) const {
        const ptx::Instruction* inst = made_[value];
        return inst != nullptr && inst->form == form && ptx::bit_size(inst->type()) == 32 &&
                       ptx::bit_size(graph_.values[value].type) == 32
                   ? inst
                   : nullptr;
    }
    /// Rounded to nearest. Products and negations are far from subnormal here, so that .ftz says nothing of them.
    static const ptx::Instruction* is_plain(const ptx::Instruction* inst) {
        const bool is = inst != nullptr && !inst->has(Modifier::sat) && !inst->has(Modifier::rz) &&
                        !inst->has(Modifier::rm) && !inst->has(Modifier::rp);
        return is ? inst : nullptr;
    }
    template <typename Of> const ptx::Instruction* fused(const Of& of) const {
        const ptx::Instruction* inst = is_plain(made_by(of, FormId::fma_f32));
        return inst != nullptr && !inst->has(Modifier::ftz) ? inst : nullptr;
    }
    /// The value that it is the negation of.
    const Operand* negated(const Operand& operand) const {
        if (const ptx::Instruction* inst = made_by(operand, FormId::neg_f32)) return &inst->operands[1];
        return nullptr;
    }
    bool is_product_of(const ptx::Instruction& inst, ValueId a, ValueId b) const {
        return (is_value(inst.operands[1], a) && is_value(inst.operands[2], b)) ||
               (is_value(inst.operands[1], b) && is_value(inst.operands[2], a));
    }

    // --- the tests ---
    /// x, where the condition is true of ((x + 0x1800000) & 0x7f800000) > 0x1ffffff.
    std::optional<ValueId> asks_for_reciprocal(const ptx::Instruction& compared) const {
        if (!is_number(compared.operands[3], 0x1ffffff)) return std::nullopt;
        const ptx::Instruction* masked = made_by(compared.operands[2], FormId::and_bits);
        if (masked == nullptr) return std::nullopt;
        const bool is_second = is_number(masked->operands[2], 0x7f800000);
        if (!is_second && !is_number(masked->operands[1], 0x7f800000)) return std::nullopt;
        return sum_with(masked->operands[is_second ? 1 : 2], 0x1800000);
    }
    /// x, where the condition is true of x - 0xd000000 > 0x727fffff.
    std::optional<ValueId> asks_for_root(const ptx::Instruction& compared) const {
        if (!is_number(compared.operands[3], 0x727fffff)) return std::nullopt;
        return sum_with(compared.operands[2], 0u - 0xd000000u);
    }
    std::optional<ValueId> sum_with(const Operand& operand, std::uint32_t constant) const {
        const ptx::Instruction* sum = made_by(operand, FormId::add_int);
        if (sum == nullptr) return std::nullopt;
        for (const unsigned i : {1u, 2u})
            if (is_number(sum->operands[i], constant) && sum->operands[3 - i].kind == Operand::Kind::reg)
                return sum->operands[3 - i].index;
        return std::nullopt;
    }

    // --- the short ways ---
    /// r + r * -(x * r - 1), r = rcp.approx(x).
    bool is_short_reciprocal(ValueId value, ValueId x) const {
        const ptx::Instruction* last = fused(value);
        if (last == nullptr || last->operands[3].kind != Operand::Kind::reg) return false;
        const ValueId r = last->operands[3].index;
        const ptx::Instruction* estimate = made_by(r, FormId::rcp_approx);
        if (estimate == nullptr || !is_value(estimate->operands[1], x)) return false;
        for (const unsigned i : {1u, 2u}) {
            if (!is_value(last->operands[i], r)) continue;
            const Operand& error = last->operands[3 - i];
            // -e, or -e + -0.
            const ptx::Instruction* sum = is_plain(made_by(error, FormId::add_f32));
            const Operand* e = nullptr;
            if (sum == nullptr)
                e = negated(error);
            else if (is_number(sum->operands[2], minus_zero))
                e = negated(sum->operands[1]);
            const ptx::Instruction* product = e != nullptr ? fused(*e) : nullptr;
            if (product != nullptr && is_number(product->operands[3], minus_one) && is_product_of(*product, x, r))
                return true;
        }
        return false;
    }
    /// q + (x - q * q) * (s / 2), s = rsqrt.approx(x), q = x * s.
    bool is_short_root(ValueId value, ValueId x) const {
        const ptx::Instruction* last = fused(value);
        if (last == nullptr || last->operands[3].kind != Operand::Kind::reg) return false;
        const ValueId q = last->operands[3].index;
        const ptx::Instruction* product = is_plain(made_by(q, FormId::mul_f32));
        if (product == nullptr) return false;
        for (const unsigned i : {1u, 2u}) {
            const ptx::Instruction* halved = is_plain(made_by(last->operands[i], FormId::mul_f32));
            const ptx::Instruction* rest = fused(last->operands[3 - i]);
            if (halved == nullptr || rest == nullptr || !is_value(rest->operands[3], x)) continue;
            const bool is_second = is_number(halved->operands[2], half);
            if (!is_second && !is_number(halved->operands[1], half)) continue;
            const Operand& s = halved->operands[is_second ? 1 : 2];
            const ptx::Instruction* estimate = made_by(s, FormId::rsqrt_approx);
            if (estimate == nullptr || !is_value(estimate->operands[1], x) || !is_product_of(*product, x, s.index))
                continue;
            for (const unsigned k : {1u, 2u}) {
                const Operand* minus = negated(rest->operands[k]);
                if (minus != nullptr && is_value(*minus, q) && is_value(rest->operands[3 - k], q)) return true;
            }
        }
        return false;
    }

    bool has_no_effects(const Block& block) const {
        return block.phis.empty() && std::all_of(block.instructions.begin(), block.instructions.end(),
                                                 [](const GraphInstruction& instruction) {
                                                     return is_removable(instruction.inst) &&
                                                            !has_effect(instruction.inst, ptx::Effects::load);
                                                 });
    }
    /// The predicate without inversions, where a comparison makes it.
    const ptx::Instruction* comparison(ValueId predicate, bool& inverted) const {
        const ptx::Instruction* inst = made_[predicate];
        for (unsigned step = 0; step < 4 && inst != nullptr && inst->form == FormId::not_bits &&
                                inst->operands[1].kind == Operand::Kind::reg;
             ++step) {
            inverted = inverted != !inst->operands[1].negated;
            inst = made_[inst->operands[1].index];
        }
        const bool is = inst != nullptr && inst->form == FormId::setp_unsigned && ptx::bit_size(inst->type()) == 32 &&
                        (inst->has(Modifier::gt) || inst->has(Modifier::hi));
        return is ? inst : nullptr;
    }

    /// A branch to the two ways, which meet again at once: all go the slow one.
    bool leave_short_way(Block& block) {
        Terminator& terminator = block.terminator;
        if (terminator.kind != Terminator::Kind::branch || block.successors[0] == block.successors[1]) return false;
        bool is_negated = terminator.negated;
        const ptx::Instruction* compared = comparison(terminator.condition, is_negated);
        if (compared == nullptr) return false;
        const std::optional<ValueId> of_reciprocal = asks_for_reciprocal(*compared), of_root = asks_for_root(*compared);
        if (!of_reciprocal && !of_root) return false;
        // Of a reciprocal those for which it is true go the short way, of a root the others.
        const unsigned when_true = is_negated ? 1 : 0, short_place = of_reciprocal ? when_true : 1 - when_true;
        const BlockId short_way = block.successors[short_place], slow_way = block.successors[1 - short_place];
        const Block &quick = graph_.blocks[short_way], &slow = graph_.blocks[slow_way];
        if (quick.predecessors.size() != 1 || slow.predecessors.size() != 1 || quick.successors.size() != 1 ||
            slow.successors.size() != 1 || quick.successors[0] != slow.successors[0] || !has_no_effects(quick) ||
            !has_no_effects(slow))
            return false;
        const Block& join = graph_.blocks[quick.successors[0]];
        const auto place = [&](BlockId way) {
            return std::size_t(std::find(join.predecessors.begin(), join.predecessors.end(), way) -
                               join.predecessors.begin());
        };
        const ValueId x = of_reciprocal ? *of_reciprocal : *of_root;
        for (const Phi& phi : join.phis) {
            const ValueId from_short = phi.incoming[place(short_way)], from_slow = phi.incoming[place(slow_way)];
            if (from_short == from_slow) continue;
            const ptx::Instruction* statement = made_[from_slow];
            const FormId form = of_reciprocal ? FormId::rcp_f32 : FormId::sqrt_f32;
            if (statement == nullptr || statement->form != form || !statement->has(Modifier::rn) ||
                statement->has(Modifier::ftz) || !is_value(statement->operands[1], x))
                return false;
            if (!(of_reciprocal ? is_short_reciprocal(from_short, x) : is_short_root(from_short, x))) return false;
        }
        // Which way is chosen by a constant, for simplify().
        const ValueId constant = ValueId(graph_.values.size());
        SsaValue value;
        value.type = ptx::ScalarType::pred;
        value.is_constant = true;
        value.constant = 1;
        graph_.values.push_back(std::move(value));
        made_.push_back(nullptr);
        terminator.condition = constant;
        terminator.negated = short_place == 0;
        return true;
    }

    FunctionGraph& graph_;
    std::vector<const ptx::Instruction*> made_; ///< by value, without a guard
};

} // namespace

bool restore_roots(FunctionGraph& graph) {
    return RootRestorer(graph).run();
}

} // namespace ptarmigan::translator
