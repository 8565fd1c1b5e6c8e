// SPDX-License-Identifier: Apache-2.0
// Values as sums over a loop's header phis: what the phi gains by a round, times its factor, is what the value gains.
#include "translator/analysis/loops/loop_strides.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {

namespace {
/// As linear_sums' own.
constexpr unsigned step_limit = 256;
} // namespace

std::optional<std::int64_t> LoopStrides::of(ValueId value, std::uint32_t loop) const {
    const std::optional<LinearSum> gain = gain_of(value, loop);
    if (!gain || !gain->terms.empty()) return std::nullopt;
    return gain->constant;
}

std::optional<LinearSum> LoopStrides::gain_of(ValueId value, std::uint32_t loop) const {
    const std::optional<LinearSum> sum = sums_.of(value, loop);
    if (sum) return gain_of(*sum, loop);
    unsigned steps_left = step_limit;
    return gain_through_products(value, loop, steps_left);
}

/// `row * pitch` is no sum, but gains `pitch` for each row.
std::optional<LinearSum> LoopStrides::gain_through_products(ValueId value, std::uint32_t loop,
                                                            unsigned& steps_left) const {
    using ptx::FormId;
    if (const std::optional<LinearSum> sum = sums_.of(value, loop)) return gain_of(*sum, loop);
    const GraphInstruction* definition = sums_.definition(value).instruction;
    if (steps_left == 0 || !definition || !definition->previous.empty()) return std::nullopt;
    --steps_left;
    const ptx::Instruction& inst = definition->inst;
    const auto gain = [&](unsigned index) -> std::optional<LinearSum> {
        const ptx::Operand& operand = inst.operands[index];
        if (operand.kind == ptx::Operand::Kind::imm || operand.kind == ptx::Operand::Kind::special) return LinearSum{};
        if (operand.kind != ptx::Operand::Kind::reg || operand.negated) return std::nullopt;
        return gain_through_products(operand.index, loop, steps_left);
    };
    const auto stays = [](const std::optional<LinearSum>& gained) {
        return gained && gained->terms.empty() && gained->constant == 0;
    };
    const auto plus = [](const std::optional<LinearSum>& a, const std::optional<LinearSum>& b,
                         std::int64_t factor) -> std::optional<LinearSum> {
        if (!a || !b) return std::nullopt;
        return a->plus(*b, factor);
    };
    const auto product = [&]() -> std::optional<LinearSum> {
        std::optional<LinearSum> a = gain(1), b = gain(2);
        const bool a_moves = !stays(a);
        if (!a || !b || (a_moves && !stays(b))) return std::nullopt;
        const std::optional<LinearSum> fixed = sums_.of(inst.operands[a_moves ? 2 : 1], loop);
        const LinearSum& moving = a_moves ? *a : *b;
        if (!fixed || (!fixed->terms.empty() && !moving.terms.empty())) return std::nullopt;
        return fixed->terms.empty() ? LinearSum{}.plus(moving, fixed->constant)
                                    : LinearSum{}.plus(*fixed, moving.constant);
    };
    switch (inst.form) {
    case FormId::mov:
    case FormId::cvta:
    case FormId::cvta_to:
    case FormId::cvt_same_32:
    case FormId::cvt_same_64:
    case FormId::cvt_widen_64: return gain(1);
    case FormId::add_int: return plus(gain(1), gain(2), 1);
    case FormId::sub_int: return plus(gain(1), gain(2), -1);
    case FormId::mul_lo:
    case FormId::mul_wide: return product();
    case FormId::mad_lo:
    case FormId::mad_wide: return plus(product(), gain(3), 1);
    case FormId::shl: {
        const ptx::Operand& amount = inst.operands[2];
        if (amount.kind != ptx::Operand::Kind::imm || amount.value > 31) return std::nullopt;
        return plus(LinearSum{}, gain(1), std::int64_t(1) << amount.value);
    }
    default: return std::nullopt;
    }
}

std::optional<LinearSum> LoopStrides::gain_of(const LinearSum& sum, std::uint32_t loop) const {
    LinearSum gain;
    const LoopInfo& info = graph_.forest.loops[loop];
    for (auto [term, scale] : sum.terms) {
        if (term.kind != LinearSum::Term::Kind::value || !sums_.is_inside(term.id, loop)) continue;
        const Phi& phi = *sums_.definition(term.id).phi;
        const auto& predecessors = graph_.blocks[info.header].predecessors;
        for (std::size_t i = 0; i < predecessors.size(); ++i) {
            if (predecessors[i] != info.latch) continue;
            const std::optional<LinearSum> next = sums_.of(phi.incoming[i], loop);
            if (!next) return std::nullopt;
            gain = gain.plus(next->plus({0, {{term, 1}}}, -1), scale);
        }
    }
    // What a phi gains may be another phi, as in a sum of sums.
    const bool moves = std::any_of(gain.terms.begin(), gain.terms.end(), [&](const auto& term) {
        return term.first.kind == LinearSum::Term::Kind::value && sums_.is_inside(term.first.id, loop);
    });
    if (moves) return std::nullopt;
    return gain;
}

bool LoopStrides::depends_on_load(ValueId value, std::uint32_t loop) const {
    std::vector<ValueId> work{value};
    std::vector<bool> seen(graph_.values.size(), false);
    while (!work.empty()) {
        ValueId next = work.back();
        work.pop_back();
        if (seen[next] || !sums_.is_inside(next, loop)) continue;
        seen[next] = true;
        const GraphInstruction* definition = sums_.definition(next).instruction;
        if (!definition) continue; // carried from the round before, or chosen: not an index just read
        if (has_effect(definition->inst, ptx::Effects::load)) return true;
        for (ValueId source : uses(graph_, *definition)) work.push_back(source);
    }
    return false;
}

} // namespace ptarmigan::translator
