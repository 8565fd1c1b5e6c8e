// SPDX-License-Identifier: Apache-2.0
// Loops whose rounds a launch can count from the kernel's parameters before anything runs.
#pragma once

#include "translator/analysis/graph/function_graph.h"
#include "translator/launch_work.h"

namespace ptarmigan::translator {

/// What a thread of the kernel executes, with the costs of quick code. A loop's rounds are known where what a way out
/// of it compares moves by equal steps, and where it begins and how far it goes is computed from parameters and the
/// grid's extents; indices of threads and blocks count as 0, so it is about the first thread. With several such ways
/// out the first one that is found stands for the loop. For an entry's graph; a hint only.
LaunchWork count_rounds(const FunctionGraph& graph);

} // namespace ptarmigan::translator
