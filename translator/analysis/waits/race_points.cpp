// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/race_points.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"

#include <algorithm>
#include <set>

namespace ptarmigan::translator {
namespace {

/// Blocks that one compilation may walk over in search of cheap points.
constexpr std::size_t search_budget = 1 << 21;

/// What threads wait for others at: ways end there.
bool is_meeting(const ptx::Instruction& inst) {
    return is_cta_barrier(inst) || has_effect(inst, ptx::Effects::waits);
}

class Races {
public:
    Races(const FunctionGraph& graph, const BlockShape& block, unsigned width, MeetingPoints where,
          const CalledFunctions& called)
        : graph_(graph), where_(where), called_(called), accesses_(graph, block, width, called),
          events_(graph.blocks.size()), rank_(graph.blocks.size(), 0) {}

    RacePoints run() {
        if (!list_events()) return {};
        find_races();
        if (races_.empty()) return {};
        find_usable_blocks();
        for (const Race& race : races_) settle(race);
        result_.points.assign(chosen_.begin(), chosen_.end());
        return std::move(result_);
    }

private:
    struct Event {
        std::size_t index;
        const SharedAccess* access; ///< null: a meeting
    };
    struct Race {
        const SharedAccess* read;
        std::vector<const SharedAccess*> writes;
        std::vector<bool> ways; ///< blocks on the ways between
        bool is_likely = false;
    };
    struct Reach {
        std::vector<bool> entered;
        std::vector<const SharedAccess*> writes;
        std::vector<GraphPoint> stops; ///< of the points given
    };

    bool list_events();
    void find_races();
    std::vector<bool> ways(const SharedAccess& read, const Reach& reach,
                           const std::vector<const SharedAccess*>& writes) const;
    Reach reach(const SharedAccess& read, const std::set<GraphPoint>& points);
    bool separate(const Race& race, const std::set<GraphPoint>& points);
    void find_usable_blocks();
    std::vector<bool> blocks_that_all_meet() const;
    bool leaves_loops_whole(BlockId block, const DominatorTree& tree) const;
    std::vector<GraphPoint> candidates(const Race& race) const;
    std::uint32_t depth(BlockId block) const {
        const std::uint32_t loop = graph_.forest.loop_of[block];
        return loop == no_loop ? 0 : graph_.forest.loops[loop].depth;
    }
    void settle(const Race& race);

    const FunctionGraph& graph_;
    const MeetingPoints where_;
    const CalledFunctions called_;
    SharedAccesses accesses_;
    std::vector<std::vector<Event>> events_; ///< by block, in order
    /// Reads of words that the thread writes again, and these writes, in a place of each thread that is not known: bins
    /// of its own, pairs that are swapped. If others came there too before all meet, updates would be lost on a GPU as
    /// well.
    std::set<const SharedAccess*> own_;
    std::vector<Race> races_;
    std::vector<bool> usable_;        ///< by block
    std::vector<std::uint32_t> rank_; ///< by block: reverse post order
    std::set<GraphPoint> chosen_;
    std::size_t walked_ = 0;
    RacePoints result_;
};

/// False if there is nothing to look at: no barrier, no read, or no write.
bool Races::list_events() {
    bool barrier = called_.meet, read = false, write = false;
    for (const SharedAccess& access : accesses_.all()) {
        read = read || access.reads;
        write = write || access.writes;
    }
    if (!read || !write) return false;
    auto access = accesses_.all().begin();
    for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
        const std::vector<GraphInstruction>& instructions = graph_.blocks[block].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            if (access != accesses_.all().end() && access->block == block && access->index == i) {
                events_[block].push_back({i, &*access++});
            } else if (is_meeting(instructions[i].inst)) {
                events_[block].push_back({i, nullptr});
                barrier = barrier || is_cta_barrier(instructions[i].inst);
            }
        }
    }
    return barrier;
}

