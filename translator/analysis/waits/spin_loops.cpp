// SPDX-License-Identifier: Apache-2.0
// Loops that wait. Taking one that waits for one that does not is a hang or a wrong answer; the other way costs speed,
// because such kernels need lanes and warps that can be suspended. What is taken for no wait:
// * plain loads in loops that count, of shared memory in loops with a CTA barrier, or of another place each time
//   (walks, searches), unless fences of the whole GPU stand beside them;
// * retries of compare-and-swap with the value just seen whose success ends the loop: someone has succeeded;
// * additions that nothing in the kernel undoes: each one makes progress (work queues);
// * strong reads and atomics of another place each time, where nothing in the kernel undoes what they wait for (hash
//   tables, union-find, marks of visited nodes).
// Each of these has exceptions that are known and missed: README.md, Decisions, 2026-11-24.
#include "translator/analysis/waits/spin_loops.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/waits/converged_waits.h"
#include "translator/analysis/waits/cycle_dependences.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;
using ptx::StateSpace;

constexpr Effects strong = Effects::volatile_read | Effects::atomic;
constexpr Effects writes = Effects::store | Effects::atomic | Effects::async | Effects::call;
constexpr std::initializer_list<Modifier> operations = {Modifier::cas, Modifier::exch, Modifier::add, Modifier::inc,
                                                        Modifier::dec, Modifier::min,  Modifier::max, Modifier::and_,
                                                        Modifier::or_, Modifier::xor_};

/// A read that does not take what a cache has for good: strong, or a load that asks for memory's or the L2's value, as
/// programs of the time before .relaxed poll.
bool is_strong_read(const ptx::Instruction& inst) {
    return has_effect(inst, strong | Effects::waits) || inst.has(Modifier::cv) || inst.has(Modifier::cg);
}

/// Another thread may write what it reads.
bool may_change(const ptx::Instruction& inst) {
    return inst.space != StateSpace::local && inst.space != StateSpace::param && inst.space != StateSpace::constant &&
           inst.form != ptx::FormId::ld_global_nc;
}

class SpinSearch {
public:
    SpinSearch(const FunctionGraph& graph, WaitingLoops which, bool mbarriers)
        : graph_(graph), which_(which), mbarriers_(mbarriers),
          calls_functions_(!graph.real_calls.empty() || graph.has_indirect_call), places_(graph),
          cycles_(cycles_of(graph)) {}

    bool run() {
        return std::any_of(cycles_.begin(), cycles_.end(), [&](const Cycle& cycle) { return waits(cycle); });
    }
    std::vector<bool> each() {
        std::vector<bool> result;
        for (std::size_t i = 0; i < graph_.forest.loops.size(); ++i) result.push_back(waits(cycles_[i]));
        return result;
    }

private:
    bool waits(const Cycle& cycle);
    bool ends_by_reads(const CycleDependences& dependences) const;
    bool may_wait_on(const ptx::Instruction& inst, const CycleDependences& dependences, const Cycle& cycle,
                     bool has_fence) const;
    bool goes_on_like(const ptx::Instruction& inst, const ptx::Instruction& other) const;
    bool is_undone(const ptx::Instruction& inst) const;
    bool is_released(const ptx::Instruction& inst, const Cycle& cycle) const;
    bool may_release(const ptx::Instruction& write, const ptx::Instruction& wait, const MemoryPlace& place) const;
    std::vector<bool> reachable(std::vector<BlockId> work, bool backward) const;
    bool is_barrier_of_all(const Block& block) const;
    std::optional<std::uint64_t> constant(const Operand& operand) const { return constant_of(graph_, operand); }

    const FunctionGraph& graph_;
    const WaitingLoops which_;
    const bool mbarriers_;       ///< waits for mbarrier objects count
    const bool calls_functions_; ///< of the program, for real: they may write anywhere
    const MemoryPlaces places_;
    const std::vector<Cycle> cycles_;
};

/// Both add numbers of one sign.
bool SpinSearch::goes_on_like(const ptx::Instruction& inst, const ptx::Instruction& other) const {
    if (!has_effect(other, Effects::atomic) || other.one_of(operations) != inst.one_of(operations)) return false;
    const auto a = constant(inst[Role::b]), b = constant(other[Role::b]);
    const unsigned bits = ptx::bit_size(inst.type());
    return a && b && bits > 0 && bits <= 64 && ((*a ^ *b) >> (bits - 1) & 1) == 0;
}

