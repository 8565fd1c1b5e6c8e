// SPDX-License-Identifier: Apache-2.0
// How far threads may differ at a branch, read from the shapes that compute_shapes() has filled in.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// True if the block ends in a branch on a condition.
bool has_choice(const FunctionGraph& graph, BlockId block);
/// Level of that condition, seen from the block.
Shape::Level condition_level(const FunctionGraph& graph, BlockId block);
/// True if the lanes of a step may part at the terminator of `block`.
bool is_divergent_branch(const FunctionGraph& graph, BlockId block);
/// True if threads of the CTA may part there.
bool is_cta_divergent_branch(const FunctionGraph& graph, BlockId block);

} // namespace ptarmigan::translator
