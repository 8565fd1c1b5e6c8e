// SPDX-License-Identifier: Apache-2.0
// Loop-closed SSA form.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Gives each value that is used outside its loop a phi at the loop's exits, and makes uses outside name that. Lanes
/// that leave a loop at different iterations thereby have a value of their own for what they left with, whose shape is
/// not that of the value inside. Needs canonical, reducible control flow and graph.forest.
void close_loops(FunctionGraph& graph);

} // namespace ptarmigan::translator
