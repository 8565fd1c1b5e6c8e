// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/memory/shared_accesses.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/alignment.h"

#include <algorithm>
#include <numeric>

namespace ptarmigan::translator {

using ptx::Effects;
using ptx::Operand;
using Term = LinearSum::Term;

namespace {

/// A piece of memory that a thread of a step touches.
struct Piece {
    std::int64_t begin, end;
    std::size_t step;
    bool is_first; ///< of the two accesses
};

/// The furthest end of what has begun, and the furthest of another step's.
struct Ends {
    std::int64_t best = INT64_MIN, other = INT64_MIN;
    std::size_t step = SIZE_MAX;
    void add(const Piece& piece) {
        if (piece.step == step) {
            best = std::max(best, piece.end);
        } else if (piece.end > best) {
            other = best;
            best = piece.end;
            step = piece.step;
        } else {
            other = std::max(other, piece.end);
        }
    }
    std::int64_t of_others(std::size_t than) const { return than == step ? other : best; }
};

/// Pieces of both accesses, of different steps, overlap.
bool pieces_meet(std::vector<Piece>& pieces) {
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    Ends firsts, seconds;
    for (const Piece& piece : pieces) {
        if ((piece.is_first ? seconds : firsts).of_others(piece.step) > piece.begin) return true;
        (piece.is_first ? firsts : seconds).add(piece);
    }
    return false;
}

bool come_in_different_steps(const std::vector<bool>& a, const std::vector<bool>& b, unsigned width) {
    bool some_a = false, some_b = false, differ = false;
    std::size_t step = SIZE_MAX;
    for (std::size_t t = 0; t < a.size(); ++t) {
        if (!a[t] && !b[t]) continue;
        differ = differ || (step != SIZE_MAX && step != t / width);
        step = t / width;
        some_a = some_a || a[t];
        some_b = some_b || b[t];
        if (some_a && some_b && differ) return true; // mostly soon, and this is asked of all pairs
    }
    return false;
}

} // namespace

SharedAccesses::SharedAccesses(const FunctionGraph& graph, const BlockShape& block, unsigned width,
                               const CalledFunctions& called)
    : graph_(graph), block_(block), width_(width), sums_(graph, block) {
    for (BlockId id = 0; id < graph.blocks.size(); ++id) {
        const std::vector<GraphInstruction>& instructions = graph.blocks[id].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const ptx::Instruction& inst = instructions[i].inst;
            if (is_call(inst) && called.share)
                all_.push_back({.block = id, .index = i, .reads = true, .writes = true, .is_anywhere = true});
            if (!has_effect(inst, Effects::load | Effects::store | Effects::atomic) ||
                has_effect(inst, Effects::call) || inst[ptx::Role::mbar].kind != Operand::Kind::none ||
                has_effect(inst, Effects::waits) || opcode(inst) == "mbarrier")
                continue;
            SharedAccess access{.block = id, .index = i};
            const Operand& address = operand(access);
            if (address.kind != Operand::Kind::address) continue;
            access.is_atomic = has_effect(inst, Effects::atomic);
            access.variable = variable_of(address);
            if (has_effect(inst, Effects::async)) {
                const Operand& size = inst[ptx::Role::size];
                if (size.kind != Operand::Kind::imm) continue;
                access.is_atomic = false;
                access.reads = true;
                access.bytes = std::uint32_t(size.value);
            } else {
                const bool is_shared = inst.space == ptx::StateSpace::shared ||
                                       (inst.space == ptx::StateSpace::generic && access.variable);
                const bool is_other = inst.space == ptx::StateSpace::global || inst.space == ptx::StateSpace::generic;
                if (!is_shared && !is_other) continue;
                access.is_global = !is_shared;
                access.reads = access.is_atomic || loads_accessed_memory(inst);
                access.writes = access.is_atomic || has_effect(inst, Effects::store);
                access.bytes = access_bytes(inst);
                // wmma: a matrix, whose lines are as far apart as the program says.
                access.is_anywhere = opcode(inst) == "wmma";
            }
            all_.push_back(access);
        }
    }
}

