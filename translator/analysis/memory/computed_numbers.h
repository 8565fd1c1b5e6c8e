// SPDX-License-Identifier: Apache-2.0
// Which varying values are integer arithmetic on the threads' numbers and on what all lanes have in common. Used as
// addresses those often come out side by side (quotient and remainder of an index, each times a stride); what was read
// from memory or rounded hardly does.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <vector>

namespace ptarmigan::translator {

/// By ValueId. Needs shapes; uniform and affine values are all counted as such numbers, whatever they come from.
std::vector<bool> computed_numbers(const FunctionGraph& graph);

} // namespace ptarmigan::translator
