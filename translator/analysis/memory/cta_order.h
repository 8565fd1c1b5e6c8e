// SPDX-License-Identifier: Apache-2.0
// In which order the CTAs of a two-dimensional grid use the caches best.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// True if some access of global memory continues from a CTA to its neighbour in y (the next %ctaid.y) and leaps from a
/// CTA to its neighbour in x, as the stores of a matrix transposition do. Such CTAs run in pairs of y: half as many
/// pieces of lines and DRAM rows then. False if the kernel may see what other CTAs do (atomics, volatile and stronger
/// reads, calls): the order of the CTAs could matter to it.
bool continues_in_y(const FunctionGraph& graph);

} // namespace ptarmigan::translator
