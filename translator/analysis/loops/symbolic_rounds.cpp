// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/symbolic_rounds.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/low_mask.h"

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::ScalarType;

/// Of arithmetic outside of loops.
constexpr unsigned deepest = 16;

std::uint64_t cut(std::uint64_t value, unsigned bits) {
    return value & low_mask(bits);
}

} // namespace

Term Term::plus(const Term& other, std::uint64_t factor) const {
    Term sum = *this;
    sum.constant = cut(sum.constant + factor * other.constant, bits);
    for (const auto& [unknown, times] : other.unknowns) {
        std::uint64_t& mine = sum.unknowns[unknown];
        mine = cut(mine + factor * times, bits);
        if (mine == 0) sum.unknowns.erase(unknown);
    }
    return sum;
}

std::optional<std::uint64_t> Term::distance_from(const Term& other) const {
    const Term distance = plus(other, ~std::uint64_t(0));
    if (bits != other.bits || !distance.unknowns.empty()) return std::nullopt;
    return distance.constant;
}

std::uint64_t Term::factor_of(std::uint32_t unknown) const {
    const auto found = unknowns.find(unknown);
    return found == unknowns.end() ? 0 : found->second;
}

SymbolicRounds::SymbolicRounds(const FunctionGraph& graph) : graph_(graph), definitions_(definitions_of(graph)) {}

Term SymbolicRounds::number(std::uint64_t value, unsigned bits) const {
    return {.bits = bits, .constant = cut(value, bits), .unknowns = {}};
}

Term SymbolicRounds::unknown(std::uint32_t unknown, unsigned bits) const {
    return {.bits = bits, .constant = 0, .unknowns = {{unknown, 1}}};
}

std::uint32_t SymbolicRounds::unknown_for(Key key) {
    const auto [place, is_new] = known_.try_emplace(std::move(key), next_);
    if (is_new) ++next_;
    return place->second;
}

void SymbolicRounds::add(Key& key, const Term& term) const {
    key.push_back(term.bits);
    key.push_back(term.constant);
    key.push_back(term.unknowns.size());
    for (const auto& [unknown, factor] : term.unknowns) {
        key.push_back(unknown);
        key.push_back(factor);
    }
}

std::uint32_t SymbolicRounds::extension_of(const Term& narrow) {
    Key key{1};
    add(key, narrow);
    return unknown_for(std::move(key));
}

Term SymbolicRounds::widened(const Term& narrow) {
    if (narrow.unknowns.empty()) return number(std::uint64_t(std::int64_t(std::int32_t(narrow.constant))), 64);
    const std::optional<std::uint64_t> ahead = index_ ? narrow.distance_from(*index_) : std::nullopt;
    if (ahead && *ahead <= most_ahead_) return unknown(extension_of(*index_), 64).plus(number(*ahead, 64));
    return unknown(extension_of(narrow), 64);
}

unsigned SymbolicRounds::bits_of(ValueId value) const {
    const ScalarType type = graph_.values[value].type;
    return type == ScalarType::pred ? 1 : ptx::bit_size(type);
}

Term SymbolicRounds::of(ValueId value, const Values& values) {
    if (const auto found = values.find(value); found != values.end()) return found->second;
    const SsaValue& about = graph_.values[value];
    if (about.is_constant) return number(about.constant, bits_of(value));
    const GraphInstruction* definition = definitions_[value];
    if (definition && definition->inst.guard == ptx::no_id && depth_ < deepest &&
        graph_.forest.loop_of[about.block] == no_loop) {
        ++depth_;
        const std::optional<Term> sum = arithmetic(definition->inst, values);
        --depth_;
        if (sum && sum->bits == bits_of(value)) return *sum;
    }
    return unknown(unknown_for({0, value}), bits_of(value));
}

std::optional<Term> SymbolicRounds::operand(const Operand& operand, const Values& values, unsigned bits) {
    if (operand.negated || operand.component != 0) return std::nullopt;
    if (operand.kind == Operand::Kind::imm) return number(operand.value, bits);
    if (operand.kind != Operand::Kind::reg) return std::nullopt;
    const Term term = of(operand.index, values);
    if (term.bits != bits) return std::nullopt; // reads of wider registers
    return term;
}