/// Where a thread may come to from behind a read without meeting others, at a barrier or at one of `points`.
Races::Reach Races::reach(const SharedAccess& read, const std::set<GraphPoint>& points) {
    Reach result{std::vector<bool>(graph_.blocks.size(), false), {}, {}};
    std::vector<BlockId> work;
    const auto walk = [&](BlockId block, std::size_t first) {
        ++walked_;
        const auto point = points.lower_bound({block, first});
        const std::size_t end = point != points.end() && point->block == block ? point->index : SIZE_MAX;
        for (const Event& event : events_[block]) {
            if (event.index < first) continue;
            if (event.index >= end) break;
            if (!event.access) return;
            if (event.access->writes) result.writes.push_back(event.access);
        }
        if (end != SIZE_MAX) return result.stops.push_back(*point);
        for (BlockId next : graph_.blocks[block].successors)
            if (!result.entered[next]) {
                result.entered[next] = true;
                work.push_back(next);
            }
    };
    walk(read.block, read.index + 1);
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        walk(block, 0);
    }
    return result;
}

/// Blocks that can be passed on the way from the read to one of the writes, their own included.
std::vector<bool> Races::ways(const SharedAccess& read, const Reach& reach,
                              const std::vector<const SharedAccess*>& writes) const {
    std::vector<bool> result(graph_.blocks.size(), false);
    std::vector<BlockId> work;
    const auto add = [&](BlockId block) {
        if (result[block]) return;
        result[block] = true;
        if (reach.entered[block]) work.push_back(block);
    };
    for (const SharedAccess* write : writes) add(write->block);
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        for (BlockId before : graph_.blocks[block].predecessors)
            if (reach.entered[before] || before == read.block) add(before);
    }
    return result;
}

void Races::find_races() {
    std::vector<bool> behind_barrier(graph_.blocks.size(), called_.meet);
    std::vector<BlockId> work;
    for (BlockId block = 0; block < graph_.blocks.size(); ++block)
        if (graph_.blocks[block].ends_with_barrier) work.push_back(block);
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        for (BlockId next : graph_.blocks[block].successors)
            if (!behind_barrier[next]) {
                behind_barrier[next] = true;
                work.push_back(next);
            }
    }
    std::vector<std::pair<const SharedAccess*, Reach>> reaches;
    for (const SharedAccess& read : accesses_.all()) {
        if (!read.reads || !behind_barrier[read.block] || walked_ > search_budget) continue;
        reaches.emplace_back(&read, reach(read, {}));
        for (const SharedAccess* write : reaches.back().second.writes)
            if (accesses_.have_one_address(read, *write)) own_.insert({&read, write});
    }
    for (const auto& [read, all] : reaches) {
        std::vector<const SharedAccess*> writes;
        bool is_likely = false;
        for (const SharedAccess* write : all.writes) {
            if (read->is_atomic && write->is_atomic) continue;
            const Encounter found = accesses_.encounter(*read, *write, all.entered);
            if (found < (where_ == MeetingPoints::where_likely ? Encounter::likely : Encounter::maybe)) continue;
            if (found == Encounter::maybe && own_.contains(read) && own_.contains(write)) continue;
            writes.push_back(write);
            is_likely = is_likely || found == Encounter::likely;
        }
        if (writes.empty()) continue;
        std::vector<bool> between = ways(*read, all, writes);
        races_.push_back({read, std::move(writes), std::move(between), is_likely});
    }
}

/// Lanes wait for others of their warp here, which must not wait at a barrier meanwhile.
bool has_collective(const Block& block) {
    return std::any_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& instruction) {
        return has_effect(instruction.inst, ptx::Effects::convergent | ptx::Effects::waits);
    });
}

/// As BarrierPlanner::check_control: when masked execution of the CTA as one step is there, threads wait elsewhere only
/// where nothing of interest lies ahead of them: neither a way of a race nor what threads wait for others at.
std::vector<bool> Races::blocks_that_all_meet() const {
    std::vector<bool> result(graph_.blocks.size(), false), divergent(result), ahead(result);
    const RegionGraph region = region_graph(graph_, whole_graph(graph_));
    if (!region.reducible) return result;
    std::vector<BlockId> work;
    for (BlockId block : region.order) {
        divergent[block] = is_cta_divergent_branch(graph_, block);
        const bool is_between =
            std::any_of(races_.begin(), races_.end(), [&](const Race& race) { return race.ways[block]; });
        if (is_between || graph_.blocks[block].ends_with_barrier || has_collective(graph_.blocks[block]))
            work.push_back(block);
    }
    while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        if (ahead[block]) continue;
        ahead[block] = true;
        work.insert(work.end(), region.predecessors[block].begin(), region.predecessors[block].end());
    }
    const PendingFlow flow = simulate(region, divergent);
    for (BlockId block : region.order) {
        const auto& waiting = flow.pending[region.position[block]];
        result[block] =
            std::none_of(waiting.begin(), waiting.end(), [&](std::uint32_t p) { return ahead[region.order[p]]; });
    }
    return result;
}

