// SPDX-License-Identifier: Apache-2.0
// Lays out a region of a shaped graph for masked execution: see linear_plan.h for the result and README.md for the
// rules.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// All blocks, entered at block 0, without cuts.
RegionView whole_graph(const FunctionGraph& graph);

/// Needs compute_shapes(form masks). The plan of an irreducible region has reducible = false and nothing else.
LinearPlan plan_linearization(const FunctionGraph& graph, const RegionView& view);
/// The same, with what it rests on (of a reducible region): positions count along LinearPlan::order.
struct PendingFlow;
LinearPlan plan_linearization(const FunctionGraph& graph, const RegionView& view, PendingFlow& flow);

} // namespace ptarmigan::translator
