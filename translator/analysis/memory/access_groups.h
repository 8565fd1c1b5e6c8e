// SPDX-License-Identifier: Apache-2.0
// Loads and stores of neighbouring elements of each lane's own memory: what unrolled loops over rows, lists and
// structures are made of. Made together they cost one access per lane instead of one per lane and element, or a few
// whole vectors where the lanes lie side by side.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Weak, unguarded scalar loads, or stores, of one block at the same address register, in ascending order of their
/// offsets, which are adjacent. Loads are made where the first of them stands, stores where the last does: what lies
/// between touches none of their memory, in whatever lane.
struct AccessGroup {
    std::vector<const ptx::Instruction*> accesses;
    const ptx::Instruction* place = nullptr; ///< the one of them where all are made
};

struct AccessGroups {
    std::vector<AccessGroup> loads;  ///< 16 bytes at most where the lanes' distances are not known
    std::vector<AccessGroup> stores; ///< only where no two lanes share an element
};

AccessGroups find_access_groups(const FunctionGraph& graph, BlockId block);

} // namespace ptarmigan::translator