/// Sums, and products with constants; none for other instructions.
std::optional<Term> SymbolicRounds::arithmetic(const ptx::Instruction& inst, const Values& values) {
    const Operand &a = inst.operands[1], &b = inst.operands[2];
    const unsigned bits = ptx::bit_size(inst.type());
    switch (inst.form) {
    case FormId::mov: return bits >= 32 ? operand(a, values, bits) : std::nullopt;
    case FormId::cvta_to: return operand(a, values, 64);
    case FormId::add_int:
    case FormId::sub_int: {
        if (bits < 32) return std::nullopt;
        const std::optional<Term> left = operand(a, values, bits), right = operand(b, values, bits);
        if (!left || !right) return std::nullopt;
        return left->plus(*right, inst.form == FormId::add_int ? 1 : ~std::uint64_t(0));
    }
    case FormId::shl: {
        const std::optional<Term> left = operand(a, values, bits);
        if (bits < 32 || !left || b.kind != Operand::Kind::imm || b.value >= bits) return std::nullopt;
        return number(0, bits).plus(*left, std::uint64_t(1) << b.value);
    }
    case FormId::mul_wide: {
        const std::optional<Term> left = inst.type() == ScalarType::s32 ? operand(a, values, 32) : std::nullopt;
        if (!left || b.kind != Operand::Kind::imm) return std::nullopt;
        return number(0, 64).plus(widened(*left), std::uint64_t(std::int64_t(std::int32_t(b.value))));
    }
    case FormId::cvt_widen_64: {
        if (inst.types[0] != ScalarType::s64 || inst.types[1] != ScalarType::s32) return std::nullopt;
        const std::optional<Term> narrow = operand(a, values, 32);
        return narrow ? std::optional(widened(*narrow)) : std::nullopt;
    }
    default: return std::nullopt;
    }
}

/// What an instruction computes from equal operands is equal.
std::optional<SymbolicRounds::Key> SymbolicRounds::key_of(const ptx::Instruction& inst, const Values& values) {
    const auto infos = ptx::form_info(inst.form).operands;
    Key key{2,
            std::uint64_t(inst.form),
            inst.operand_count,
            inst.modifier_count,
            inst.vector_size,
            std::uint64_t(inst.space)};
    for (const ScalarType type : inst.types) key.push_back(std::uint64_t(type));
    for (unsigned i = 0; i < inst.modifier_count; ++i) key.push_back(std::uint64_t(inst.modifiers[i]));
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        const Operand& each = inst.operands[i];
        key.push_back(std::uint64_t(each.kind));
        key.push_back(std::uint64_t(each.type) | std::uint64_t(each.negated) << 8 |
                      std::uint64_t(each.component) << 16);
        switch (each.kind) {
        case Operand::Kind::none:
        case Operand::Kind::sink: break;
        case Operand::Kind::imm: key.push_back(each.value); break;
        case Operand::Kind::reg:
            if (infos[i].is_destination)
                key.push_back(bits_of(each.index));
            else
                add(key, of(each.index, values));
            break;
        case Operand::Kind::address:
            if (each.base != Operand::Base::reg || bits_of(each.index) != 64) return std::nullopt;
            add(key, of(each.index, values).plus(number(each.value, 64)));
            break;
        default: return std::nullopt;
        }
    }
    return key;
}

bool SymbolicRounds::opaque(const GraphInstruction& instruction, Values& values) {
    std::optional<Key> key = key_of(instruction.inst, values);
    if (!key) return false;
    std::uint64_t number = 0;
    for (ValueId result : definitions(graph_, instruction)) {
        Key each = *key;
        each.push_back(number++);
        values.insert_or_assign(result, unknown(unknown_for(std::move(each)), bits_of(result)));
    }
    return true;
}

bool SymbolicRounds::run(BlockId block, Values& values) {
    for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
        const ptx::Instruction& inst = instruction.inst;
        if (inst.guard != ptx::no_id || !instruction.previous.empty() || !is_removable(inst) || is_strong(inst) ||
            instruction.lane_granule != 0)
            return false;
        const FewValues results = definitions(graph_, instruction);
        if (const std::optional<Term> sum = arithmetic(inst, values);
            sum && results.size() == 1 && sum->bits == bits_of(results[0]))
            values.insert_or_assign(results[0], *sum);
        else if (!opaque(instruction, values))
            return false;
    }
    return true;
}

} // namespace ptarmigan::translator
