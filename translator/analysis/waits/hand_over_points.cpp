// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/hand_over_points.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/memory_places.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/analysis/waits/clamped_words.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Operand;
using ptx::Role;

/// Threads whose addresses one compilation may compare; pairs beyond are taken to meet.
constexpr std::size_t comparison_budget = std::size_t{1} << 25;
constexpr std::uint32_t full_mask = 0xffffffff;

/// Accesses by index, that lanes may have made since they were last together.
class Pending {
public:
    explicit Pending(std::size_t count = 0) : words_((count + 63) / 64, 0) {}
    void add(std::size_t index) { words_[index / 64] |= std::uint64_t{1} << (index % 64); }
    void clear() { std::ranges::fill(words_, 0); }
    /// True if there were some that this has not had.
    bool merge(const Pending& other) {
        bool grows = false;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            grows = grows || (other.words_[i] & ~words_[i]) != 0;
            words_[i] |= other.words_[i];
        }
        return grows;
    }
    template <class Predicate> bool any_of(Predicate predicate) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1)
                if (predicate(i * 64 + std::size_t(__builtin_ctzll(rest)))) return true;
        return false;
    }

private:
    std::vector<std::uint64_t> words_;
};

class HandOverPoints {
public:
    HandOverPoints(FunctionGraph& graph, const BlockShape& block, const CalledFunctions& called)
        : graph_(graph), threads_(block.ntid[0] * block.ntid[1] * block.ntid[2]), accesses_(graph, block, 1, called),
          places_(graph), passed_(graph.blocks.size(), !graph.forest.reducible) {
        for (const LoopInfo& loop : graph.forest.loops)
            for (BlockId id : loop.blocks) passed_[id] = true;
        list_events();
    }

    bool run() {
        mark_queries();
        mark_clamped_words();
        while (mark_accesses()) {
        }
        mark_joins();
        return number_points() != 0;
    }

private:
    /// All live lanes of the warp have come to it, or to one like it, when a lane goes on.
    bool meets_whole_warp(const GraphInstruction& instruction) const {
        const ptx::Instruction& inst = instruction.inst;
        if (is_cta_barrier(inst)) return true;
        if (!has_effect(inst, Effects::convergent) || inst.guard != ptx::no_id || is_query(inst)) return false;
        if (instruction.meets_whole_warp) return true;
        const Operand& mask = inst[Role::membermask];
        if (mask.kind == Operand::Kind::none) return true;
        if (mask.kind == Operand::Kind::imm) return std::uint32_t(mask.value) == full_mask;
        return mask.kind == Operand::Kind::reg && graph_.values[mask.index].is_constant &&
               std::uint32_t(graph_.values[mask.index].constant) == full_mask;
    }
    struct Event {
        std::size_t index;  ///< in the block
        std::size_t access; ///< no_access: none
        bool meets;         ///< behind it the warp is together
    };
    static constexpr std::size_t no_access = SIZE_MAX;

    const ptx::Instruction& instruction_of(const SharedAccess& access) const {
        return graph_.blocks[access.block].instructions[access.index].inst;
    }
    bool is_own(const SharedAccess& first, const SharedAccess& second, bool in_one_pass);
    bool may_meet(std::size_t first, std::size_t second, bool in_one_pass);
    bool compare(const SharedAccess& first, const SharedAccess& second);
    bool compare_global(const ptx::Instruction& first, const ptx::Instruction& second) const;
    void list_events();
    void mark_queries();
    void mark_clamped_words();
    bool mark_accesses();
    void pass(BlockId id, Pending& pending, bool marks);
    bool has_points(BlockId id) const;
    bool parts_around_points(BlockId id, BlockId join) const;
    void mark_joins();
    std::uint32_t number_points();

    FunctionGraph& graph_;
    const std::size_t threads_;
    SharedAccesses accesses_;
    const MemoryPlaces places_;
    std::vector<bool> passed_;               ///< by block: values may have become others between two accesses
    std::vector<std::vector<Event>> events_; ///< by block, in order
    std::map<std::pair<std::size_t, std::size_t>, bool> compared_;
    std::size_t compared_threads_ = 0;
    bool marked_ = false;           ///< in this round
    std::size_t rounds_left_ = 256; ///< in which points are added block by block
};

