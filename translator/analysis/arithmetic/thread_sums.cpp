// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/thread_sums.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/build_ssa.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::Modifier;
using ptx::Operand;
using Term = LinearSum::Term;

namespace {

/// Threads times instructions: asked of kernels in which threads may race, only.
constexpr std::size_t evaluation_budget = 1 << 19;
/// Conditions made of conditions that are looked into, and copies of values that leave loops.
constexpr unsigned most_nested = 4, most_copies = 8;

std::int64_t as_signed(std::uint64_t bits, unsigned size) {
    return size >= 64 ? std::int64_t(bits) : std::int64_t(bits << (64 - size)) >> (64 - size);
}

} // namespace

ThreadSums::ThreadSums(const FunctionGraph& graph, const BlockShape& block)
    : graph_(graph), sums_(graph), bits_(graph, block, evaluation_budget) {
    const Edges successors = successor_edges(graph);
    tree_ = DominatorTree(successors, reverse_edges(successors), 0);
}

std::optional<std::uint32_t> ThreadSums::shared_variable(ValueId value) const {
    const GraphInstruction* definition = sums_.definition(value).instruction;
    if (!definition || definition->inst.form != ptx::FormId::mov) return std::nullopt;
    const Operand& source = definition->inst.operands[1];
    if (source.kind != Operand::Kind::variable || source.scope != ptx::VariableScope::shared) return std::nullopt;
    return source.index;
}

ThreadSum ThreadSums::of(const LinearSum& sum) {
    ThreadSum result;
    result.numbers.assign(threads(), sum.constant);
    const auto add = [&](const ThreadBits& known, unsigned size, std::int64_t factor) {
        for (std::size_t t = 0; t < threads(); ++t) result.numbers[t] += factor * as_signed(known.of(t), size);
    };
    std::vector<std::pair<Term, std::int64_t>> work(sum.terms.begin(), sum.terms.end());
    for (unsigned copies_left = most_copies; !work.empty();) {
        const auto [term, factor] = work.back();
        work.pop_back();
        if (term.kind == Term::Kind::special) {
            Operand operand;
            operand.kind = Operand::Kind::special;
            operand.index = term.id;
            operand.component = term.component;
            if (const auto known = bits_.of_special(operand); known && known->low == 32)
                add(*known, 32, factor);
            else if (const auto name = ptx::SpecialRegister(term.id);
                     name == ptx::SpecialRegister::ctaid || name == ptx::SpecialRegister::nctaid)
                result.uniform[term] += factor;
            else
                result.varying[term] += factor;
            continue;
        }
        if (term.kind == Term::Kind::product) {
            result.varying[term] += factor;
            continue;
        }
        const LinearSums::Definition& definition = sums_.definition(term.id);
        if (definition.phi && definition.phi->incoming.size() == 1 && copies_left > 0) {
            --copies_left;
            const std::optional<LinearSum> source = sums_.of(definition.phi->incoming[0], no_loop);
            for (std::int64_t& number : result.numbers) number += factor * source->constant;
            for (const auto& [more, scale] : source->terms) work.emplace_back(more, scale * factor);
            continue;
        }
        if (const auto variable = shared_variable(term.id)) {
            const std::int64_t address =
                graph_.shared[*variable].offset + std::int64_t(definition.instruction->inst.operands[1].value);
            for (std::int64_t& number : result.numbers) number += factor * address;
            continue;
        }
        const SsaValue& info = graph_.values[term.id];
        const unsigned size = ptx::bit_size(info.type);
        const ThreadBits* known = definition.instruction ? bits_.of_result(definition.instruction->inst) : nullptr;
        if (known && known->low == size)
            add(*known, size, factor);
        else
            (info.shape.level == Shape::Level::cta_uniform ? result.uniform : result.varying)[term] += factor;
    }
    return result;
}

