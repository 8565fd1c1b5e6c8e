// SPDX-License-Identifier: Apache-2.0
// Shapes of all values of a graph: one forward fixpoint over the lattice of shape.h, with divergence of branches,
// joins and loop exits decided on the way. Sound for the given block shape and lane width only.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Fills SsaValue::shape of every value and the exit flags of graph.forest.
/// `form` masks (or automatic): shapes hold for structured masked execution (plan_linearization). program_counters:
/// they hold for any interleaving of the lanes: phis and memory reads are varying.
/// Runs from scratch: may be called again with another width or form.
void compute_shapes(FunctionGraph& graph, const BlockShape& block, unsigned lane_width, const CompileOptions& options,
                    DivergenceForm form = DivergenceForm::masks);

} // namespace ptarmigan::translator
