// SPDX-License-Identifier: Apache-2.0
// Where the steps of a CTA take turns without a barrier. A region runs step after step, so in a grid-stride loop the
// first warp walks through all of memory before the second begins, and reads 128 bytes of each page that it comes to.
// On a GPU the warps walk together. Here a step stops after some rounds of such a loop, the others go as far, and the
// CTA reads pieces that lie together: the CPU's prefetchers see them, and lines a grid stride apart do not drive each
// other out of the caches.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// From one stop to the next. Few, so that what the rounds of one step read stays in the first cache; measured in
/// translator/analysis/README.md.
constexpr std::uint32_t rounds_per_turn = 8;
/// Rows that a step reads in one turn, which may all lie in one set of the first cache. Where the other warps of the
/// CTA read the same ones, nothing of the next turn is asked for meanwhile.
constexpr std::uint32_t rows_per_turn = 16;

/// Sets LoopInfo::takes_turns, and how, in the forest of a graph in region form whose lanes are masked: for loops whose
/// lanes, and warps, read or write neighbouring elements that are far from the last round's and none go one by one, or
/// whose warps all read the same such elements; with `everywhere` for all. Needs shapes.
void choose_turn_loops(FunctionGraph& graph, const BlockShape& shape, bool everywhere);

/// Some atomics of the loop go to a place of each lane's own, one lane after the other: a round takes long.
bool goes_lane_by_lane(const FunctionGraph& graph, const LoopInfo& loop);

/// A loop of a region at whose header a step may stop and go on later, and what it needs to know then.
struct TurnPoint {
    BlockId header = no_block, latch = no_block;
    std::uint32_t rounds = rounds_per_turn;
    bool waits = false;               ///< for what others do: they must have their turns
    std::vector<ValueId> live;        ///< values of the lanes in the loop and of those that wait behind it; sorted
    std::vector<BlockId> edge_masks;  ///< blocks that lanes may be waiting for
    std::vector<BlockId> block_masks; ///< blocks before the loop whose mask is asked for in it or behind it
};

/// The chosen loops of one region: of those that walk far the ones that are not inside another there, and all that
/// wait.
std::vector<TurnPoint> plan_turns(const FunctionGraph& graph, const LinearPlan& plan);

} // namespace ptarmigan::translator
