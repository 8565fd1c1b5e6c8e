// SPDX-License-Identifier: Apache-2.0
// What bounds a round of a loop: the work of its instructions, or how they wait for each other. A step of twice the
// lanes has two chains beside each other.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// The innermost loop with the most work waits for its longest chain of results rather than for room to compute, even
/// if it has `vectors` of them beside each other: the chain takes longer, in cycles of a CPU of today, than two
/// instructions a cycle of all that varies between lanes.
bool waits_for_chains(const FunctionGraph& graph, unsigned vectors = 1);

} // namespace ptarmigan::translator
