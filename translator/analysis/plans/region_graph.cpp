// SPDX-License-Identifier: Apache-2.0
// Block order and the simulation of masked execution.
//
// Control visits blocks in order. An edge taken by some lanes adds them to the mask of its target; control then goes to
// the first block in order that may have lanes, be it the target or one where other lanes wait. simulate() computes,
// for each block, the set of later blocks that may have lanes waiting whenever control is there ("pending").
#include "translator/analysis/plans/region_graph.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

/// Topological order of one loop level: blocks directly in `level` and inner loops as single nodes, then expanded.
class Linearizer {
public:
    Linearizer(const RegionGraph& region, std::vector<BlockId>& order) : region_(region), order_(order) {}

    void run(BlockId entry) {
        // Expanding an inner loop is work pushed on a stack, so that deep nests do not recurse.
        struct Item {
            bool is_loop;
            std::uint32_t id;
        };
        std::vector<Item> work;
        auto push_level = [&](std::uint32_t level, BlockId first) {
            std::vector<std::uint32_t> nodes = level_order(level, first);
            for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
                work.push_back(*node >= loop_base() ? Item{true, *node - loop_base()} : Item{false, *node});
        };
        push_level(no_loop, entry);
        while (!work.empty()) {
            Item item = work.back();
            work.pop_back();
            if (item.is_loop)
                push_level(item.id, region_.forest.loops[item.id].header);
            else
                order_.push_back(item.id);
        }
    }

private:
    std::uint32_t loop_base() const { return std::uint32_t(region_.successors.size()); }

    /// The node of `block` at `level`: itself, or the loop directly inside the level that holds it.
    std::uint32_t node_of(BlockId block, std::uint32_t level) const {
        std::uint32_t loop = region_.forest.loop_of[block], inner = no_loop;
        while (loop != level && loop != no_loop) {
            inner = loop;
            loop = region_.forest.loops[loop].parent;
        }
        if (loop != level) return no_block; // outside
        return inner == no_loop ? block : loop_base() + inner;
    }
    std::vector<std::uint32_t> node_successors(std::uint32_t node, std::uint32_t level, BlockId header) const {
        std::vector<std::uint32_t> result;
        auto add = [&](BlockId block) {
            for (BlockId s : region_.successors[block]) {
                if (s == header) continue;
                std::uint32_t target = node_of(s, level);
                if (target != no_block && target != node) result.push_back(target);
            }
        };
        if (node < loop_base())
            add(node);
        else
            for (BlockId block : region_.forest.loops[node - loop_base()].blocks) add(block);
        return result;
    }
    std::vector<std::uint32_t> level_order(std::uint32_t level, BlockId first) const {
        std::vector<std::uint32_t> result;
        std::vector<bool> seen(loop_base() + region_.forest.loops.size(), false);
        struct Visit {
            std::uint32_t node;
            std::vector<std::uint32_t> next;
        };
        std::vector<Visit> stack;
        auto enter = [&](std::uint32_t node) {
            seen[node] = true;
            stack.push_back({node, node_successors(node, level, first)});
        };
        // The level's own header is a block of the level even where an inner loop shares nothing with it.
        std::uint32_t start = level == no_loop ? node_of(first, level) : first;
        enter(start);
        while (!stack.empty()) {
            if (stack.back().next.empty()) {
                result.push_back(stack.back().node);
                stack.pop_back();
                continue;
            }
            std::uint32_t node = stack.back().next.back();
            stack.back().next.pop_back();
            if (!seen[node]) enter(node);
        }
        std::reverse(result.begin(), result.end());
        return result;
    }

    const RegionGraph& region_;
    std::vector<BlockId>& order_;
};

void add_sorted(std::vector<std::uint32_t>& set, std::uint32_t item) {
    auto place = std::lower_bound(set.begin(), set.end(), item);
    if (place == set.end() || *place != item) set.insert(place, item);
}

class Simulation {
public:
    Simulation(const RegionGraph& region, const std::vector<bool>& divergent, PendingFlow& flow)
        : region_(region), divergent_(divergent), flow_(flow), reached_(region.order.size(), false) {}

    void run() {
        std::size_t blocks = region_.successors.size();
        flow_.pending.assign(region_.order.size(), {});
        flow_.conflict.assign(blocks, false);
        flow_.may_be_empty.assign(blocks, false);
        flow_.divergent_exit.assign(region_.forest.loops.size(), false);
        flow_.jump_to.assign(blocks, {});
        flow_.skip_to.assign(blocks, no_block);
        reached_[0] = true;
        // Back edges carry lanes that wait outside a loop to its header; nesting bounds the number of rounds.
        do {
            changed_ = false;
            for (std::uint32_t p = 0; p < region_.order.size(); ++p)
                if (reached_[p]) visit(p);
        } while (changed_);
    }

private:
    void visit(std::uint32_t p);
    void go(std::uint32_t from, std::uint32_t to, const std::vector<std::uint32_t>& waiting);
    void note_exits(std::uint32_t p, BlockId successor);
    void note_arrival(std::uint32_t p, std::uint32_t successor) {
        if (std::binary_search(flow_.pending[p].begin(), flow_.pending[p].end(), successor))
            flow_.conflict[region_.order[successor]] = true;
    }

