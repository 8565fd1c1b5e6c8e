// SPDX-License-Identifier: Apache-2.0
// Lanes behind the end of an array that do what the last one's lane does, once more.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <cstddef>
#include <vector>

namespace ptarmigan::translator {

/// True if a word of global memory is loaded, changed and stored back by all lanes that a minimum or maximum with their
/// number has sent to it: `i = min(lane, count - 1); x[i] = x[i] - y;`. In a warp that is one step all of them load
/// before one stores, and store the same; one after the other, each would change what the one before has left.
bool changes_clamped_words(const FunctionGraph& graph);

struct ClampedStore {
    BlockId block;
    std::size_t index; ///< of the store in the block
};

/// The stores of such words: lanes that run one by one must have loaded when the first of them comes there.
std::vector<ClampedStore> stores_of_clamped_words(const FunctionGraph& graph);

} // namespace ptarmigan::translator
