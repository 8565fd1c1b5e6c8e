// SPDX-License-Identifier: Apache-2.0
// What a guarded instruction leaves behind a branch on its guard: its own result or the value before, which of them is
// known there. Machine code, which guards what PTX branches around, uses a register for several things that way.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Where it is known that the guard of a value's instruction was false, who reads the value reads the one before; where
/// it was true and the instruction a copy, the source. True if anything changed. Before close_loops().
bool resolve_guarded_values(FunctionGraph& graph);

} // namespace ptarmigan::translator
