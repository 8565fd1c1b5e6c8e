// SPDX-License-Identifier: Apache-2.0
// Kernels whose lanes count on their warp being one step, whatever the barriers and collectives say.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// True if a load of shared memory, volatile or not, may meet another thread's store with neither a barrier nor a
/// collective on the way between them: at both, lanes wait for each other however few there are in a step; or if one of
/// global memory meets such a store for certain, or, where the block is one warp, is of the array that it goes to.
/// Finer than talks_without_barrier() and talks_through_volatile(), which decide about good code. Needs shapes for
/// steps of one lane and masks.
bool talks_without_meeting(const FunctionGraph& graph, const BlockShape& block);

/// Of global memory only: for good code, too.
bool talks_through_global(const FunctionGraph& graph, const BlockShape& block);

} // namespace ptarmigan::translator