/// A lane reads and writes a place that only it knows: bins, pairs that are swapped. If another one came there too, a
/// GPU would lose an update as well. `in_one_pass`: of their block.
bool HandOverPoints::is_own(const SharedAccess& first, const SharedAccess& second, bool in_one_pass) {
    if (!accesses_.have_one_address(first, second) || has_effect(instruction_of(first), Effects::async)) return false;
    const BlockId defined = graph_.values[instruction_of(first)[Role::a].index].block;
    return in_one_pass || defined == no_block || !passed_[defined];
}

bool HandOverPoints::compare(const SharedAccess& first, const SharedAccess& second) {
    if (first.is_anywhere || second.is_anywhere) return !first.is_global && !second.is_global;
    if (first.is_global || second.is_global) return compare_global(instruction_of(first), instruction_of(second));
    if (compared_threads_ > comparison_budget) return true;
    compared_threads_ += threads_;
    return accesses_.encounter(first, second, passed_) != Encounter::never;
}

/// Pointers may be to one array, but mostly are not. Where something is volatile others are meant to see it.
bool HandOverPoints::compare_global(const ptx::Instruction& first, const ptx::Instruction& second) const {
    using enum ptx::StateSpace;
    if (first.space != second.space && first.space != generic && second.space != generic) return false;
    const Overlap overlap = places_.overlap(places_.of(first), places_.of(second));
    if (overlap == Overlap::maybe) return first.has(ptx::Modifier::volatile_) || second.has(ptx::Modifier::volatile_);
    if (overlap == Overlap::same_place) { // of one lane; of all where they come to one word
        const Operand& address = first[Role::a];
        return address.base != Operand::Base::reg || graph_.values[address.index].shape.is_uniform();
    }
    return overlap == Overlap::same_object;
}

bool HandOverPoints::may_meet(std::size_t first, std::size_t second, bool in_one_pass) {
    const SharedAccess &a = accesses_.all()[first], &b = accesses_.all()[second];
    if (!a.writes && !b.writes) return false;
    if (a.is_atomic && b.is_atomic) return false;
    const auto [entry, is_new] = compared_.try_emplace({first, second}, false);
    if (is_new) entry->second = compare(a, b);
    return entry->second && !is_own(a, b, in_one_pass);
}

void HandOverPoints::list_events() {
    events_.resize(graph_.blocks.size());
    std::size_t access = 0;
    const std::vector<SharedAccess>& all = accesses_.all();
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        const std::vector<GraphInstruction>& instructions = graph_.blocks[id].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const bool accesses = access < all.size() && all[access].block == id && all[access].index == i;
            const bool meets = meets_whole_warp(instructions[i]);
            if (accesses || meets || is_query(instructions[i].inst))
                events_[id].push_back({i, accesses ? access++ : no_access, meets});
        }
    }
}

/// Walks over the block with what lanes may have done before it.
void HandOverPoints::pass(BlockId id, Pending& pending, bool marks) {
    Block& block = graph_.blocks[id];
    Pending own(accesses_.all().size()); // of the block
    const auto clear = [&] {
        pending.clear();
        own.clear();
    };
    if (block.hand_over != 0) clear();
    for (const Event& event : events_[id]) {
        std::uint32_t& point = block.instructions[event.index].hand_over;
        const auto meets = [&](bool in_one_pass) {
            return [=, this](std::size_t other) { return may_meet(other, event.access, in_one_pass); };
        };
        if (marks && point == 0 && event.access != no_access &&
            (pending.any_of(meets(false)) || own.any_of(meets(true)))) {
            point = 1;
            marked_ = true;
        }
        if (point != 0) clear();
        if (event.access != no_access) own.add(event.access);
        if (event.meets) clear();
    }
    pending.merge(own);
}

