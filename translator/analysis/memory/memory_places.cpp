// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/memory/memory_places.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/memory/alignment.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace ptarmigan::translator {

using ptx::Operand;
using ptx::StateSpace;

namespace {

/// Pointers behind pointers that are followed, and phis on the way.
constexpr unsigned most_loads = 3, most_phis = 8;

std::uint64_t pair(std::uint64_t high, std::uint64_t low) {
    return high << 32 | (low & 0xffffffffu);
}

bool may_be_one_space(StateSpace a, StateSpace b) {
    return a == b || a == StateSpace::generic || b == StateSpace::generic;
}

/// Whether [0, a_bytes) and [distance, distance + b_bytes) meet, taken modulo `period` unless that is 0.
bool ranges_meet(std::int64_t distance, std::uint32_t a_bytes, std::uint32_t b_bytes, std::uint64_t period) {
    if (period == 0) return distance < std::int64_t(a_bytes) && -distance < std::int64_t(b_bytes);
    const auto size = std::int64_t(period);
    const std::int64_t rest = (distance % size + size) % size;
    return rest < std::int64_t(a_bytes) || size - rest < std::int64_t(b_bytes);
}

} // namespace

MemoryPlaces::Base MemoryPlaces::base_of(ValueId value, unsigned loads_left, unsigned& phis_left) const {
    const LinearSums::Definition& definition = sums_.definition(value);
    if (definition.phi) {
        if (phis_left == 0) return {};
        --phis_left;
        Base result;
        for (ValueId incoming : definition.phi->incoming) {
            const std::optional<LinearSum> sum = sums_.of(incoming, no_loop);
            // A pointer that goes on from where it was.
            if (sum && sum->terms.contains({LinearSum::Term::Kind::value, value, 0})) continue;
            Base base;
            if (LinearSum rest; sum) base = take_base(rest = *sum, loads_left, phis_left);
            if (base.root == Root::unknown || (result.root != Root::unknown && base != result)) return {};
            result = base;
        }
        return result;
    }
    if (!definition.instruction) return {};
    const ptx::Instruction& inst = definition.instruction->inst;
    if (inst.form == ptx::FormId::mov && inst.operands[1].kind == Operand::Kind::variable)
        return {Root::variable, pair(std::uint64_t(inst.operands[1].scope), inst.operands[1].index)};
    if (!has_effect(inst, ptx::Effects::load) || inst.vector_size != 1 || loads_left == 0) return {};
    const Operand& address = inst[ptx::Role::a];
    if (loads_kernel_parameter(graph_, inst)) return {Root::parameter, pair(address.index, address.value)};
    const MemoryPlace place = place_of(inst, loads_left - 1);
    if (place.root == Root::unknown || !place.distance || !place.distance->terms.empty()) return {};
    const auto [entry, is_new] =
        pointers_.try_emplace({place.root, place.id, place.distance->constant}, pointers_.size());
    return {Root::loaded, entry->second};
}

/// The one term that is a pointer; it is taken out, unless it goes on from round to round.
MemoryPlaces::Base MemoryPlaces::take_base(LinearSum& sum, unsigned loads_left, unsigned& phis_left) const {
    Base result;
    std::optional<LinearSum::Term> pointer;
    for (const auto& [term, factor] : sum.terms) {
        if (term.kind != LinearSum::Term::Kind::value || factor != 1) continue;
        const Base base = base_of(term.id, loads_left, phis_left);
        if (base.root == Root::unknown) continue;
        if (pointer) return {};
        result = base;
        pointer = term;
    }
    if (pointer && !sums_.definition(pointer->id).phi) sum.terms.erase(*pointer);
    return result;
}

/// A power of two that divides the value.
std::uint64_t MemoryPlaces::granule(ValueId value, unsigned steps_left) const {
    const GraphInstruction* definition = sums_.definition(value).instruction;
    if (!definition || steps_left == 0 || !definition->previous.empty()) return 1;
    const ptx::Instruction& inst = definition->inst;
    const auto of_operand = [&](unsigned index) -> std::uint64_t {
        const Operand& operand = inst.operands[index];
        if (operand.kind == Operand::Kind::imm) return operand.value & (0 - operand.value);
        return operand.kind == Operand::Kind::reg ? granule(operand.index, steps_left - 1) : 1;
    };
    const std::uint64_t limit = std::uint64_t{1} << 32;
    switch (inst.form) {
    case ptx::FormId::mov:
    case ptx::FormId::cvt_same_32:
    case ptx::FormId::cvt_same_64:
    case ptx::FormId::cvt_widen_64: return of_operand(1);
    case ptx::FormId::and_bits: return std::max(of_operand(1), of_operand(2));
    case ptx::FormId::mul_lo:
    case ptx::FormId::mul_wide: return std::min(of_operand(1) * of_operand(2), limit);
    case ptx::FormId::shl:
        if (inst.operands[2].kind != Operand::Kind::imm || inst.operands[2].value > 31) return 1;
        return std::min(of_operand(1) << inst.operands[2].value, limit);
    default: return 1;
    }
}