/// Somebody takes back what an addition has done, in the loop or behind it: another write goes to its place, or an
/// atomic to its object.
bool SpinSearch::is_undone(const ptx::Instruction& inst) const {
    const MemoryPlace& place = places_.of(inst);
    for (const Block& block : graph_.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& other = instruction.inst;
            if (&other == &inst || !has_effect(other, writes)) continue;
            if (calls_functions_ && has_effect(other, Effects::call)) return true;
            const Overlap overlap = places_.overlap(place, places_.of(other));
            const bool meets = overlap == Overlap::same_place ||
                               (overlap == Overlap::same_object && has_effect(other, Effects::atomic));
            if (meets && !goes_on_like(inst, other)) return true;
        }
    return false;
}

bool SpinSearch::is_barrier_of_all(const Block& block) const {
    if (!block.ends_with_barrier) return false;
    const ptx::Instruction& barrier = block.instructions.back().inst;
    return constant(barrier[Role::a]) == std::uint64_t{0} && barrier[Role::b].kind == Operand::Kind::none;
}

/// Without passing a barrier of the whole CTA.
std::vector<bool> SpinSearch::reachable(std::vector<BlockId> work, bool backward) const {
    std::vector<bool> seen(graph_.blocks.size(), false);
    for (BlockId block : work) seen[block] = true;
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        if (!backward && is_barrier_of_all(graph_.blocks[block])) continue;
        for (BlockId next : backward ? graph_.blocks[block].predecessors : graph_.blocks[block].successors) {
            if (seen[next] || (backward && is_barrier_of_all(graph_.blocks[next]))) continue;
            seen[next] = true;
            work.push_back(next);
        }
    }
    return seen;
}

/// Whether `write` may make the value that `wait`, at `place`, waits for.
bool SpinSearch::may_release(const ptx::Instruction& write, const ptx::Instruction& wait,
                             const MemoryPlace& place) const {
    if (&write == &wait || !has_effect(write, writes)) return false;
    if (has_effect(write, Effects::call)) return calls_functions_;
    if (has_effect(write, Effects::async)) return true;
    if (places_.overlap(place, places_.of(write)) == Overlap::never) return false;
    if (!has_effect(wait, Effects::atomic)) return true;
    const Modifier operation = wait.one_of(operations), other = write.one_of(operations);
    if (operation == Modifier::cas) { // for what it expects
        const auto expected = constant(wait[Role::b]);
        // One that expects the same acts only where that is there already.
        if (other == Modifier::cas && expected && expected == constant(write[Role::b])) return false;
        const auto made = constant(other == Modifier::cas ? write[Role::c] : write[Role::b]);
        const bool sets = !has_effect(write, Effects::atomic) || other == Modifier::cas || other == Modifier::exch;
        return !(sets && expected && made && *expected != *made);
    }
    const auto own = constant(wait[Role::b]);
    return !(has_effect(write, Effects::atomic) && operation == other && own && own == constant(write[Role::b]));
}

/// The kernel has a write that may end a wait for `inst` and that other threads may come to while one waits: for shared
/// memory not on the other side of a barrier. Of other memory another CTA may be anywhere, before the loop too.
bool SpinSearch::is_released(const ptx::Instruction& inst, const Cycle& cycle) const {
    const MemoryPlace& place = places_.of(inst);
    std::vector<bool> meanwhile(graph_.blocks.size(), true);
    if (place.space == StateSpace::shared) {
        const std::vector<bool> before = reachable(cycle.blocks, true);
        std::vector<BlockId> from;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            if (before[block]) from.push_back(block);
        meanwhile = reachable(std::move(from), false);
    }
    for (BlockId block = 0; block < graph_.blocks.size(); ++block)
        for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
            if (meanwhile[block] && may_release(instruction.inst, inst, place)) return true;
    return false;
}

/// True if executing it again and again can mean waiting for someone else.
bool SpinSearch::may_wait_on(const ptx::Instruction& inst, const CycleDependences& dependences, const Cycle& cycle,
                             bool has_fence) const {
    if (!mbarriers_ && is_mbarrier_wait(inst)) return false;
    if (has_effect(inst, Effects::waits | Effects::call | Effects::async)) return true;
    if (!may_change(inst)) return false;
    CycleDependences::Sources address;
    const Operand& place = inst[Role::a];
    if (place.kind == Operand::Kind::address && place.base == Operand::Base::reg)
        address = dependences.of_value(place.index);
    if (!is_strong_read(inst) && !(has_fence && inst.space != StateSpace::shared))
        return !address.carried && !address.memory;
    const bool same_place = !address.carried && !address.atomic;
    if (!has_effect(inst, Effects::atomic) || leaves_memory(graph_, inst))
        return same_place || is_released(inst, cycle);
    switch (inst.one_of(operations)) {
    case Modifier::cas: return !dependences.is_retry(inst) && (same_place || is_released(inst, cycle));
    case Modifier::inc:
    case Modifier::dec:
        if (constant(inst[Role::b]) != std::uint64_t{std::numeric_limits<std::uint32_t>::max()})
            return same_place || is_released(inst, cycle);
        [[fallthrough]];
    case Modifier::add: return is_undone(inst);
    default: break;
    }
    if (same_place) return true;
    const Operand& operand = inst[Role::b];
    if (operand.kind == Operand::Kind::reg) {
        const CycleDependences::Sources from = dependences.of_value(operand.index);
        if (from.carried || from.memory) return false; // it writes what it goes on with
    }
    return is_released(inst, cycle);
}

