// SPDX-License-Identifier: Apache-2.0
// Values per thread: folded where all operands are known, else by rules for a known low part below a uniform upper one.
#include "translator/analysis/arithmetic/thread_bits.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/low_mask.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

/// More assumptions than this are not worth following.
constexpr std::size_t assumption_limit = 8;

void assume(std::vector<ValueId>& all, const std::vector<ValueId>& more) {
    for (ValueId value : more)
        if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
}

} // namespace

ThreadBitsTable::ThreadBitsTable(const FunctionGraph& graph, const BlockShape& block, std::size_t budget)
    : graph_(graph), block_(block), threads_(std::size_t(block.ntid[0]) * block.ntid[1] * block.ntid[2]),
      budget_(budget) {}

/// Most kernels never ask.
void ThreadBitsTable::index_definitions() {
    definition_.assign(graph_.values.size(), nullptr);
    state_.assign(graph_.values.size(), State::unseen);
    values_.resize(graph_.values.size());
    for (const Block& block : graph_.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (auto results = definitions(graph_, instruction); results.size() == 1 && instruction.previous.empty())
                definition_[results[0]] = &instruction;
}

bool ThreadBitsTable::spend() {
    if (budget_ < threads_) return false;
    budget_ -= threads_;
    return true;
}

const ThreadBits* ThreadBitsTable::of_result(const ptx::Instruction& inst) {
    if (definition_.empty()) index_definitions();
    const Operand& d = inst.operands[0];
    if (d.kind != Operand::Kind::reg || definition_[d.index] == nullptr || &definition_[d.index]->inst != &inst)
        return nullptr;
    const ThreadBits* known = of_value(d.index);
    // A value that is only assumed uniform as a whole says nothing.
    bool assumed_itself = known && known->assumed.size() == 1 && known->assumed[0] == d.index;
    return assumed_itself ? nullptr : known;
}

/// A value that cannot be computed is taken for a number that is uniform in each step, if that is assumed.
const ThreadBits* ThreadBitsTable::of_value(ValueId value) {
    if (state_[value] == State::open) return nullptr; // only unreachable code defines a value by itself
    if (state_[value] == State::unseen) {
        state_[value] = State::open;
        const GraphInstruction* instruction = definition_[value];
        if (instruction && ptx::form_info(instruction->inst.form).effects == ptx::Effects::pure)
            values_[value] = evaluate(instruction->inst);
        if (!values_[value]) values_[value] = ThreadBits{0, true, {}, {value}};
        state_[value] = State::done;
    }
    return &*values_[value];
}

std::optional<ThreadBits> ThreadBitsTable::of_special(const Operand& operand) const {
    unsigned c = operand.component;
    ThreadBits known{32, true, std::vector<std::uint64_t>(threads_), {}};
    switch (ptx::SpecialRegister(operand.index)) {
    case ptx::SpecialRegister::tid:
        if (c > 2) return std::nullopt;
        for (std::uint64_t t = 0; t < threads_; ++t) {
            std::uint64_t x = block_.ntid[0], y = block_.ntid[1];
            known.bits[t] = c == 0 ? t % x : c == 1 ? t / x % y : t / (x * y);
        }
        return known;
    case ptx::SpecialRegister::laneid:
        for (std::uint64_t t = 0; t < threads_; ++t) known.bits[t] = t % 32;
        return known;
    case ptx::SpecialRegister::ctaid: return ThreadBits{0, true, {}, {}};
    default: return std::nullopt;
    }
}

std::optional<ThreadBitsTable::Term> ThreadBitsTable::source(const Operand& operand) {
    unsigned bits = ptx::bit_size(operand.type);
    if (bits == 0 || bits > 64) return std::nullopt;
    auto number = [&](std::uint64_t value) {
        value &= low_mask(bits);
        return Term{{bits, true, std::vector<std::uint64_t>(threads_, value), {}}, value};
    };
    switch (operand.kind) {
    case Operand::Kind::imm: return number(operand.negated ? operand.value ^ 1 : operand.value);
    case Operand::Kind::special: {
        if (auto constant = constant_special(operand, block_)) return number(*constant);
        if (auto known = of_special(operand)) return Term{std::move(*known), std::nullopt};
        return std::nullopt;
    }
    case Operand::Kind::reg: {
        const SsaValue& info = graph_.values[operand.index];
        if (info.is_constant) return number(operand.negated ? info.constant ^ 1 : info.constant);
        if (operand.negated || info.is_undefined) return std::nullopt;
        const ThreadBits* known = of_value(operand.index);
        if (!known) return std::nullopt;
        Term term{*known, std::nullopt};
        if (term.known.low > bits) { // reads the low part of the register
            term.known.low = bits;
            for (std::uint64_t& value : term.known.bits) value &= low_mask(bits);
        }
        return term;
    }
    case Operand::Kind::variable:
        // In a cluster, each CTA's window begins elsewhere.
        if (operand.scope != ptx::VariableScope::shared || block_.cluster != std::array<std::uint32_t, 3>{1, 1, 1})
            return std::nullopt;
        return number(graph_.shared.at(operand.index).offset + operand.value); // see FunctionGraph
    default: return std::nullopt;
    }
}

ThreadBitsTable::Known ThreadBitsTable::evaluate(const ptx::Instruction& inst) {
    const Operand& d = inst.operands[0];
    if (inst.guard != ptx::no_id || inst.operand_count < 2 || d.kind != Operand::Kind::reg) return std::nullopt;
    unsigned bits = ptx::bit_size(d.type);
    if (bits > 64 || bits != ptx::bit_size(graph_.values[d.index].type)) return std::nullopt;
    std::vector<Term> terms;
    std::vector<ValueId> assumed;
    bool complete = true;
    auto infos = ptx::form_info(inst.form).operands;
    for (unsigned i = 1; i < inst.operand_count; ++i) {
        if (inst.operands[i].kind == Operand::Kind::none) continue;
        if (infos[i].is_destination) return std::nullopt;
        std::optional<Term> term = source(inst.operands[i]);
        if (!term) return std::nullopt;
        complete = complete && term->known.low == ptx::bit_size(inst.operands[i].type);
        assume(assumed, term->known.assumed);
        terms.push_back(std::move(*term));
    }
    if (assumed.size() > assumption_limit || !spend()) return std::nullopt;
    Known known = complete ? fold(inst, terms, bits) : partial(inst, terms, bits);
    if (known) known->assumed = std::move(assumed);
    return known;
}

ThreadBitsTable::Known ThreadBitsTable::fold(const ptx::Instruction& inst, const std::vector<Term>& terms,
                                             unsigned bits) {
    ThreadBits result{bits, true, std::vector<std::uint64_t>(threads_), {}};
    std::vector<std::uint64_t> sources(terms.size());
    for (std::size_t t = 0; t < threads_; ++t) {
        for (std::size_t i = 0; i < terms.size(); ++i) sources[i] = terms[i].known.of(t);
        std::optional<std::uint64_t> value = fold_constant(inst, sources);
        if (!value) return std::nullopt;
        result.bits[t] = *value & low_mask(bits);
    }
    return result;
}

/// a = A * 2^low + a', likewise b: the sum's low part is a' + b' if that does not carry.
ThreadBitsTable::Known ThreadBitsTable::sum(const Term& a, const Term& b, unsigned bits, bool subtract) {
    ThreadBits result{std::min({a.known.low, b.known.low, bits}),
                      a.known.upper_uniform && b.known.upper_uniform,
                      std::vector<std::uint64_t>(threads_),
                      {}};
    // Above the shorter known part, the longer one's bits are not known to be uniform.
    const ThreadBits& longer = a.known.low > b.known.low ? a.known : b.known;
    for (std::size_t t = 0; t < threads_; ++t) {
        std::uint64_t x = a.known.of(t), y = b.known.of(t), mask = low_mask(result.low);
        std::uint64_t value = subtract ? (x & mask) - (y & mask) : (x & mask) + (y & mask);
        if ((value & ~mask) || (longer.of(t) & ~mask) != (longer.of(0) & ~mask)) result.upper_uniform = false;
        result.bits[t] = value & mask;
    }
    return result;
}

/// (A * 2^low + a') * c * 2^s = A c * 2^(low + s) + a' c 2^s.
ThreadBitsTable::Known ThreadBitsTable::product(const Term& a, const Term& b, unsigned bits) {
    if (!b.constant) return a.constant ? product(b, a, bits) : std::nullopt;
    std::uint64_t factor = *b.constant;
    if (factor == 0) return ThreadBits{bits, true, {}, {}};
    unsigned low = std::min(a.known.low + unsigned(std::countr_zero(factor)), bits);
    ThreadBits result{low, a.known.upper_uniform, std::vector<std::uint64_t>(threads_), {}};
    for (std::size_t t = 0; t < threads_; ++t) {
        unsigned __int128 value = static_cast<unsigned __int128>(a.known.of(t)) * factor;
        if (low < bits && (value >> low) != 0) result.upper_uniform = false;
        result.bits[t] = std::uint64_t(value) & low_mask(low);
    }
    return result;
}

/// Bits of `a` where `mask` has ones; a mask within the known part makes the result known.
ThreadBitsTable::Known ThreadBitsTable::masked(const Term& a, std::uint64_t mask, unsigned bits) {
    bool within = (mask & ~low_mask(a.known.low)) == 0;
    ThreadBits result{
        within ? bits : a.known.low, within || a.known.upper_uniform, std::vector<std::uint64_t>(threads_), {}};
    for (std::size_t t = 0; t < threads_; ++t) result.bits[t] = a.known.of(t) & mask;
    return result;
}

ThreadBitsTable::Known ThreadBitsTable::shifted_right(const ptx::Instruction& inst, const Term& a, const Term& by) {
    if (!by.constant || *by.constant >= ptx::bit_size(inst.type()) || !a.known.upper_uniform) return std::nullopt;
    unsigned amount = unsigned(*by.constant);
    ThreadBits result{a.known.low > amount ? a.known.low - amount : 0, true, std::vector<std::uint64_t>(threads_), {}};
    for (std::size_t t = 0; t < threads_; ++t) result.bits[t] = a.known.of(t) >> amount;
    return result;
}

/// Extension and truncation: the sign is among the bits above the known ones.
ThreadBitsTable::Known ThreadBitsTable::extended(const Term& a, unsigned bits) {
    ThreadBits result = a.known;
    if (result.low <= bits) return result;
    result.low = bits;
    for (std::uint64_t& value : result.bits) value &= low_mask(bits);
    return result;
}

ThreadBitsTable::Known ThreadBitsTable::partial(const ptx::Instruction& inst, const std::vector<Term>& terms,
                                                unsigned bits) {
    auto bitwise = [&](auto op) -> Known {
        const Term &a = terms[0].constant ? terms[1] : terms[0], &b = terms[0].constant ? terms[0] : terms[1];
        if (!b.constant) return std::nullopt;
        return op(a, *b.constant);
    };
    switch (inst.form) {
    case FormId::mov:
    case FormId::cvt_same_32:
    case FormId::cvt_same_64:
    case FormId::cvt_widen_64:
    case FormId::cvt_narrow_32: return extended(terms[0], bits);
    case FormId::add_int: return sum(terms[0], terms[1], bits, false);
    case FormId::sub_int: return sum(terms[0], terms[1], bits, true);
    case FormId::mul_lo: return product(terms[0], terms[1], bits);
    case FormId::mad_lo: {
        Known factor = product(terms[0], terms[1], bits);
        return factor ? sum({*factor, std::nullopt}, terms[2], bits, false) : factor;
    }
    case FormId::shl: {
        if (!terms[1].constant || *terms[1].constant >= bits) return std::nullopt;
        std::uint64_t factor = std::uint64_t(1) << *terms[1].constant;
        return product(terms[0], {{}, factor}, bits);
    }
    case FormId::shr: return shifted_right(inst, terms[0], terms[1]);
    case FormId::and_bits: return bitwise([&](const Term& a, std::uint64_t b) { return masked(a, b, bits); });
    case FormId::or_bits:
    case FormId::xor_bits:
        return bitwise([&](const Term& a, std::uint64_t b) -> Known {
            ThreadBits result = a.known;
            if (result.bits.empty()) result.bits.resize(threads_);
            for (std::uint64_t& value : result.bits)
                value = (inst.form == FormId::or_bits ? value | b : value ^ b) & low_mask(result.low);
            return result;
        });
    case FormId::rem_int:
        // Of an unsigned number by a power of two.
        if (!terms[1].constant || ptx::is_signed(inst.type()) || !std::has_single_bit(*terms[1].constant))
            return std::nullopt;
        return masked(terms[0], *terms[1].constant - 1, bits);
    case FormId::div_int: {
        if (!terms[1].constant || ptx::is_signed(inst.type()) || !std::has_single_bit(*terms[1].constant))
            return std::nullopt;
        std::uint64_t amount = std::uint64_t(std::countr_zero(*terms[1].constant));
        return shifted_right(inst, terms[0], {{}, amount});
    }
    default: return std::nullopt;
    }
}

} // namespace ptarmigan::translator