/// With a barrier there, no loop around is entered in its middle from behind it and gone round without one.
bool Races::leaves_loops_whole(BlockId block, const DominatorTree& tree) const {
    for (std::uint32_t loop = graph_.forest.loop_of[block]; loop != no_loop; loop = graph_.forest.loops[loop].parent) {
        const LoopInfo& info = graph_.forest.loops[loop];
        if (info.latch == no_block) return false;
        const bool is_cut = std::any_of(info.blocks.begin(), info.blocks.end(), [&](BlockId other) {
            return (other == block || graph_.blocks[other].ends_with_barrier) && tree.dominates(other, info.latch);
        });
        if (!is_cut) return false;
    }
    return true;
}

void Races::find_usable_blocks() {
    const Edges successors = successor_edges(graph_);
    const DominatorTree tree(successors, reverse_edges(successors), 0);
    for (BlockId block : tree.order()) rank_[block] = tree.position(block);
    if (where_ != MeetingPoints::for_all) {
        usable_.assign(graph_.blocks.size(), true);
        return;
    }
    usable_ = blocks_that_all_meet();
    for (BlockId block : tree.order())
        if (usable_[block]) usable_[block] = leaves_loops_whole(block, tree);
}

/// On the ways of a race; the best ones first: out of loops, and late, where they are behind more reads.
std::vector<GraphPoint> Races::candidates(const Race& race) const {
    std::vector<GraphPoint> result;
    for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
        if (!race.ways[block] || !usable_[block]) continue;
        result.push_back({block, 0});
        for (const Event& event : events_[block])
            if (event.access && event.access->writes) result.push_back({block, event.index});
        if (!graph_.blocks[block].ends_with_barrier)
            result.push_back({block, graph_.blocks[block].instructions.size()});
    }
    std::sort(result.begin(), result.end(), [&](const GraphPoint& a, const GraphPoint& b) {
        const std::uint32_t depth_a = depth(a.block), depth_b = depth(b.block);
        if (depth_a != depth_b) return depth_a < depth_b;
        if (rank_[a.block] != rank_[b.block]) return rank_[a.block] > rank_[b.block];
        return a.index > b.index;
    });
    return result;
}

bool Races::separate(const Race& race, const std::set<GraphPoint>& points) {
    const Reach rest = reach(*race.read, points);
    return std::none_of(race.writes.begin(), race.writes.end(), [&](const SharedAccess* write) {
        return std::find(rest.writes.begin(), rest.writes.end(), write) != rest.writes.end();
    });
}

void Races::settle(const Race& race) {
    if (separate(race, chosen_)) return;
    const std::vector<GraphPoint> all = candidates(race);
    for (const GraphPoint& point : all) {
        if (walked_ > search_budget) break;
        std::set<GraphPoint> points = chosen_;
        points.insert(point);
        if (!separate(race, points)) continue;
        chosen_ = std::move(points);
        return;
    }
    // No single one: those that each way comes to first.
    std::set<GraphPoint> points = chosen_;
    points.insert(all.begin(), all.end());
    const Reach rest = reach(*race.read, points);
    chosen_.insert(rest.stops.begin(), rest.stops.end());
    if (race.is_likely && !separate(race, chosen_)) ++result_.left;
}

} // namespace

RacePoints race_points(const FunctionGraph& graph, const BlockShape& block, unsigned width, MeetingPoints where,
                       const CalledFunctions& called) {
    return Races(graph, block, width, where, called).run();
}

} // namespace ptarmigan::translator
