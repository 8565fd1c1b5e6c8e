// SPDX-License-Identifier: Apache-2.0
// Loops whose rounds are separated by barriers and counted by numbers that are known (1, 2, 4, ..., 512), written out
// where each round's number, together with the thread's, says where in memory a thread is: butterflies, whose halves
// are `tid & (reach - 1)` apart. In each round that is arithmetic on the thread's number alone, which fixes shapes,
// permutations and masks (arithmetic/thread_bits).
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Needs graph.forest; before close_loops(). True if something was done: simplify() is needed again then, and the
/// forest.
bool unroll_rounds(FunctionGraph& graph);

} // namespace ptarmigan::translator
