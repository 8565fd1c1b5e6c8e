// SPDX-License-Identifier: Apache-2.0
// Walks from a value to what it is computed from, through the forms that address arithmetic is made of.
#include "translator/analysis/arithmetic/linear_sums.h"

#include "translator/analysis/graph/graph_queries.h"

namespace ptarmigan::translator {

using ptx::FormId;
using ptx::Operand;
using MaybeSum = std::optional<LinearSum>;
using Kind = LinearSum::Term::Kind;

namespace {

/// Addresses are sums of few things; what takes more steps is given up. A limit of depth alone would not do: `x = x * x
/// + x` over and over is as many ways as there are leaves.
constexpr unsigned step_limit = 256;

LinearSum constant(std::uint64_t bits, ptx::ScalarType type) {
    const unsigned size = ptx::bit_size(type);
    return {size > 0 && size < 64 ? std::int64_t(bits << (64 - size)) >> (64 - size) : std::int64_t(bits), {}};
}

LinearSum single(LinearSum::Term term) {
    return {0, {{term, 1}}};
}

MaybeSum sum(const MaybeSum& a, const MaybeSum& b, std::int64_t factor = 1) {
    if (!a || !b) return std::nullopt;
    return a->plus(*b, factor);
}

MaybeSum product(const MaybeSum& a, const MaybeSum& b) {
    if (!a || !b || (!a->terms.empty() && !b->terms.empty())) return std::nullopt;
    const bool a_is_factor = a->terms.empty();
    return LinearSum{}.plus(a_is_factor ? *b : *a, a_is_factor ? a->constant : b->constant);
}

} // namespace

LinearSum LinearSum::plus(const LinearSum& other, std::int64_t factor) const {
    auto multiply_add = [&](std::int64_t a, std::int64_t b) {
        return std::int64_t(std::uint64_t(a) + std::uint64_t(factor) * std::uint64_t(b));
    };
    LinearSum result = *this;
    result.constant = multiply_add(constant, other.constant);
    for (auto [term, scale] : other.terms) {
        std::int64_t& place = result.terms[term];
        place = multiply_add(place, scale);
        if (place == 0) result.terms.erase(term);
    }
    return result;
}

LinearSums::LinearSums(const FunctionGraph& graph) : graph_(graph), definitions_(graph.values.size()) {
    for (const Block& block : graph.blocks) {
        for (const Phi& phi : block.phis) definitions_[phi.result].phi = &phi;
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : definitions(graph, instruction)) definitions_[value].instruction = &instruction;
    }
}

bool LinearSums::is_inside(ValueId value, std::uint32_t loop) const {
    BlockId block = graph_.values[value].block;
    return block != no_block && graph_.forest.inside(graph_.forest.loop_of[block], loop);
}

MaybeSum LinearSums::of(ValueId value, std::uint32_t loop) const {
    unsigned steps_left = step_limit;
    return value_of(value, loop, steps_left);
}

MaybeSum LinearSums::of(const Operand& operand, std::uint32_t loop) const {
    unsigned steps_left = step_limit;
    return operand_of(operand, loop, steps_left);
}

MaybeSum LinearSums::operand_of(const Operand& operand, std::uint32_t loop, unsigned& steps_left) const {
    switch (operand.kind) {
    case Operand::Kind::imm: return constant(operand.value, operand.type);
    case Operand::Kind::special: return single({Kind::special, operand.index, operand.component});
    case Operand::Kind::reg: return operand.negated ? std::nullopt : value_of(operand.index, loop, steps_left);
    case Operand::Kind::address:
        if (operand.base != Operand::Base::reg) return std::nullopt;
        return sum(value_of(operand.index, loop, steps_left), LinearSum{std::int64_t(operand.value), {}});
    default: return std::nullopt;
    }
}

MaybeSum LinearSums::result_of(const ptx::Instruction& inst, ValueId value, std::uint32_t loop,
                               unsigned& steps_left) const {
    auto source = [&](unsigned index) { return operand_of(inst.operands[index], loop, steps_left); };
    switch (inst.form) {
    case FormId::mov:
    case FormId::cvta:
    case FormId::cvta_to:
    case FormId::cvt_same_32:
    case FormId::cvt_same_64:
    case FormId::cvt_widen_64: return source(1);
    case FormId::add_int: return sum(source(1), source(2));
    case FormId::sub_int: return sum(source(1), source(2), -1);
    case FormId::mul_lo:
    case FormId::mul_wide: return product(source(1), source(2));
    case FormId::mad_lo:
    case FormId::mad_wide: {
        MaybeSum factors = product(source(1), source(2));
        if (!factors && loop == no_loop) factors = single({Kind::product, value, 0});
        return sum(factors, source(3));
    }
    case FormId::shl: {
        MaybeSum amount = source(2);
        if (!amount || !amount->terms.empty() || amount->constant < 0 || amount->constant > 31) return std::nullopt;
        return product(source(1), LinearSum{std::int64_t(1) << amount->constant, {}});
    }
    default: return std::nullopt;
    }
}

MaybeSum LinearSums::value_of(ValueId value, std::uint32_t loop, unsigned& steps_left) const {
    const SsaValue& info = graph_.values[value];
    if (info.is_constant) return constant(info.constant, info.type);
    const LinearSum itself = single({Kind::value, value, 0});
    if (loop != no_loop && !is_inside(value, loop)) return itself;
    const Definition& definition = definitions_[value];
    if (loop != no_loop && definition.phi && info.block == graph_.forest.loops[loop].header) return itself;
    MaybeSum result;
    if (steps_left > 0 && definition.instruction && definition.instruction->previous.empty()) {
        --steps_left;
        result = result_of(definition.instruction->inst, value, loop, steps_left);
    }
    if (!result && loop == no_loop) return itself;
    return result;
}

} // namespace ptarmigan::translator
