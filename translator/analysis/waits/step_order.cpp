// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/step_order.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/waits/step_conflicts.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::StateSpace;

/// Of a region between barriers that stay; and of the graph.
constexpr std::size_t most_blocks = 64, most_accesses = 96, most_barriers = 512;

class Barriers {
public:
    Barriers(FunctionGraph& graph, const BlockShape& block, unsigned width, const BarrierPlan& plan)
        : graph_(graph), width_(width), plan_(plan), accesses_(find_step_accesses(graph, block)),
          stays_(graph.blocks.size(), false), dropped_(graph.blocks.size(), false) {}

    StepOrder run() {
        for (std::size_t r = 1; r < plan_.regions.size(); ++r) stays_[plan_.resume_of[r]] = true;
        StepOrder result;
        for (BlockId barrier : candidates())
            if (can_go(barrier)) result.changed = true;
        for (const auto& [behind, conflict] : conflicts_)
            if ((behind == no_block || stays_[behind]) && conflict == StepConflict::if_rising)
                result.falling.insert(behind);
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            if (!dropped_[id]) continue;
            graph_.blocks[id].instructions.pop_back();
            graph_.blocks[id].ends_with_barrier = false;
        }
        return result;
    }

private:
    /// The blocks from one barrier that stays to the next ones, in an order in which each comes behind those before it.
    struct Region {
        std::vector<BlockId> blocks;
        std::vector<std::uint64_t> reached; ///< by position: the blocks that lie behind it
    };

    std::vector<BlockId> candidates() const;
    std::set<BlockId> regions_with(BlockId block) const;
    bool can_go(BlockId barrier);
    std::optional<Region> region_behind(BlockId barrier) const;
    std::optional<StepConflict> conflict_in(const Region& region);
    bool exits_meet(const Region& region, std::size_t barrier) const;
    StepConflict conflict(std::size_t first, std::size_t second, const Region& region, std::size_t first_position);

    FunctionGraph& graph_;
    const unsigned width_;
    const BarrierPlan& plan_;
    const StepAccesses accesses_;
    std::vector<bool> stays_, dropped_;         ///< by block: its barrier
    std::map<BlockId, StepConflict> conflicts_; ///< of the region behind a barrier that others were taken out of
    std::map<std::pair<std::size_t, std::size_t>, StepConflict> known_;
};

/// First those over which most is kept for each thread.
std::vector<BlockId> Barriers::candidates() const {
    std::vector<std::pair<std::size_t, BlockId>> counted;
    for (std::size_t r = 1; r < plan_.regions.size(); ++r) {
        const BlockId block = plan_.resume_of[r];
        const ptx::Instruction& inst = graph_.blocks[block].instructions.back().inst;
        if (has_effect(inst, Effects::async) || accesses_.is_opaque[block]) continue;
        const std::vector<ValueId>& live = plan_.live_in[r];
        const auto count = std::count_if(live.begin(), live.end(),
                                         [&](ValueId value) { return graph_.values[value].shape.is_varying(); });
        counted.emplace_back(std::size_t(count), block);
    }
    std::stable_sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<BlockId> result;
    for (const auto& [count, block] : counted) result.push_back(block);
    return result;
}

/// None where there is a loop in it, or more than plain accesses.
std::optional<Barriers::Region> Barriers::region_behind(BlockId barrier) const {
    Region region;
    enum class State : std::uint8_t { unseen, open, done };
    std::map<BlockId, State> state;
    bool is_plain = true;
    const auto visit = [&](const auto& self, BlockId id) -> void {
        state[id] = State::open;
        is_plain = is_plain && !accesses_.is_opaque[id] && state.size() <= most_blocks;
        if (!is_plain) return;
        if (!stays_[id])
            for (BlockId next : graph_.blocks[id].successors) {
                const State seen = state[next];
                if (seen == State::open) is_plain = false;
                if (seen == State::unseen) self(self, next);
                if (!is_plain) return;
            }
        state[id] = State::done;
        region.blocks.push_back(id);
    };
    visit(visit, barrier == no_block ? 0 : graph_.blocks[barrier].successors[0]);
    if (!is_plain) return std::nullopt;
    std::reverse(region.blocks.begin(), region.blocks.end());
    const std::size_t count = region.blocks.size();
    region.reached.assign(count, 0);
    for (std::size_t i = count; i-- > 0;) {
        if (stays_[region.blocks[i]]) continue;
        for (BlockId next : graph_.blocks[region.blocks[i]].successors) {
            const auto place = std::find(region.blocks.begin(), region.blocks.end(), next) - region.blocks.begin();
            region.reached[i] |= std::uint64_t(1) << place | region.reached[std::size_t(place)];
        }
    }
    return region;
}

