// SPDX-License-Identifier: Apache-2.0
// Loops with several entries, which ptxas makes of waits and of rounds that it begins in the middle: behind the lifter
// lanes of a warp stay together in loops with one entry only. So all ways to the entries of such a loop go through one
// block, which sends them on by a number: those from outside, then those from inside.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace ptarmigan::sass {

struct LoopEntries {
    /// The entries of each loop that has several; inner loops too, where ways to the entries of outer ones do not
    /// count.
    std::vector<std::vector<unsigned>> loops;
    std::vector<int> loop_of;                           ///< of a block: whose entry it is, or -1
    std::set<std::pair<unsigned, unsigned>> back_edges; ///< to entries from inside of their loop
};

/// `successors`: of each block, of which 0 is where it all begins. Blocks that cannot be reached are nobody's.
LoopEntries find_loop_entries(const std::vector<std::vector<unsigned>>& successors);

} // namespace ptarmigan::sass
