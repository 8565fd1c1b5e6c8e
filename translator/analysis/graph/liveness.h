// SPDX-License-Identifier: Apache-2.0
// Which values are live at the entry of some blocks.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// By block, for the wanted ones: values defined elsewhere that are used there or later, sorted; phis of the block and
/// constants and undefined values are not among them.
std::vector<std::vector<ValueId>> live_at_entry(const FunctionGraph& graph, const std::vector<bool>& wanted);

} // namespace ptarmigan::translator
