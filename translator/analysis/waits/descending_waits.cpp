// SPDX-License-Identifier: Apache-2.0
// The proof is an order of places. If a thread waits at x, another one will write there that does not come to do so
// because it, or a lane of its step, waits at a y lower than all that it will write where somebody waits: y < x. What
// it writes before it waits holds up nobody, and barriers of the CTA do not lie between.
#include "translator/analysis/waits/descending_waits.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/waits/spin_loops.h"

#include <algorithm>
#include <cstdlib>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::StateSpace;
using Term = LinearSum::Term;

constexpr Effects writes = Effects::store | Effects::atomic | Effects::async | Effects::call;
/// Phis that are replaced by what they begin with.
constexpr unsigned most_phis = 8;

bool is_own(const ptx::Instruction& inst) {
    return inst.space == StateSpace::local || inst.space == StateSpace::param || inst.space == StateSpace::constant;
}

} // namespace

DescendingWaits::DescendingWaits(const FunctionGraph& graph, const BlockShape& block, const std::vector<bool>& waits)
    : graph_(graph), block_(block), places_(graph) {
    find_waits(waits);
    descend_ = !waits_.empty() && all_descend();
}

void DescendingWaits::find_waits(const std::vector<bool>& waits) {
    for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
        std::uint32_t loop = graph_.forest.loop_of[block];
        while (loop != no_loop && !waits[loop]) loop = graph_.forest.loops[loop].parent;
        if (loop == no_loop) continue;
        for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (has_effect(inst, Effects::load | Effects::atomic | Effects::async | Effects::call) && !is_own(inst))
                waits_.push_back({&instruction, block, loop});
        }
    }
}

/// Of one object of global memory, whose words are alike, everybody waits for lower places than it writes to later.
bool DescendingWaits::all_descend() const {
    const MemoryPlace& first = places_.of(waits_[0].read->inst);
    for (const Wait& wait : waits_) {
        const ptx::Instruction& inst = wait.read->inst;
        const MemoryPlace& place = places_.of(inst);
        if (has_effect(inst, Effects::async | Effects::call) || place.root != MemoryPlace::Root::parameter ||
            place.id != first.id || place.bytes != first.bytes || !place.distance ||
            (inst.space != StateSpace::global && inst.space != StateSpace::generic))
            return false;
    }
    // What no block writes is waited for from outside, and so may other things be there.
    bool from_inside = false;
    for (BlockId block = 0; block < graph_.blocks.size() && !from_inside; ++block)
        from_inside = writes_where_awaited(block);
    return from_inside &&
           std::all_of(waits_.begin(), waits_.end(), [&](const Wait& wait) { return descends_from(wait); });
}

bool DescendingWaits::descends_from(const Wait& wait) const {
    const std::vector<BlockId>& blocks = graph_.forest.loops[wait.loop].blocks;
    const std::vector<bool> later = reachable(blocks, false), before_barrier = reachable(blocks, true);
    std::vector<BlockId> barriers;
    for (BlockId block = 0; block < graph_.blocks.size(); ++block)
        if (before_barrier[block] && graph_.blocks[block].ends_with_barrier) barriers.push_back(block);
    const std::vector<bool> held_up = reachable(barriers, false); // by whatever thread of the CTA
    for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
        if (!later[block] || !writes_where_awaited(block)) continue;
        if (held_up[block] || comes_back(block, wait.loop)) return false;
        for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
            if (is_awaited(instruction.inst) && !is_above(instruction.inst, wait)) return false;
    }
    return true;
}

bool DescendingWaits::writes_where_awaited(BlockId block) const {
    const std::vector<GraphInstruction>& instructions = graph_.blocks[block].instructions;
    return std::any_of(instructions.begin(), instructions.end(),
                       [&](const GraphInstruction& instruction) { return is_awaited(instruction.inst); });
}

/// Into the loop, in another round of one around it.
bool DescendingWaits::comes_back(BlockId block, std::uint32_t loop) const {
    return reachable({block}, false)[graph_.forest.loops[loop].header];
}

bool DescendingWaits::may_come_late(const ptx::Instruction& inst, BlockId block, std::uint32_t loop) const {
    if (!descend_ || has_effect(inst, Effects::async | Effects::call)) return false;
    if (inst.space == StateSpace::shared) return true;
    if (is_awaited(inst)) return is_above(inst, block, loop);
    // The host may wait for a strong write.
    return has_effect(inst, Effects::store) && !has_effect(inst, Effects::atomic) && !is_strong(inst);
}

/// Somebody may wait for what it writes.
bool DescendingWaits::is_awaited(const ptx::Instruction& write) const {
    if (!has_effect(write, writes) || is_own(write) ||
        (has_effect(write, Effects::atomic) && leaves_memory(graph_, write)))
        return false;
    if (has_effect(write, Effects::async | Effects::call)) return true;
    return std::any_of(waits_.begin(), waits_.end(), [&](const Wait& wait) {
        return places_.overlap(places_.of(wait.read->inst), places_.of(write)) != Overlap::never;
    });
}