/// Other threads and iterations are at other multiples of this: the size of an array's elements. 0: one place only. Of
/// the terms with factor 1 so many are pointers.
std::uint64_t MemoryPlaces::period_of(const LinearSum& sum, unsigned pointers) const {
    constexpr unsigned most_steps = 4;
    std::uint64_t period = 0;
    for (const auto& [term, factor] : sum.terms) {
        if (factor == 1 && pointers > 0) {
            --pointers;
            continue;
        }
        const std::uint64_t size = factor < 0 ? 0 - std::uint64_t(factor) : std::uint64_t(factor);
        const bool is_value = term.kind == LinearSum::Term::Kind::value;
        period = std::gcd(period, size * (is_value ? granule(term.id, most_steps) : 1));
    }
    return period;
}

/// Where a value leaves a loop there is a phi of it alone.
void MemoryPlaces::see_through_copies(LinearSum& sum) const {
    for (unsigned steps_left = most_phis; steps_left > 0; --steps_left) {
        const auto copy = std::find_if(sum.terms.begin(), sum.terms.end(), [&](const auto& entry) {
            if (entry.first.kind != LinearSum::Term::Kind::value) return false;
            const Phi* phi = sums_.definition(entry.first.id).phi;
            return phi && phi->incoming.size() == 1;
        });
        if (copy == sum.terms.end()) return;
        const auto [term, factor] = *copy;
        const std::optional<LinearSum> source = sums_.of(sums_.definition(term.id).phi->incoming[0], no_loop);
        if (!source) return;
        sum.terms.erase(copy);
        sum = sum.plus(*source, factor);
    }
}

const MemoryPlace& MemoryPlaces::of(const ptx::Instruction& inst) const {
    const auto [entry, is_new] = known_.try_emplace(&inst);
    if (is_new) entry->second = place_of(inst, most_loads);
    return entry->second;
}

MemoryPlace MemoryPlaces::place_of(const ptx::Instruction& inst, unsigned loads_left) const {
    MemoryPlace place;
    place.space = inst.space;
    place.bytes = access_bytes(inst);
    const Operand& address = accessed_memory(inst);
    if (address.kind != Operand::Kind::address || place.bytes == 0) return place; // 0: of a size that is not known here
    if (address.base == Operand::Base::variable) {
        place.root = Root::variable;
        place.id = pair(std::uint64_t(address.scope), address.index);
        place.distance = LinearSum{std::int64_t(address.value), {}};
    } else if (address.base == Operand::Base::reg) {
        place.distance = sums_.of(address, no_loop);
        if (!place.distance) return place;
        see_through_copies(*place.distance);
        unsigned phis_left = most_phis;
        const Base base = take_base(*place.distance, loads_left, phis_left);
        place.root = base.root;
        place.id = base.id;
    }
    return place;
}

Overlap MemoryPlaces::overlap(const MemoryPlace& a, const MemoryPlace& b) const {
    if (!may_be_one_space(a.space, b.space)) return Overlap::never;
    const auto is_named = [](const MemoryPlace& place) {
        return place.root == Root::parameter || place.root == Root::variable;
    };
    const bool same_root = a.root == b.root && a.id == b.id, is_known = a.root != Root::unknown;
    if (!same_root) return is_named(a) && is_named(b) ? Overlap::never : Overlap::maybe;
    if (!a.distance || !b.distance) return is_known ? Overlap::same_object : Overlap::maybe;
    const LinearSum difference = b.distance->plus(*a.distance, -1);
    if (!is_known && !difference.terms.empty()) return Overlap::maybe;
    const unsigned pointers = is_known ? 0 : 1;
    const std::uint64_t period = std::gcd(std::gcd(period_of(*a.distance, pointers), period_of(*b.distance, pointers)),
                                          period_of(difference, 0));
    if (!ranges_meet(difference.constant, a.bytes, b.bytes, period)) return Overlap::never;
    const bool is_same = difference.terms.empty() && ranges_meet(difference.constant, a.bytes, b.bytes, 0);
    return is_same ? Overlap::same_place : Overlap::same_object;
}

} // namespace ptarmigan::translator
