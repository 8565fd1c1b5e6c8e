// SPDX-License-Identifier: Apache-2.0
// Intervals of integer values, to prove that lanes do not wrap before a widening.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// The value is congruent, modulo 2^bits of its register, to some integer in [low, high]. Signed and unsigned readings
/// come out of it alike: a reading is exact where the interval lies inside what the type can hold.
struct Interval {
    std::int64_t low = 0, high = -1; ///< low > high: nothing known
    bool known() const { return low <= high; }
};

/// Intervals of all values for a block shape; with small_grid, global thread indices stay below 2^31.
std::vector<Interval> value_ranges(const FunctionGraph& graph, const BlockShape& block, bool small_grid);

/// Replaces integer comparisons by moves of a constant: those that the ranges decide, or the threads' numbers, and
/// those by which a loop would go round again whose first round is its last. True if there were any.
bool decide_comparisons(FunctionGraph& graph, const BlockShape& block);

} // namespace ptarmigan::translator
