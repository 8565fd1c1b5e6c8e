// SPDX-License-Identifier: Apache-2.0
// Loops in which each lane walks through memory by itself: lanes leave at different times, and what they load is where
// each of them is. Such loops are better run lane by lane.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <vector>

namespace ptarmigan::translator {

/// Needs shapes; the graph must stay as it is.
class LaneWalks {
public:
    explicit LaneWalks(const FunctionGraph& graph);

    /// Share of lane-by-lane loads among a loop's instructions from which lanes had better go one by one: few are
    /// enough, since lanes also wait for each other and branches are masks. bench/divergence, the natural width and 1:
    /// search in a graph 26 and 6.5 ms on 2 Zen 3 cores, 14 to 16 and 4.5 on 2 of an Emerald Rapids, ray casting 200
    /// and 68, 140 and 89.
    static constexpr double worthwhile_share = 0.05;

    /// More than this share of the loop's instructions are loads that differ from lane to lane.
    bool loads_more_than(double share, const LoopInfo& loop) const;
    /// Lanes leave the loop at different times, and not by comparing arithmetic on the threads' numbers (i < n): then
    /// all do so in the same round but for once, at the end of what there is to do.
    bool lanes_leave_apart(const LoopInfo& loop) const;
    /// No other loop is inside.
    bool is_innermost(const LoopInfo& loop) const;

private:
    bool leaves_at_end_of_range(const LoopInfo& loop) const;

    const FunctionGraph& graph_;
    const std::vector<const GraphInstruction*> definitions_;
    const std::vector<bool> computed_;
};

} // namespace ptarmigan::translator