/// Before lanes ask who is active they come together, as far as they can.
void HandOverPoints::mark_queries() {
    for (BlockId id = 0; id < graph_.blocks.size(); ++id)
        for (const Event& event : events_[id])
            if (is_query(graph_.blocks[id].instructions[event.index].inst))
                graph_.blocks[id].instructions[event.index].hand_over = 1;
}

/// Words that lanes change for each other are not their own: all load what was there before, and store the same.
void HandOverPoints::mark_clamped_words() {
    for (const ClampedStore& store : stores_of_clamped_words(graph_))
        graph_.blocks[store.block].instructions[store.index].hand_over = 1;
}

/// True if there is something new: a point takes from what is pending behind it.
bool HandOverPoints::mark_accesses() {
    if (accesses_.all().empty()) return false;
    std::vector<Pending> at_entry(graph_.blocks.size(), Pending(accesses_.all().size()));
    std::vector<bool> queued(graph_.blocks.size(), true);
    const std::vector<BlockId> order = reverse_post_order(successor_edges(graph_), 0);
    for (bool changes = true; changes;) {
        changes = false;
        for (BlockId id : order) {
            if (!queued[id]) continue;
            queued[id] = false;
            Pending pending = at_entry[id];
            pass(id, pending, false);
            for (BlockId next : graph_.blocks[id].successors)
                if (at_entry[next].merge(pending)) queued[next] = changes = true;
        }
    }
    marked_ = false;
    for (BlockId id : order) {
        Pending pending = at_entry[id];
        pass(id, pending, true);
        if (marked_ && rounds_left_ != 0) break; // what follows may be settled with it
    }
    if (rounds_left_ != 0) --rounds_left_;
    return marked_;
}

bool HandOverPoints::has_points(BlockId id) const {
    const Block& block = graph_.blocks[id];
    return block.hand_over != 0 || std::ranges::any_of(events_[id], [&](const Event& event) {
               const GraphInstruction& instruction = block.instructions[event.index];
               return instruction.hand_over != 0 || is_call(instruction.inst); // points in the callee
           });
}

/// Lanes that part at the end of `id` may come to points before they are at `join`.
bool HandOverPoints::parts_around_points(BlockId id, BlockId join) const {
    std::vector<bool> seen(graph_.blocks.size(), false);
    std::vector<BlockId> work = graph_.blocks[id].successors;
    while (!work.empty()) {
        const BlockId at = work.back();
        work.pop_back();
        if (at == join || seen[at]) continue;
        seen[at] = true;
        if (has_points(at)) return true;
        work.insert(work.end(), graph_.blocks[at].successors.begin(), graph_.blocks[at].successors.end());
    }
    return false;
}

void HandOverPoints::mark_joins() {
    const Edges successors = successor_edges(graph_);
    const DominatorTree post(reverse_edges(successors), successors, graph_.exit_block);
    for (bool changes = true; changes;) { // a join is a point itself
        changes = false;
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            if (!post.reachable(id) || !is_divergent_branch(graph_, id)) continue;
            const BlockId join = post.parent(id);
            if (join == no_block || graph_.blocks[join].hand_over != 0) continue;
            if (graph_.is_entry && join == graph_.exit_block && !has_points(join)) continue; // no way from there
            if (!parts_around_points(id, join)) continue;
            graph_.blocks[join].hand_over = 1;
            changes = true;
        }
    }
}

std::uint32_t HandOverPoints::number_points() {
    const RegionGraph region = region_graph(graph_, whole_graph(graph_));
    std::uint32_t number = 0;
    for (BlockId id : region.reducible ? region.order : reverse_post_order(region.successors, 0)) {
        Block& block = graph_.blocks[id];
        if (block.hand_over != 0) block.hand_over = ++number;
        for (GraphInstruction& instruction : block.instructions)
            if (instruction.hand_over != 0) instruction.hand_over = ++number;
    }
    return number;
}

} // namespace

bool mark_hand_over_points(FunctionGraph& graph, const BlockShape& block, const CalledFunctions& called) {
    return HandOverPoints(graph, block, called).run();
}

} // namespace ptarmigan::translator
