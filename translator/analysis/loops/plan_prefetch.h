// SPDX-License-Identifier: Apache-2.0
// Which loads should ask for memory that is needed later, where the CPU's own prefetchers don't see it coming:
//   * one lane per step: streams of indices. A loop over a sparse row is short and branches badly; each misprediction
//   throws
//     the prefetchers off, and everything waits for the indices.
//   * many lanes, loops: where steps don't take turns (plan_turns.h) a warp runs its loop to the end before the next
//   warp begins, so
//     a grid-stride loop jumps from page to page, and what lies between is read when the lines' neighbours are long
//     gone. It asks for the next warp's piece, and where lanes go one by one (atomics) for its own, some rounds ahead.
//   * many lanes, loops in which steps take turns: what the step itself reads when its next turn comes, if the loop
//   goes on until then. A CTA reads a piece of each page, less than the CPU's prefetchers need to see a stream.
//   * many lanes, loops that meet barriers, as in products of matrices by tiles: all warps make a round before the
//   first makes
//     the next, whose places are the same distance away for all. They often are in other pages, which the CPU does not
//     foresee.
//   * many lanes, two-dimensional blocks: each warp reads a short piece of a row, the next piece is the next CTA's.
//   Where CTAs run in rows (cta_order.h) the CPU sees the streams; it is told of them a page ahead.
//   * many lanes, outside of loops, addresses of which only the launch knows whether the lanes' are neighbours
//   (strides, quotients, choices), and vectors: a page ahead in one-dimensional blocks, the former where they are
//   neighbours, in kernels with barriers in any. In loops the next warp's piece.
//   * many lanes, loops with a near stride in kernels with barriers, which sum up rows: a page ahead. Rows are a few
//   rounds long, too short for the CPU to see a stream.
//   * many lanes, kernels with barriers: what the CTA after the next reads with the same statement, as far away as
//   %ctaid.x says, else a row of the block's threads. A CTA that sums or sorts what it has read is long at that, and
//   begins with misses otherwise. Likewise lines of structures of which it reads each word by a statement of its own;
//   and, where a fence waits until all stores are done, what it writes.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Sets GraphInstruction::prefetch; changes nothing that a program can see. Needs the shapes of the graph at this
/// width. `in_rows`: CTAs run in rows (cta_order.h).
void plan_prefetch(FunctionGraph& graph, const BlockShape& shape, unsigned width, bool in_rows = false);

} // namespace ptarmigan::translator