    const RegionGraph& region_;
    const std::vector<bool>& divergent_;
    PendingFlow& flow_;
    std::vector<bool> reached_;
    bool changed_ = false;
};

/// Control moves to position `to` while lanes wait at `waiting`.
void Simulation::go(std::uint32_t from, std::uint32_t to, const std::vector<std::uint32_t>& waiting) {
    if (!reached_[to]) reached_[to] = changed_ = true;
    auto& set = flow_.pending[to];
    std::size_t before = set.size();
    std::vector<std::uint32_t> merged;
    merged.reserve(set.size() + waiting.size());
    std::set_union(set.begin(), set.end(), waiting.begin(), waiting.end(), std::back_inserter(merged));
    merged.erase(std::remove(merged.begin(), merged.end(), to), merged.end());
    if (merged.size() != before) {
        set = std::move(merged);
        changed_ = true;
    }
}

/// An edge out of loops: their lanes part here if the branch does, or if others of them wait inside.
void Simulation::note_exits(std::uint32_t p, BlockId successor) {
    BlockId block = region_.order[p];
    for (std::uint32_t loop = region_.forest.loop_of[block]; loop != no_loop;
         loop = region_.forest.loops[loop].parent) {
        if (region_.forest.inside(region_.forest.loop_of[successor], loop)) break;
        bool parts = divergent_[block];
        for (std::uint32_t q : flow_.pending[p])
            parts = parts || region_.forest.inside(region_.forest.loop_of[region_.order[q]], loop);
        if (parts) flow_.divergent_exit[loop] = true;
    }
}

void Simulation::visit(std::uint32_t p) {
    BlockId block = region_.order[p];
    const auto pending = flow_.pending[p]; // a copy: a loop of one block changes the original
    const auto& successors = region_.successors[block];
    if (!pending.empty()) {
        flow_.skip_to[block] = region_.order[pending[0]];
        if (flow_.may_be_empty[block]) go(p, pending[0], pending);
    } else {
        flow_.skip_to[block] = no_block;
    }
    auto& jumps = flow_.jump_to[block];
    jumps.assign(successors.size(), no_block);
    std::vector<std::uint32_t> all = pending;
    for (BlockId s : successors) {
        note_arrival(p, region_.position[s]);
        note_exits(p, s);
        if (divergent_[block]) add_sorted(all, region_.position[s]);
    }
    for (std::size_t k = 0; k < successors.size(); ++k) {
        std::uint32_t target = region_.position[successors[k]];
        std::uint32_t to = target;
        if (!divergent_[block]) {
            if (target > p) { // a back edge goes straight to the header: nothing waits inside the loop
                all = pending;
                add_sorted(all, target);
                to = all[0];
            } else {
                all = pending;
            }
        } else {
            to = all[0];
        }
        jumps[k] = region_.order[to];
        bool certain = !divergent_[block] && to == target;
        if (!certain) {
            BlockId next = region_.order[to];
            if (!flow_.may_be_empty[next]) flow_.may_be_empty[next] = changed_ = true;
        }
        go(p, to, all);
    }
    if (flow_.may_be_empty[block] && !pending.empty()) {
        BlockId next = flow_.skip_to[block];
        if (!flow_.may_be_empty[next]) flow_.may_be_empty[next] = changed_ = true;
    }
}

} // namespace

RegionGraph region_graph(const FunctionGraph& graph, const RegionView& view) {
    RegionGraph region;
    std::size_t count = graph.blocks.size();
    region.successors.resize(count);
    for (BlockId block : view.blocks)
        if (!view.cut_after[block]) region.successors[block] = graph.blocks[block].successors;
    region.predecessors = reverse_edges(region.successors);
    region.tree = DominatorTree(region.successors, region.predecessors, view.entry);
    region.forest = find_loops(region.successors, region.predecessors, region.tree);
    region.reducible = region.forest.reducible;
    for (const LoopInfo& loop : region.forest.loops)
        region.reducible = region.reducible && loop.latch != no_block && loop.preheader != no_block;
    region.position.assign(count, no_block);
    if (!region.reducible) return region;
    std::vector<BlockId> order;
    Linearizer(region, order).run(view.entry);
    auto last = [&](BlockId b) { return b == graph.exit_block ? 2 : view.cut_after[b] ? 1 : 0; };
    std::stable_sort(order.begin(), order.end(), [&](BlockId a, BlockId b) { return last(a) < last(b); });
    region.order = std::move(order);
    for (std::uint32_t i = 0; i < region.order.size(); ++i) region.position[region.order[i]] = i;
    return region;
}

PendingFlow simulate(const RegionGraph& region, const std::vector<bool>& divergent_branch) {
    PendingFlow flow;
    Simulation(region, divergent_branch, flow).run();
    return flow;
}

} // namespace ptarmigan::translator
