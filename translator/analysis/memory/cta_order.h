// SPDX-License-Identifier: Apache-2.0
// In which order the CTAs of a two-dimensional grid use the caches best.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// True if the kernel may see what other CTAs do (atomics, volatile and stronger reads, calls), or asks which
/// multiprocessor it runs on: the order of the CTAs could matter to it. Assertions are no such calls.
bool may_meet_other_ctas(const FunctionGraph& graph);

/// True if some access of global memory continues from a CTA to its neighbour in y (the next %ctaid.y) and leaps from a
/// CTA to its neighbour in x, as the stores of a matrix transposition do. Such CTAs run in pairs of y: half as many
/// pieces of lines and DRAM rows then. False if the kernel may see what other CTAs do (atomics, volatile and stronger
/// reads, calls): the order of the CTAs could matter to it.
bool continues_in_y(const FunctionGraph& graph);

/// How many CTAs next to each other in x run together, the first row of threads of each, then the second of each, and
/// so on; 1: each CTA as a whole. Where a CTA reads a short piece of each of many rows, and its neighbour what follows
/// there, the CPU's prefetchers see a stream only then. For kernels of more than one row of threads that read global
/// memory outside of loops only, and as for continues_in_y(); whoever asks knows that threads don't meet.
std::uint32_t ctas_in_row(const FunctionGraph& graph, const BlockShape& shape);

} // namespace ptarmigan::translator