void ThreadSums::add_facts(ThreadSet& set, const ptx::Instruction& comparison, bool holds) const {
    using ptx::FormId;
    if (comparison.form != FormId::setp_signed && comparison.form != FormId::setp_unsigned &&
        comparison.form != FormId::setp_bits)
        return;
    const auto a = sums_.of(comparison[ptx::Role::a], no_loop), b = sums_.of(comparison[ptx::Role::b], no_loop);
    if (!a || !b) return;
    const auto not_less = [&](const LinearSum& x, const LinearSum& y, std::int64_t by) {
        LinearSum fact = x.plus(y, -1);
        fact.constant -= by;
        set.facts.push_back(std::move(fact));
    };
    switch (comparison.one_of({Modifier::eq, Modifier::ne, Modifier::lt, Modifier::le, Modifier::gt, Modifier::ge,
                               Modifier::lo, Modifier::ls, Modifier::hi, Modifier::hs})) {
    case Modifier::lt:
    case Modifier::lo: return holds ? not_less(*b, *a, 1) : not_less(*a, *b, 0);
    case Modifier::le:
    case Modifier::ls: return holds ? not_less(*b, *a, 0) : not_less(*a, *b, 1);
    case Modifier::gt:
    case Modifier::hi: return holds ? not_less(*a, *b, 1) : not_less(*b, *a, 0);
    case Modifier::ge:
    case Modifier::hs: return holds ? not_less(*a, *b, 0) : not_less(*b, *a, 1);
    case Modifier::eq:
    case Modifier::ne:
        if (holds == comparison.has(Modifier::eq)) {
            not_less(*a, *b, 0);
            not_less(*b, *a, 0);
        }
        return;
    default: return;
    }
}

void ThreadSums::restrict(ThreadSet& set, ValueId condition, bool holds, unsigned depth) {
    const GraphInstruction* definition = sums_.definition(condition).instruction;
    if (!definition || depth == 0 || !definition->previous.empty()) return;
    const ptx::Instruction& inst = definition->inst;
    if (inst.operands[0].kind != Operand::Kind::reg || inst.operands[0].index != condition) return; // p|q
    if (const ThreadBits* known = bits_.of_result(inst); known && known->low == 1) {
        for (std::size_t t = 0; t < threads(); ++t)
            if ((known->of(t) != 0) != holds) set.threads[t] = false;
        return;
    }
    const bool all = inst.form == ptx::FormId::and_bits && holds, none = inst.form == ptx::FormId::or_bits && !holds;
    if (all || none) {
        for (unsigned i : {1u, 2u})
            if (inst.operands[i].kind == Operand::Kind::reg)
                restrict(set, inst.operands[i].index, holds != inst.operands[i].negated, depth - 1);
        return;
    }
    add_facts(set, inst, holds);
}

/// Who comes to the block's dominator, less those that a branch there leads elsewhere.
const ThreadSet& ThreadSums::in_block(BlockId block) {
    if (const auto found = blocks_.find(block); found != blocks_.end()) return found->second;
    ThreadSet set{std::vector<bool>(threads(), true), {}};
    const BlockId parent = tree_.reachable(block) ? tree_.parent(block) : no_block;
    if (parent != no_block) {
        set = in_block(parent);
        const Block& above = graph_.blocks[parent];
        const bool only_way = graph_.blocks[block].predecessors.size() == 1;
        if (above.terminator.kind == Terminator::Kind::branch && only_way && above.successors[0] != above.successors[1])
            restrict(set, above.terminator.condition, (above.successors[0] == block) != above.terminator.negated,
                     most_nested);
    }
    return blocks_[block] = std::move(set);
}

ThreadSet ThreadSums::executing(BlockId block, const ptx::Instruction& inst) {
    ThreadSet set = in_block(block);
    if (inst.guard != ptx::no_id) restrict(set, inst.guard, !inst.guard_negated, most_nested);
    return set;
}

} // namespace ptarmigan::translator