/// The barriers that stay (no_block: the kernel's beginning) behind which the block is come to before others.
std::set<BlockId> Barriers::regions_with(BlockId block) const {
    std::set<BlockId> result, seen{block};
    std::vector<BlockId> work{block};
    while (!work.empty()) {
        const BlockId id = work.back();
        work.pop_back();
        if (id == 0) result.insert(no_block);
        for (BlockId before : graph_.blocks[id].predecessors)
            if (stays_[before])
                result.insert(before);
            else if (seen.insert(before).second)
                work.push_back(before);
    }
    return result;
}

/// Tries it with the barrier taken out.
bool Barriers::can_go(BlockId barrier) {
    stays_[barrier] = false;
    dropped_[barrier] = true;
    std::map<BlockId, StepConflict> found;
    for (BlockId before : regions_with(barrier)) {
        const std::optional<Region> region = region_behind(before);
        const std::optional<StepConflict> conflict = region ? conflict_in(*region) : std::nullopt;
        if (!conflict || *conflict == StepConflict::both) {
            stays_[barrier] = true;
            dropped_[barrier] = false;
            return false;
        }
        found[before] = *conflict;
    }
    for (const auto& [before, conflict] : found) conflicts_[before] = conflict;
    return true;
}

/// In which order accesses meet that dropped barriers kept apart. If steps don't run in the usual order, nothing else
/// may depend on it either. None: there is too much to compare.
std::optional<StepConflict> Barriers::conflict_in(const Region& region) {
    StepConflict result = StepConflict::none;
    bool any_order = true; // streams of global memory are read forward, too
    std::size_t count = 0;
    for (BlockId id : region.blocks) {
        count += accesses_.by_block[id].size();
        for (std::size_t access : accesses_.by_block[id])
            any_order = any_order && accesses_.all[access].space == StateSpace::shared;
    }
    if (count > most_accesses) return std::nullopt;
    std::uint64_t dropped = 0;
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        if (!dropped_[region.blocks[i]]) continue;
        if (exits_meet(region, i)) return StepConflict::both;
        dropped |= std::uint64_t(1) << i;
    }
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        const std::uint64_t from = region.reached[i] | std::uint64_t(1) << i;
        std::uint64_t behind_dropped = 0;
        for (std::size_t k = 0; k < region.blocks.size(); ++k)
            if ((dropped & from) >> k & 1) behind_dropped |= region.reached[k];
        for (std::size_t k = i; k < region.blocks.size(); ++k) {
            if (!(from >> k & 1)) continue;
            for (std::size_t first : accesses_.by_block[region.blocks[i]])
                for (std::size_t second : accesses_.by_block[region.blocks[k]]) {
                    if (i == k && second < first) continue;
                    const StepConflict found = conflict(first, second, region, i);
                    if (behind_dropped >> k & 1)
                        result = result | found;
                    else
                        any_order = any_order && found == StepConflict::none;
                }
        }
    }
    if (!any_order) result = result | StepConflict::if_falling;
    return result;
}

/// May threads that exit without coming to a barrier meet what lies behind it? It waits until they have exited; without
/// it they may exit later, in their own step, too.
bool Barriers::exits_meet(const Region& region, std::size_t barrier) const {
    const auto lies_behind = [&](std::size_t a, std::size_t b) { return (region.reached[b] >> a & 1) != 0; };
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        if (i == barrier || lies_behind(barrier, i) || lies_behind(i, barrier)) continue;
        for (std::size_t k = 0; k < region.blocks.size(); ++k) {
            if (!lies_behind(k, barrier)) continue;
            for (std::size_t first : accesses_.by_block[region.blocks[i]])
                for (std::size_t second : accesses_.by_block[region.blocks[k]])
                    if (may_meet(accesses_.all[first], accesses_.all[second])) return true;
        }
    }
    return false;
}

StepConflict Barriers::conflict(std::size_t first, std::size_t second, const Region& region,
                                std::size_t first_position) {
    const StepAccess &a = accesses_.all[first], &b = accesses_.all[second];
    if (!may_meet(a, b)) return StepConflict::none;
    if (!a.address || !b.address || a.address->in_common != b.address->in_common) return StepConflict::both;
    // What all threads have in common must be the same number at both.
    for (const auto& [value, factor] : a.address->in_common) {
        const auto place = std::find(region.blocks.begin(), region.blocks.end(), graph_.values[value].block);
        if (place != region.blocks.end() && region.reached[first_position] >> (place - region.blocks.begin()) & 1)
            return StepConflict::both;
    }
    const auto [entry, is_new] = known_.try_emplace({first, second});
    if (is_new) entry->second = find_conflict(a, b, width_);
    return entry->second;
}

} // namespace

StepOrder drop_ordered_barriers(FunctionGraph& graph, const BlockShape& block, unsigned width,
                                const BarrierPlan& plan) {
    if (plan.regions.size() > most_barriers) return {};
    return Barriers(graph, block, width, plan).run();
}

} // namespace ptarmigan::translator
