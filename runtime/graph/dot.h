// SPDX-License-Identifier: Apache-2.0
// cuGraphDebugDotPrint.
#pragma once

#include "runtime/base/status.h"

namespace ptarmigan::runtime {

class Graph;

/// Writes the graph to a file in the language of Graphviz, with what `flags` (CUgraphDebugDot_flags) ask for. With
/// graph_mutex(). operating_system if the file can't be written.
Status print_dot(const Graph& graph, const char* path, unsigned flags);

} // namespace ptarmigan::runtime
