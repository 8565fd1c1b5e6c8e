// SPDX-License-Identifier: Apache-2.0
// Control flow clean-ups: see canonical_cfg.h. All run in time linear in the number of edges, but for nested loops.
#include "translator/analysis/build/canonical_cfg.h"

#include "translator/analysis/graph/dominators.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using Kind = Terminator::Kind;

BlockId add_block(FunctionGraph& graph, BlockId target) {
    graph.blocks.emplace_back();
    graph.blocks.back().terminator.kind = Kind::jump;
    graph.blocks.back().successors = {target};
    return BlockId(graph.blocks.size() - 1);
}

/// A branch with one target is a jump.
void simplify_terminators(FunctionGraph& graph) {
    for (Block& block : graph.blocks) {
        if (block.successors.size() < 2) {
            if (block.terminator.kind == Kind::indexed) {
                block.terminator.kind = Kind::jump;
                block.terminator.condition = no_value;
            }
            continue;
        }
        bool same = std::all_of(block.successors.begin(), block.successors.end(),
                                [&](BlockId s) { return s == block.successors[0]; });
        if (!same) continue;
        block.successors.erase(block.successors.begin() + 1, block.successors.end());
        block.terminator.kind = Kind::jump;
        block.terminator.condition = no_value;
    }
}

/// Where control ends up when it enters `block`: follows empty blocks that only jump.
BlockId final_target(const FunctionGraph& graph, BlockId block) {
    for (unsigned hops = 0; hops < 64; ++hops) {
        const Block& b = graph.blocks[block];
        if (!b.instructions.empty() || b.terminator.kind != Kind::jump || b.successors[0] == block) break;
        block = b.successors[0];
    }
    return block;
}

void thread_jumps(FunctionGraph& graph) {
    for (Block& block : graph.blocks)
        for (BlockId& s : block.successors) s = final_target(graph, s);
}

void free_entry(FunctionGraph& graph) {
    if (graph.blocks[0].predecessors.empty()) return;
    graph.blocks.push_back(std::move(graph.blocks[0]));
    BlockId moved = BlockId(graph.blocks.size() - 1);
    graph.blocks[0] = Block{};
    for (Block& block : graph.blocks)
        for (BlockId& s : block.successors)
            if (s == 0) s = moved;
    graph.blocks[0].terminator.kind = Kind::jump;
    graph.blocks[0].successors = {moved};
    link_predecessors(graph);
}

/// Leads the edges from `sources` to `target` through one new block.
void gather(FunctionGraph& graph, const std::vector<BlockId>& sources, BlockId target) {
    BlockId block = add_block(graph, target);
    for (BlockId source : sources)
        for (BlockId& s : graph.blocks[source].successors)
            if (s == target) s = block;
}

/// The same with phis: values that differ meet in the new block. Each source has one edge, which leads to `target`.
void gather_with_phis(FunctionGraph& graph, const std::vector<BlockId>& sources, BlockId target) {
    const BlockId block = add_block(graph, target);
    for (BlockId source : sources) graph.blocks[source].successors = {block};
    graph.blocks[block].predecessors = sources;
    Block& end = graph.blocks[target];
    std::vector<std::size_t> moved;
    for (BlockId source : sources)
        moved.push_back(std::size_t(std::find(end.predecessors.begin(), end.predecessors.end(), source) -
                                    end.predecessors.begin()));
    for (Phi& phi : end.phis) {
        Phi joined;
        for (std::size_t place : moved) joined.incoming.push_back(phi.incoming[place]);
        ValueId value = joined.incoming[0];
        if (std::any_of(joined.incoming.begin(), joined.incoming.end(), [&](ValueId v) { return v != value; })) {
            SsaValue info;
            info.type = graph.values[phi.result].type;
            info.name = graph.values[phi.result].name;
            info.block = block;
            info.is_phi = true;
            value = joined.result = ValueId(graph.values.size());
            graph.values.push_back(std::move(info));
            graph.blocks[block].phis.push_back(std::move(joined));
        }
        phi.incoming.push_back(value);
    }
    end.predecessors.push_back(block);
    std::sort(moved.rbegin(), moved.rend());
    for (std::size_t place : moved) {
        end.predecessors.erase(end.predecessors.begin() + std::ptrdiff_t(place));
        for (Phi& phi : end.phis) phi.incoming.erase(phi.incoming.begin() + std::ptrdiff_t(place));
    }
}

