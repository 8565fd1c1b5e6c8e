// SPDX-License-Identifier: Apache-2.0
// Accesses that lanes which take no part may have beyond the edges of shared memory, in front of which and behind which
// nothing is: `t >= d ? sums[t - d] : 0`. Made of whole vectors under a mask they are right there too, but take an x86
// CPU hundreds of cycles.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Sets GraphInstruction::shared_edges. A hint: integers are taken not to wrap, and dynamic shared memory to end within
/// a page. `width` lanes a step.
void plan_shared_edges(FunctionGraph& graph, const BlockShape& block, unsigned width);

} // namespace ptarmigan::translator