const Operand& SharedAccesses::operand(const SharedAccess& access) const {
    const ptx::Instruction& inst = graph_.blocks[access.block].instructions[access.index].inst;
    // Without an mbarrier bulk copies and reductions go from shared memory to global.
    return has_effect(inst, Effects::async) ? inst[ptx::Role::a] : accessed_memory(inst);
}

std::optional<std::uint32_t> SharedAccesses::variable_of(const Operand& address) const {
    if (address.base == Operand::Base::variable)
        return address.scope == ptx::VariableScope::shared ? std::optional(address.index) : std::nullopt;
    if (address.base != Operand::Base::reg) return std::nullopt;
    unsigned phis_left = 4;
    return variable_of(address.index, phis_left);
}

std::optional<std::uint32_t> SharedAccesses::variable_of(ValueId value, unsigned& phis_left) const {
    const std::optional<LinearSum> sum = sums_.sums().of(value, no_loop);
    if (!sum) return std::nullopt;
    for (const auto& [term, factor] : sum->terms) {
        if (term.kind != Term::Kind::value || factor != 1) continue;
        if (const auto variable = sums_.shared_variable(term.id)) return variable;
        const Phi* phi = sums_.sums().definition(term.id).phi;
        if (!phi || phis_left == 0) continue;
        --phis_left;
        for (ValueId incoming : phi->incoming)
            if (const auto found = variable_of(incoming, phis_left)) return found;
    }
    return std::nullopt;
}

/// Variables are apart, but those without a size begin together.
bool SharedAccesses::are_apart(const SharedAccess& first, const SharedAccess& second) const {
    if (!first.variable || !second.variable || first.variable == second.variable) return false;
    return graph_.shared[*first.variable].size != 0 || graph_.shared[*second.variable].size != 0;
}

const SharedAccesses::Known& SharedAccesses::known(const SharedAccess& access) {
    const auto [entry, is_new] = known_.try_emplace({access.block, access.index});
    if (!is_new) return entry->second;
    const ptx::Instruction& inst = graph_.blocks[access.block].instructions[access.index].inst;
    const Operand& address = operand(access);
    LinearSum sum{std::int64_t(address.value), {}};
    if (address.base == Operand::Base::reg)
        sum = *sums_.sums().of(address, no_loop);
    else if (address.base == Operand::Base::variable && address.scope == ptx::VariableScope::shared)
        sum.constant += graph_.shared[address.index].offset;
    entry->second = {sums_.of(sum), sums_.executing(access.block, inst)};
    return entry->second;
}

/// The same number in all threads between two accesses.
bool SharedAccesses::is_settled(const Term& term, const std::vector<bool>& passed) const {
    if (term.kind == Term::Kind::special) return true;
    const BlockId block = graph_.values[term.id].block;
    return block == no_block || !passed[block];
}

SharedAccesses::Span SharedAccesses::span_of(const Term& term, std::int64_t factor) {
    if (term.kind != Term::Kind::value) return {.bounded = false};
    if (ranges_.empty()) ranges_ = value_ranges(graph_, block_, false);
    const Interval& range = ranges_[term.id];
    constexpr std::int64_t limit = std::int64_t(1) << 31;
    if (!range.known() || range.low < -limit || range.high > limit || factor > limit || factor < -limit)
        return {.bounded = false};
    const std::int64_t a = range.low * factor, b = range.high * factor;
    return {std::min(a, b), std::max(a, b), true};
}