using Gather = void (*)(FunctionGraph&, const std::vector<BlockId>&, BlockId);

bool gather_loop_edges(FunctionGraph& graph, Gather gather_edges) {
    Edges successors = successor_edges(graph), predecessors = reverse_edges(successors);
    DominatorTree tree(successors, predecessors, 0);
    bool changed = false;
    for (BlockId header : tree.order()) {
        std::vector<BlockId> inside, outside;
        for (BlockId p : predecessors[header]) (tree.dominates(header, p) ? inside : outside).push_back(p);
        if (inside.empty()) continue;
        for (const auto* sources : {&inside, &outside}) {
            if (sources->size() < 2) continue;
            gather_edges(graph, *sources, header);
            changed = true;
        }
    }
    return changed;
}

void split_edges(FunctionGraph& graph) {
    BlockId count = BlockId(graph.blocks.size());
    for (BlockId b = 0; b < count; ++b) {
        bool splits = graph.blocks[b].successors.size() > 1 || graph.blocks[b].ends_with_barrier;
        if (!splits) continue;
        for (unsigned i = 0; i < graph.blocks[b].successors.size(); ++i) {
            BlockId target = graph.blocks[b].successors[i];
            // The exit block stays free of regions that start there: a barrier in front of it gets a block between.
            bool needed = graph.blocks[target].predecessors.size() > 1 || target == graph.exit_block;
            if (!needed) continue;
            BlockId middle = add_block(graph, target);
            graph.blocks[b].successors[i] = middle;
        }
    }
    link_predecessors(graph);
}

bool can_merge(const FunctionGraph& graph, BlockId block) {
    const Block& first = graph.blocks[block];
    if (first.terminator.kind != Kind::jump || first.ends_with_barrier) return false;
    BlockId next = first.successors[0];
    return next != block && next != 0 && next != graph.exit_block && graph.blocks[next].predecessors.size() == 1;
}

} // namespace

void link_predecessors(FunctionGraph& graph) {
    for (Block& block : graph.blocks) block.predecessors.clear();
    for (BlockId b = 0; b < graph.blocks.size(); ++b)
        for (BlockId s : graph.blocks[b].successors) graph.blocks[s].predecessors.push_back(b);
}

bool merge_chains(FunctionGraph& graph) {
    bool changed = false;
    for (BlockId b = 0; b < graph.blocks.size(); ++b) {
        if (b != 0 && graph.blocks[b].predecessors.empty()) continue;
        while (can_merge(graph, b)) {
            BlockId next = graph.blocks[b].successors[0];
            if (!graph.blocks[next].phis.empty()) break; // goes with the next round, when the phi is resolved
            Block& first = graph.blocks[b];
            Block& second = graph.blocks[next];
            std::move(second.instructions.begin(), second.instructions.end(), std::back_inserter(first.instructions));
            first.terminator = second.terminator;
            first.ends_with_barrier = second.ends_with_barrier;
            first.successors = std::move(second.successors);
            for (BlockId s : first.successors)
                std::replace(graph.blocks[s].predecessors.begin(), graph.blocks[s].predecessors.end(), next, b);
            graph.blocks[next] = Block{};
            graph.blocks[next].terminator.kind = Kind::jump; // unreachable: renumber_blocks() drops it
            changed = true;
        }
    }
    return changed;
}

void canonicalize(FunctionGraph& graph) {
    graph.blocks[graph.exit_block].terminator.kind = Kind::exit;
    thread_jumps(graph);
    simplify_terminators(graph);
    renumber_blocks(graph);
    merge_chains(graph);
    renumber_blocks(graph);
    free_entry(graph);
    gather_loop_edges(graph, gather);
    link_predecessors(graph);
    split_edges(graph);
    renumber_blocks(graph);
}

bool restore_loop_edges(FunctionGraph& graph) {
    return gather_loop_edges(graph, gather_with_phis);
}

