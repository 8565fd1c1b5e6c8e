// SPDX-License-Identifier: Apache-2.0
// Which loads should ask for the memory of later rounds of their loop. A loop over a sparse row is short and branches badly:
// each misprediction throws the CPU's own prefetchers off the streams of indices and values, and everything waits for them.
#pragma once

#include "translator/analysis/function_graph.h"

namespace ptarmigan::translator {

/// Sets GraphInstruction::prefetch; changes nothing that a program can see. For code with one lane per step: there each lane
/// walks on its own, with many lanes the streams are wide enough.
void plan_prefetch(FunctionGraph& graph);

} // namespace ptarmigan::translator