/// Whether it goes round again may depend, by whatever way, on memory that another thread may write.
bool SpinSearch::ends_by_reads(const CycleDependences& dependences) const {
    const std::vector<const GraphInstruction*> reads = dependences.of_exits().reads;
    return std::any_of(reads.begin(), reads.end(), [&](const GraphInstruction* read) {
        return may_change(read->inst) && (mbarriers_ || !is_mbarrier_wait(read->inst));
    });
}

bool SpinSearch::waits(const Cycle& cycle) {
    bool has_barrier = false, has_reads = false, has_strong = false, has_fence = false, sleeps = false;
    for (BlockId id : cycle.blocks) {
        const Block& block = graph_.blocks[id];
        has_barrier = has_barrier || block.ends_with_barrier;
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            has_strong = has_strong || is_strong_read(inst);
            has_fence = has_fence || is_fence_of_all(inst);
            has_reads = has_reads || has_effect(inst, Effects::load | Effects::call | Effects::async);
            sleeps = sleeps || inst.form == ptx::FormId::nanosleep;
        }
    }
    if (!has_reads && !has_strong) return false;
    const CycleDependences dependences(graph_, places_, cycle);
    if (!dependences.has_exit()) return false; // runs for ever whatever others do
    if (which_ == WaitingLoops::all && ends_by_reads(dependences)) return true;
    const auto may_wait = [&](const GraphInstruction* read) {
        return may_wait_on(read->inst, dependences, cycle, has_fence);
    };
    // Strong reads make a loop wait by whatever way its exits depend on them, and though it counts its rounds, to give
    // up after so many. Beside a fence plain loads count as strong: they are meant for what others have written.
    const auto is_strong = [&](const GraphInstruction* read) {
        const bool is_fenced =
            has_fence && has_effect(read->inst, Effects::load) && read->inst.space != StateSpace::shared;
        return is_fenced || is_strong_read(read->inst);
    };
    std::vector<const GraphInstruction*> all;
    if (has_strong || has_fence || sleeps) all = dependences.of_exits().reads;
    if (std::any_of(all.begin(), all.end(), [&](const GraphInstruction* read) {
            const bool sleeps_for = sleeps && !is_mbarrier_wait(read->inst) && may_change(read->inst);
            return sleeps_for || (is_strong(read) && may_wait(read));
        }))
        return true;
    // Nobody counts rounds with plain loads, which loops over data are full of. And between barriers those of shared
    // memory can't wait: the writer is the CTA itself.
    const CycleDependences::Sources near = dependences.of_conditions();
    if (dependences.has_counter(near)) return false;
    return std::any_of(near.reads.begin(), near.reads.end(), [&](const GraphInstruction* read) {
        const bool is_shared = read->inst.space == StateSpace::shared;
        return !is_strong(read) && !(has_barrier && is_shared) && may_wait(read);
    });
}

} // namespace

bool leaves_memory(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const auto operand = constant_of(graph, inst[Role::b]);
    const unsigned bits = ptx::bit_size(inst.type());
    if (!operand || bits == 0 || bits > 64) return false;
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits), value = *operand & mask, top = (mask >> 1) + 1;
    const bool is_signed = inst.type() == ptx::ScalarType::s32 || inst.type() == ptx::ScalarType::s64;
    switch (inst.one_of(operations)) {
    case Modifier::add:
    case Modifier::or_:
    case Modifier::xor_: return value == 0;
    case Modifier::and_: return value == mask;
    case Modifier::max: return value == (is_signed ? top : 0);
    case Modifier::min: return value == (is_signed ? top - 1 : mask);
    default: return false;
    }
}

bool is_fence_of_all(const ptx::Instruction& inst) {
    return (opcode(inst) == "membar" || opcode(inst) == "fence") &&
           (inst.has(Modifier::gl) || inst.has(Modifier::gpu) || inst.has(Modifier::sys));
}

bool may_spin(const FunctionGraph& graph, WaitingLoops which) {
    return SpinSearch(graph, which, true).run();
}

bool may_spin_on_memory(const FunctionGraph& graph, WaitingLoops which) {
    return SpinSearch(graph, which, false).run();
}

std::vector<bool> loops_that_wait(const FunctionGraph& graph, WaitingLoops which) {
    return SpinSearch(graph, which, true).each();
}

} // namespace ptarmigan::translator