/// `first - second` is numbers and `factor * term`. A fact about the term in one of them may bound it: threads below s
/// write word tid, and word tid + s is read.
bool SharedAccesses::facts_keep_apart(const Known& first, const Known& second, std::uint32_t first_bytes,
                                      std::uint32_t second_bytes, const Term& term, std::int64_t factor,
                                      const std::vector<bool>& passed) {
    const auto extreme = [](const std::vector<std::int64_t>& numbers, const std::vector<bool>& set, bool most) {
        std::int64_t result = most ? INT64_MIN : INT64_MAX;
        for (std::size_t t = 0; t < numbers.size(); ++t)
            if (set[t]) result = most ? std::max(result, numbers[t]) : std::min(result, numbers[t]);
        return result;
    };
    if (!is_settled(term, passed)) return false;
    for (const Known* owner : {&first, &second}) {
        for (const LinearSum& fact : owner->set.facts) {
            const ThreadSum bound = sums_.of(fact);
            const auto found = bound.uniform.find(term);
            if (!bound.varying.empty() || bound.uniform.size() != 1 || found == bound.uniform.end() ||
                factor % found->second != 0)
                continue;
            // first - second = (numbers - multiple * the fact's numbers) + multiple * fact, and the fact is not
            // negative.
            const std::int64_t multiple = factor / found->second;
            std::vector<std::int64_t> a = first.address.numbers, b = second.address.numbers;
            for (std::size_t t = 0; t < a.size(); ++t)
                if (owner == &first)
                    a[t] -= multiple * bound.numbers[t];
                else
                    b[t] += multiple * bound.numbers[t];
            const bool above = multiple > 0;
            const std::int64_t nearest = extreme(a, first.set.threads, !above) - extreme(b, second.set.threads, above);
            if (above ? nearest >= std::int64_t(second_bytes) : -nearest >= std::int64_t(first_bytes)) return true;
        }
    }
    return false;
}

/// Only facts about what some address contains are looked at (facts_keep_apart).
bool SharedAccesses::tells_of_addresses(const LinearSum& fact) {
    if (!address_terms_) {
        address_terms_.emplace();
        for (const SharedAccess& access : all_)
            if (!access.is_anywhere && !access.is_global)
                for (const auto& [term, factor] : known(access).address.uniform) address_terms_->insert(term);
    }
    return std::any_of(fact.terms.begin(), fact.terms.end(),
                       [&](const auto& entry) { return address_terms_->contains(entry.first); });
}

SharedAccesses::Kind SharedAccesses::kind(const SharedAccess& access) {
    KindKey key;
    auto& [flags, bytes, variable, uniform, varying, numbers, threads, facts] = key;
    flags = unsigned(access.is_anywhere) | unsigned(access.is_global) << 1 | unsigned(access.is_atomic) << 2;
    Kind result;
    if (!access.is_anywhere) {
        const Known& place = known(access);
        bytes = access.bytes;
        variable = access.variable;
        uniform = place.address.uniform;
        varying = place.address.varying;
        numbers = place.address.numbers;
        threads = place.set.threads;
        for (const LinearSum& fact : place.set.facts)
            if (tells_of_addresses(fact)) facts.emplace_back(fact.constant, fact.terms);
        if (!numbers.empty()) result.base = numbers[0];
        for (std::int64_t& number : numbers) number = std::int64_t(std::uint64_t(number) - std::uint64_t(result.base));
    }
    const auto [entry, is_new] = kinds_.try_emplace(std::move(key), kinds_.size());
    result.id = entry->second;
    if (!is_new) return result;
    KindFacts& of_kind = kind_facts_.emplace_back();
    if (access.is_anywhere) return result;
    constexpr std::int64_t far = INT64_MAX / 8;
    const Known& place = known(access);
    for (const auto* terms : {&place.address.uniform, &place.address.varying})
        for (const auto& [term, factor] : *terms)
            of_kind.divisor = std::gcd(of_kind.divisor, factor < 0 ? 0 - std::uint64_t(factor) : std::uint64_t(factor));
    for (const auto& [term, factor] : place.address.uniform)
        if (term.kind != Term::Kind::special && graph_.values[term.id].block != no_block)
            of_kind.asked_blocks.push_back(graph_.values[term.id].block);
    std::sort(of_kind.asked_blocks.begin(), of_kind.asked_blocks.end());
    of_kind.asked_blocks.erase(std::unique(of_kind.asked_blocks.begin(), of_kind.asked_blocks.end()),
                               of_kind.asked_blocks.end());
    std::int64_t spread = 0;
    for (const std::int64_t number : std::get<5>(entry->first))
        spread = number < -far || number > far ? far : std::max(spread, number < 0 ? -number : number);
    of_kind.spread = std::min(far, spread + std::int64_t(access.bytes));
    return result;
}

SharedAccesses::Spacing SharedAccesses::spacing(std::size_t kind, std::size_t other) const {
    const KindFacts &a = kind_facts_[kind], &b = kind_facts_[other];
    constexpr std::int64_t far = INT64_MAX / 8;
    const std::uint64_t period = std::gcd(a.divisor, b.divisor);
    // What is not known differs by a multiple of the period, whichever of it is settled.
    if (a.spread == far || b.spread == far || period > std::uint64_t(far)) return {};
    return {std::int64_t(period), a.spread + b.spread};
}

