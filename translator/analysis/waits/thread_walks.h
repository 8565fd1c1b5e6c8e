// SPDX-License-Identifier: Apache-2.0
// Walks each thread of the CTA from the entry to the exit, where the threads' numbers and constants alone say which way
// it goes and which words of shared memory it comes to: tiles of a size that the program fixes. What no algebra shows
// is seen then, word by word.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// What is known if, between two barriers of the CTA, no thread comes to a word of shared memory that another one of
/// its warp writes: the order among the lanes of a warp can't be seen in shared memory.
struct ThreadWalks {
    /// By loop of the forest: how many of a warp's lanes are in it on average, from 0 to 1, if all that come to it
    /// between two barriers begin together.
    std::vector<double> lanes_in_loop;
    /// Plain loads in a loop's first block of words that stay what they are from round to round: the place is the same,
    /// no thread that loads it writes there, and nothing in the loop orders memory.
    struct SteadyLoad {
        std::uint32_t loop = no_loop;
        std::size_t instruction = 0; ///< of the loop's header
    };
    std::vector<SteadyLoad> steady_loads; ///< by loop, and in order
};

/// None if lanes meet, or if that is not known: something of memory or of a parameter decides about a way or a place,
/// or it takes too long to find out. Needs no shapes.
std::optional<ThreadWalks> walk_threads(const FunctionGraph& graph, const BlockShape& block);

} // namespace ptarmigan::translator
