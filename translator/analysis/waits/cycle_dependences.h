// SPDX-License-Identifier: Apache-2.0
// What decides whether a loop goes round again: data, the branches that choose among data, and the branches before its
// exits, all within the loop.
#pragma once

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/memory/memory_places.h"

namespace ptarmigan::translator {

/// A natural loop, or a strongly connected part of an irreducible graph.
struct Cycle {
    std::vector<BlockId> blocks;
    BlockId header = no_block; ///< no_block where it may be entered at several places
};

/// The loops of the forest in its order, then, if the graph is irreducible, its strongly connected parts.
std::vector<Cycle> cycles_of(const FunctionGraph& graph);

class CycleDependences {
public:
    CycleDependences(const FunctionGraph& graph, const MemoryPlaces& places, const Cycle& cycle);

    struct Sources {
        bool carried = false; ///< something from the round before
        bool memory = false;  ///< something read
        bool atomic = false;  ///< something that an atomic returned
        std::vector<const GraphInstruction*> reads;
        std::vector<const Phi*> carried_phis;
    };
    /// What the exits depend on. Ends at reads: what a read returns does not depend on how its address was made. A read
    /// of what the cycle itself writes to memory depends on that too.
    Sources of_exits() const;
    /// What the exits' conditions are computed from in registers, whatever branches choose.
    Sources of_conditions() const;
    /// What a value is computed from, addresses of reads included.
    Sources of_value(ValueId value) const;
    /// The exits depend on a value that changes from round to round without reading memory.
    bool has_counter(const Sources& exits) const;
    bool has_exit() const { return !exits_.empty(); }
    bool contains(BlockId block) const { return block != no_block && local_[block] != no_block; }

    /// A compare-and-swap that expects just what it saw in memory last and ends the cycle where it succeeds: if it
    /// fails, someone else has written there.
    bool is_retry(const ptx::Instruction& inst) const;

private:
    class Walk;
    void find_control();
    bool defined_inside(ValueId value) const { return contains(graph_.values[value].block); }
    bool is_carried(const Phi& phi) const;
    bool expects_seen(const ptx::Instruction& inst) const;
    bool success_leaves(const ptx::Instruction& swap) const;
    bool asks_of(const ptx::Instruction& question, const ptx::Instruction& swap) const;
    bool tells_of_retry(const ptx::Instruction& inst) const;

    const FunctionGraph& graph_;
    const MemoryPlaces& places_;
    const Cycle& cycle_;
    std::vector<std::uint32_t> local_; ///< by BlockId: index in the cycle's blocks, no_block outside
    std::vector<BlockId> exits_;       ///< blocks with an edge that leaves
    Edges control_;                    ///< by local index: local indices of the branches that decide whether it runs
    DominatorTree tree_;               ///< of one round, by local index; the entry is the number behind the last block
};

} // namespace ptarmigan::translator
