// SPDX-License-Identifier: Apache-2.0
// Loops in which each lane walks along a row of its own (A[i * n + k], lanes in i, rounds in k): a round reads as many
// lines of the cache as there are lanes, and reads them again in the next rounds. If rows lie a multiple of 4 KB apart,
// which powers of two do, all those lines want the same few places of the first cache.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

struct RowWalks {
    bool any = false; ///< some loop has one
    /// Most lines that must share one set of the first cache (64 sets of lines of 64 bytes) in a loop, if `lanes` lanes
    /// go together. Rows at a distance that only the launch knows count as well spread.
    unsigned lines_in_set = 0;
    unsigned rows = 0; ///< most that a lane walks along in a loop
};

/// Needs shapes; of fewer lanes, the others' distances are taken for alike.
RowWalks find_row_walks(const FunctionGraph& graph, unsigned lanes);

} // namespace ptarmigan::translator