bool SharedAccesses::have_one_address(const SharedAccess& a, const SharedAccess& b) {
    if (a.is_anywhere || b.is_anywhere) return false;
    const Operand &first = operand(a), &second = operand(b);
    return first.base == Operand::Base::reg && second.base == Operand::Base::reg && first.index == second.index &&
           first.value == second.value && !known(a).address.varying.empty();
}

Encounter SharedAccesses::encounter(const SharedAccess& first, const SharedAccess& second,
                                    const std::vector<bool>& passed) {
    if (first.is_anywhere || second.is_anywhere)
        return first.is_global || second.is_global ? Encounter::never : Encounter::maybe;
    if (first.is_global != second.is_global || are_apart(first, second)) return Encounter::never;
    const Known &a = known(first), &b = known(second);
    if (!come_in_different_steps(a.set.threads, b.set.threads, width_)) return Encounter::never;
    // What is not known of the difference between the two addresses.
    std::map<Term, std::int64_t> unknown = a.address.uniform;
    std::vector<std::pair<Term, std::int64_t>> free;
    const auto set_free = [&](const std::map<Term, std::int64_t>& terms, std::int64_t sign) {
        for (const auto& [term, factor] : terms) free.emplace_back(term, sign * factor);
    };
    set_free(a.address.varying, 1);
    set_free(b.address.varying, -1);
    for (const auto& [term, factor] : b.address.uniform) {
        if (is_settled(term, passed)) {
            if ((unknown[term] -= factor) == 0) unknown.erase(term);
        } else {
            free.emplace_back(term, -factor);
        }
    }
    if (free.empty() && unknown.size() == 1 &&
        facts_keep_apart(a, b, first.bytes, second.bytes, unknown.begin()->first, unknown.begin()->second, passed))
        return Encounter::never;
    // Atomics lose such races on GPUs, too.
    const bool is_plain = !first.is_atomic && !second.is_atomic && !first.is_global;
    const bool one_number =
        free.empty() && unknown.size() <= 1 && (unknown.empty() || is_settled(unknown.begin()->first, passed));
    const Encounter found = is_plain && one_number ? Encounter::likely : Encounter::maybe;
    if (first.is_global && !(free.empty() && unknown.empty())) return Encounter::never;
    set_free(unknown, 1);
    Span rest;
    std::uint64_t period = 0;
    for (const auto& [term, factor] : free) {
        const Span span = span_of(term, factor);
        rest.bounded = rest.bounded && span.bounded;
        rest.low += span.low;
        rest.high += span.high;
        period = std::gcd(period, factor < 0 ? 0 - std::uint64_t(factor) : std::uint64_t(factor));
    }
    std::vector<Piece> pieces;
    const auto add = [&](const Known& access, std::uint32_t bytes, bool is_first, std::int64_t low, std::int64_t high,
                         bool twice) {
        for (std::size_t t = 0; t < access.address.numbers.size(); ++t) {
            if (!access.set.threads[t]) continue;
            std::int64_t begin = access.address.numbers[t];
            if (twice) begin = (begin % std::int64_t(period) + std::int64_t(period)) % std::int64_t(period);
            pieces.push_back({begin + low, begin + high + bytes, t / width_, is_first});
            if (twice)
                pieces.push_back(
                    {begin + std::int64_t(period), begin + std::int64_t(period) + bytes, t / width_, is_first});
        }
    };
    if (rest.bounded) {
        add(a, first.bytes, true, rest.low, rest.high, false);
        add(b, second.bytes, false, 0, 0, false);
        if (!pieces_meet(pieces)) return Encounter::never;
        if (free.empty()) return found;
    }
    if (period <= std::max(first.bytes, second.bytes)) return found;
    pieces.clear();
    add(a, first.bytes, true, 0, 0, true);
    add(b, second.bytes, false, 0, 0, true);
    return pieces_meet(pieces) ? found : Encounter::never;
}

} // namespace ptarmigan::translator
