// SPDX-License-Identifier: Apache-2.0
// Readable text of a graph and its plans, for `ptarmigan dump` and failing tests.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

#include <string>

namespace ptarmigan::translator {

/// Blocks, phis, instructions and terminators; with shapes behind each definition if asked.
std::string dump_graph(const FunctionGraph& graph, bool with_shapes = false);
/// Order, masks, jumps and loops of one region.
std::string dump_plan(const FunctionGraph& graph, const LinearPlan& plan);
std::string dump_barriers(const FunctionGraph& graph, const BarrierPlan& plan);
std::string to_string(const FunctionGraph& graph, const Shape& shape);

} // namespace ptarmigan::translator