namespace {

/// Of the edges to `block` the fewest that come from one branch and that had better meet before; none if there are
/// none.
std::vector<BlockId> edges_of_one_branch(const FunctionGraph& graph, const DominatorTree& tree,
                                         const LoopForest& forest, BlockId block) {
    constexpr std::size_t most_edges = 32;
    const Block& join = graph.blocks[block];
    const std::vector<BlockId>& sources = join.predecessors;
    if (sources.size() < 3 || sources.size() > most_edges || join.phis.empty()) return {};
    std::vector<BlockId> fewest;
    for (std::size_t first = 0; first < sources.size(); ++first)
        for (std::size_t second = first + 1; second < sources.size(); ++second) {
            const BlockId branch = tree.common(sources[first], sources[second]);
            std::vector<bool> inside;
            for (BlockId source : sources) inside.push_back(tree.dominates(branch, source));
            const auto count = std::size_t(std::count(inside.begin(), inside.end(), true));
            if (count == sources.size() || (!fewest.empty() && count >= fewest.size())) continue;
            std::vector<BlockId> group;
            bool in_one_loop = true;
            for (std::size_t i = 0; i < sources.size(); ++i) {
                if (!inside[i]) continue;
                group.push_back(sources[i]);
                in_one_loop = in_one_loop && forest.loop_of[sources[i]] == forest.loop_of[block] &&
                              graph.blocks[sources[i]].successors.size() == 1;
            }
            const bool helps = std::any_of(join.phis.begin(), join.phis.end(), [&](const Phi& phi) {
                const ValueId value = phi.incoming[first];
                bool differs = false;
                for (std::size_t i = 0; i < sources.size(); ++i) {
                    if (inside[i] && phi.incoming[i] != value) return false;
                    differs = differs || phi.incoming[i] != value;
                }
                return differs;
            });
            if (in_one_loop && helps) fewest = std::move(group);
        }
    return fewest;
}

} // namespace

bool split_joins(FunctionGraph& graph) {
    constexpr unsigned most_rounds = 8;
    bool changed = false;
    for (unsigned round = 0; round < most_rounds; ++round) {
        const Edges successors = successor_edges(graph), predecessors = reverse_edges(successors);
        const DominatorTree tree(successors, predecessors, 0);
        const LoopForest forest = find_loops(successors, predecessors, tree);
        if (!forest.reducible) return changed;
        bool found = false;
        for (BlockId block : tree.order()) {
            if (const std::uint32_t loop = forest.loop_of[block]; loop != no_loop && forest.loops[loop].header == block)
                continue;
            const std::vector<BlockId> sources = edges_of_one_branch(graph, tree, forest, block);
            if (sources.empty()) continue;
            gather_with_phis(graph, sources, block);
            found = true;
        }
        if (!found) break;
        changed = true;
    }
    return changed;
}

void remove_edge(FunctionGraph& graph, BlockId from, unsigned successor) {
    BlockId target = graph.blocks[from].successors[successor];
    graph.blocks[from].successors.erase(graph.blocks[from].successors.begin() + successor);
    Block& block = graph.blocks[target];
    auto position = std::find(block.predecessors.begin(), block.predecessors.end(), from) - block.predecessors.begin();
    block.predecessors.erase(block.predecessors.begin() + position);
    for (Phi& phi : block.phis) phi.incoming.erase(phi.incoming.begin() + position);
}

void renumber_blocks(FunctionGraph& graph) {
    std::vector<BlockId> order = reverse_post_order(successor_edges(graph), 0);
    order.erase(std::remove(order.begin(), order.end(), graph.exit_block), order.end());
    order.push_back(graph.exit_block); // kept even if no thread ever gets there
    std::vector<BlockId> new_number(graph.blocks.size(), no_block);
    for (BlockId i = 0; i < order.size(); ++i) new_number[order[i]] = i;
    std::vector<Block> blocks;
    blocks.reserve(order.size());
    for (BlockId old : order) blocks.push_back(std::move(graph.blocks[old]));
    bool have_predecessors = false;
    for (Block& block : blocks) {
        for (BlockId& s : block.successors) s = new_number[s];
        have_predecessors |= !block.predecessors.empty();
    }
    for (Block& block : blocks) {
        // Phi operands go with the predecessors that are dropped.
        for (std::size_t p = block.predecessors.size(); p-- > 0;) {
            if (BlockId now = new_number[block.predecessors[p]]; now != no_block) {
                block.predecessors[p] = now;
                continue;
            }
            block.predecessors.erase(block.predecessors.begin() + p);
            for (Phi& phi : block.phis) phi.incoming.erase(phi.incoming.begin() + p);
        }
    }
    for (SsaValue& value : graph.values)
        if (value.block != no_block) value.block = new_number[value.block];
    graph.exit_block = BlockId(order.size() - 1);
    graph.blocks = std::move(blocks);
    if (!have_predecessors) link_predecessors(graph);
}

} // namespace ptarmigan::translator