bool DescendingWaits::is_above(const ptx::Instruction& write, BlockId block, std::uint32_t loop) const {
    return !comes_back(block, loop) && std::all_of(waits_.begin(), waits_.end(), [&](const Wait& wait) {
        return !graph_.forest.inside(graph_.forest.loop_of[wait.block], loop) || is_above(write, wait);
    });
}

/// Whatever lanes of a step do the two: the read ends where the write begins, or before.
bool DescendingWaits::is_above(const ptx::Instruction& write, const Wait& wait) const {
    const MemoryPlace &written = places_.of(write), &read = places_.of(wait.read->inst);
    if (written.root != read.root || written.id != read.id || !written.distance || written.bytes < read.bytes)
        return false;
    const std::optional<LinearSum> last = highest(*read.distance, graph_.forest.loop_of[wait.block]);
    if (!last) return false;
    const LinearSum distance = last->plus(*written.distance, -1);
    if (!distance.terms.empty()) return false;
    std::int64_t apart = 0; // how far lanes are at most
    for (const auto& [term, factor] : written.distance->terms) {
        const std::optional<std::int64_t> width = width_of(term);
        if (!width) return false;
        apart += std::abs(factor) * *width;
    }
    return distance.constant + apart + std::int64_t(read.bytes) <= 0;
}

/// An upper bound of what a place is in the rounds of `loop` and those around it, in which phis only fall.
std::optional<LinearSum> DescendingWaits::highest(const LinearSum& place, std::uint32_t loop) const {
    LinearSum sum = place;
    for (unsigned phis_left = most_phis; phis_left > 0; --phis_left) {
        bool changed = false;
        for (const auto& [term, factor] : sum.terms) {
            if (term.kind != Term::Kind::value) continue;
            const std::optional<LinearSum> first = first_of(term.id, loop, factor);
            if (!first) continue;
            const auto [replaced, scale] = std::pair(term, factor);
            sum.terms.erase(replaced);
            sum = sum.plus(*first, scale);
            changed = true;
            break;
        }
        if (!changed) return sum;
    }
    return std::nullopt;
}

/// What a phi begins with, if what it is multiplied with `factor` then falls; or what it copies.
std::optional<LinearSum> DescendingWaits::first_of(ValueId value, std::uint32_t loop, std::int64_t factor) const {
    const Phi* phi = places_.sums().definition(value).phi;
    if (!phi) return std::nullopt;
    if (phi->incoming.size() == 1) return places_.sums().of(phi->incoming[0], no_loop);
    const BlockId block = graph_.values[value].block;
    while (loop != no_loop && graph_.forest.loops[loop].header != block) loop = graph_.forest.loops[loop].parent;
    if (loop == no_loop || phi->incoming.size() != 2) return std::nullopt;
    const bool latch_first = graph_.blocks[block].predecessors[0] == graph_.forest.loops[loop].latch;
    const std::optional<LinearSum> next = places_.sums().of(phi->incoming[latch_first ? 0 : 1], no_loop);
    if (!next) return std::nullopt;
    const LinearSum gain = next->plus(LinearSum{0, {{Term{Term::Kind::value, value, 0}, 1}}}, -1);
    if (!gain.terms.empty() || (gain.constant > 0) == (factor > 0)) return std::nullopt;
    return places_.sums().of(phi->incoming[latch_first ? 1 : 0], no_loop);
}

/// How far a term may differ between lanes of a step.
std::optional<std::int64_t> DescendingWaits::width_of(const Term& term) const {
    if (term.kind == Term::Kind::special) {
        const auto special = ptx::SpecialRegister(term.id);
        if (special == ptx::SpecialRegister::laneid) return 31;
        if (special == ptx::SpecialRegister::tid && term.component == 0) {
            const std::uint32_t row = block_.ntid[0];
            return row % 32 == 0 || row * block_.ntid[1] * block_.ntid[2] == row ? std::min(row, 32u) - 1 : row - 1;
        }
        if (special == ptx::SpecialRegister::ctaid || special == ptx::SpecialRegister::nctaid ||
            special == ptx::SpecialRegister::ntid)
            return 0;
        return std::nullopt;
    }
    if (term.kind != Term::Kind::value) return std::nullopt;
    const Shape& shape = graph_.values[term.id].shape;
    if (shape.is_uniform()) return 0;
    if (!shape.is_affine() || shape.steps || shape.guard != no_value) return std::nullopt;
    const auto [least, most] = std::minmax_element(shape.offsets->begin(), shape.offsets->end());
    return *most - *least;
}

/// The blocks at whose end there may be a way on, and what lies behind them.
std::vector<bool> DescendingWaits::reachable(std::vector<BlockId> work, bool stop_at_barriers) const {
    std::vector<bool> seen(graph_.blocks.size(), false);
    std::vector<bool> result(graph_.blocks.size(), false);
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        if (seen[block]) continue;
        seen[block] = true;
        if (stop_at_barriers && graph_.blocks[block].ends_with_barrier) continue;
        for (BlockId next : graph_.blocks[block].successors) {
            result[next] = true;
            work.push_back(next);
        }
    }
    return result;
}

} // namespace ptarmigan::translator
