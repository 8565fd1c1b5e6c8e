// SPDX-License-Identifier: Apache-2.0
// Values as sums over a loop's header phis: what the phi gains by a round, times its factor, is what the value gains.
#include "translator/analysis/loop_strides.h"

#include "translator/analysis/form_queries.h"
#include "translator/analysis/graph_queries.h"

namespace ptarmigan::translator {

using ptx::FormId;
using ptx::Operand;

namespace {

/// Addresses are sums of few things; what is nested deeper is given up.
constexpr unsigned depth_limit = 24;

} // namespace

LoopStrides::LoopStrides(const FunctionGraph& graph) : graph_(graph), definitions_(graph.values.size()) {
    for (const Block& block : graph.blocks) {
        for (const Phi& phi : block.phis) definitions_[phi.result].phi = &phi;
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : definitions(graph, instruction)) definitions_[value].instruction = &instruction;
    }
}

bool LoopStrides::is_invariant(ValueId value, std::uint32_t loop) const {
    BlockId block = graph_.values[value].block;
    return block == no_block || !graph_.forest.inside(graph_.forest.loop_of[block], loop);
}

std::optional<LoopStrides::Sum> LoopStrides::total(const std::optional<Sum>& a, const std::optional<Sum>& b, std::int64_t factor) {
    if (!a || !b) return std::nullopt;
    Sum sum = *a;
    sum.constant = std::int64_t(std::uint64_t(sum.constant) + std::uint64_t(factor) * std::uint64_t(b->constant));
    for (auto [value, scale] : b->terms) {
        std::int64_t& place = sum.terms[value];
        place = std::int64_t(std::uint64_t(place) + std::uint64_t(factor) * std::uint64_t(scale));
        if (place == 0) sum.terms.erase(value);
    }
    return sum;
}

std::optional<LoopStrides::Sum> LoopStrides::product(const std::optional<Sum>& a, const std::optional<Sum>& b) {
    if (!a || !b) return std::nullopt;
    if (!a->terms.empty() && !b->terms.empty()) return std::nullopt;
    const Sum& factor = a->terms.empty() ? *a : *b;
    return total(Sum{}, a->terms.empty() ? *b : *a, factor.constant);
}

std::optional<LoopStrides::Sum> LoopStrides::sum_of(const Operand& operand, std::uint32_t loop, unsigned depth) const {
    if (operand.kind == Operand::Kind::imm) {
        unsigned bits = ptx::bit_size(operand.type);
        std::int64_t value = std::int64_t(operand.value);
        if (ptx::is_signed(operand.type) && bits > 0 && bits < 64)
            value = std::int64_t(operand.value << (64 - bits)) >> (64 - bits);
        return Sum{value, {}};
    }
    if (operand.kind != Operand::Kind::reg || operand.negated) return std::nullopt;
    return sum_of(operand.index, loop, depth);
}

std::optional<LoopStrides::Sum> LoopStrides::result_of(const ptx::Instruction& inst, std::uint32_t loop, unsigned depth) const {
    auto source = [&](unsigned index) { return sum_of(inst.operands[index], loop, depth); };
    switch (inst.form) {
    case FormId::mov: case FormId::cvta: case FormId::cvta_to: case FormId::cvt_same_32: case FormId::cvt_same_64:
    case FormId::cvt_widen_64: return source(1);
    case FormId::add_int: return total(source(1), source(2));
    case FormId::sub_int: return total(source(1), source(2), -1);
    case FormId::mul_lo: case FormId::mul_wide: return product(source(1), source(2));
    case FormId::mad_lo: case FormId::mad_wide: return total(product(source(1), source(2)), source(3));
    case FormId::shl: {
        std::optional<Sum> amount = source(2);
        if (!amount || !amount->terms.empty() || amount->constant < 0 || amount->constant > 31) return std::nullopt;
        return product(source(1), Sum{std::int64_t(1) << amount->constant, {}});
    }
    default: return std::nullopt;
    }
}

std::optional<LoopStrides::Sum> LoopStrides::sum_of(ValueId value, std::uint32_t loop, unsigned depth) const {
    const SsaValue& info = graph_.values[value];
    if (info.is_constant) {
        unsigned bits = ptx::bit_size(info.type);
        return Sum{bits < 64 ? std::int64_t(info.constant << (64 - bits)) >> (64 - bits) : std::int64_t(info.constant), {}};
    }
    if (is_invariant(value, loop)) return Sum{0, {{value, 1}}};
    if (depth == 0) return std::nullopt;
    const Definition& definition = definitions_[value];
    if (definition.phi) {
        if (info.block == graph_.forest.loops[loop].header) return Sum{0, {{value, 1}}};
        return std::nullopt;
    }
    if (!definition.instruction || !definition.instruction->previous.empty()) return std::nullopt;
    return result_of(definition.instruction->inst, loop, depth - 1);
}

std::optional<std::int64_t> LoopStrides::of(ValueId value, std::uint32_t loop) const {
    std::optional<Sum> sum = sum_of(value, loop, depth_limit);
    if (!sum) return std::nullopt;
    std::optional<Sum> gain = Sum{};
    const LoopInfo& info = graph_.forest.loops[loop];
    for (auto [term, scale] : sum->terms) {
        if (is_invariant(term, loop)) continue;
        const Phi& phi = *definitions_[term].phi;
        const auto& predecessors = graph_.blocks[info.header].predecessors;
        for (std::size_t i = 0; i < predecessors.size(); ++i) {
            if (predecessors[i] != info.latch) continue;
            std::optional<Sum> next = total(sum_of(phi.incoming[i], loop, depth_limit), Sum{0, {{term, 1}}}, -1);
            gain = total(gain, next, scale);
        }
    }
    if (!gain || !gain->terms.empty()) return std::nullopt;
    return gain->constant;
}

bool LoopStrides::depends_on_load(ValueId value, std::uint32_t loop) const {
    std::vector<ValueId> work{value};
    std::vector<bool> seen(graph_.values.size(), false);
    while (!work.empty()) {
        ValueId next = work.back();
        work.pop_back();
        if (seen[next] || is_invariant(next, loop)) continue;
        seen[next] = true;
        const Definition& definition = definitions_[next];
        if (!definition.instruction) continue; // carried from the round before, or chosen: not an index just read
        if (has_effect(definition.instruction->inst, ptx::Effects::load)) return true;
        for (ValueId source : uses(graph_, *definition.instruction)) work.push_back(source);
    }
    return false;
}

} // namespace ptarmigan::translator
