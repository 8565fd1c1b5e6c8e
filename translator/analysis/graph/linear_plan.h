// SPDX-License-Identifier: Apache-2.0
// How a region of the graph is laid out for masked execution: block order, loops, where masks come from,
// which blocks may be jumped over. Made by plan_linearization(), carried out by emit/control_flow.cpp.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// The part of a graph that one function of generated code executes: from `entry`, not crossing cut edges.
/// For a kernel without region splitting: all blocks, entry 0, no cuts (whole_graph()).
struct RegionView {
    BlockId entry = 0;
    std::vector<BlockId> blocks; ///< all blocks reachable without crossing a cut
    std::vector<bool> contains;  ///< by BlockId
    std::vector<bool> cut_after; ///< by BlockId: the block ends with a barrier at which the region ends
};

/// Where a block's active mask comes from.
struct MaskSource {
    enum class Kind : std::uint8_t {
        entry,      ///< the step's mask at region entry
        same_as,    ///< equal to the mask of `block` whenever this block runs
        accumulated ///< OR of the edge masks of its incoming edges since the last time it ran
    } kind = Kind::entry;
    BlockId block = no_block;
};

/// What masked execution does at a block, and where it goes then.
struct BlockPlan {
    MaskSource mask;
    bool needs_skip_check = false; ///< may be reached with no active lane: test the mask and go to skip_to
    BlockId skip_to = no_block;    ///< next block in order when skipped (no_block: region ends)
    bool divergent_branch = false; ///< the terminator's lanes may part
    /// For each successor edge: the block where control goes when the edge is taken as a uniform branch (the successor
    /// itself or an earlier block in order that may have lanes pending). For a divergent branch all are equal.
    std::vector<BlockId> jump_to;
    std::vector<bool> blend;      ///< by phi of the block: incoming values must be merged under edge masks
    std::uint32_t loop = no_loop; ///< innermost loop
};

/// The layout of one region; verify_plan() has its invariants.
struct LinearPlan {
    RegionView region;
    bool reducible = true;         ///< false: masks can't express it, use program counters
    std::vector<BlockId> order;    ///< loops are contiguous, otherwise topological
    std::vector<BlockPlan> blocks; ///< by BlockId
    std::vector<LoopInfo> loops;
    std::vector<std::vector<BlockId>>
        waiting_at_latch; ///< by loop: blocks behind it where lanes may wait while another round begins
    std::vector<BlockId> immediate_dominator; ///< by BlockId, no_block for the entry and blocks outside
};

/// Splitting at CTA-uniform barriers.
struct BarrierPlan {
    bool has_barriers = false;
    bool splittable = true;          ///< every barrier is CTA-uniform (up to threads that exited): region form applies
    std::string reason;              ///< why not, for dumps
    std::vector<RegionView> regions; ///< regions[0] starts at the entry; each other one after a barrier
    std::vector<BlockId> resume_of;  ///< by region: block that ends with the barrier before it (no_block for 0)
    /// Values live into region r, i.e. those that the frame holds when it starts.
    std::vector<std::vector<ValueId>> live_in;
    /// Slot of each value in the step frame or the CTA frame, in bytes; only for values in some live_in.
};

} // namespace ptarmigan::translator
