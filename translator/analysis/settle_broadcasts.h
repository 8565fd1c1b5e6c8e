// SPDX-License-Identifier: Apache-2.0
// Words of shared memory that all warps read and one writes again, with no barrier between: the barrier is added.
#pragma once

#include "translator/analysis/function_graph.h"

namespace ptarmigan::translator {

/// A block reduction that ends in `return shared[0]` and is called twice is a race: the second call writes what warps
/// may have yet to read. A GPU decides it as meant, because all warps go on from a barrier together; here one runs to
/// the next barrier before the others start. So a second barrier is put behind loads that follow a barrier in the same
/// block, of words that all warps name alike, if a store that may meet them comes before the next barrier. Programs
/// without such a race compute the same with it.
/// Needs compute_shapes(form masks) and a splittable plan: all threads of the CTA pass each barrier together, so all
/// come to what follows in its block. True if the graph has changed, and shapes and plan must be made again.
bool settle_broadcasts(FunctionGraph& graph, const BlockShape& block);

} // namespace ptarmigan::translator
