// SPDX-License-Identifier: Apache-2.0
// `for (j = first; j < last; ++j)`, of which a compiler makes two loops: n % 4 single rounds, then rounds of four.
// Where lanes go one by one each end of a short loop is a guess of the CPU's, and more of them are wrong with two; so
// the first loop makes all rounds again.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Where the second loop's rounds are proved to be several of the first one's. They stay in the graph, and nothing
/// comes to them. Returns how many there were.
unsigned reroll_loops(FunctionGraph& graph);

} // namespace ptarmigan::translator
