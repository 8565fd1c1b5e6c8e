// SPDX-License-Identifier: Apache-2.0
// Loads that read neighbouring elements of each lane's own memory: what unrolled loops over rows, lists and structures
// are made of. Made together they cost one access per lane instead of one per lane and element.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Weak, unguarded scalar loads of one block from the same address register, in ascending order of their offsets, which
/// are adjacent. Nothing between the first and the last of them in the program orders memory or writes to it.
struct LoadGroup {
    std::vector<const ptx::Instruction*> loads; ///< 4 at most, 16 bytes at most
    const ptx::Instruction* first = nullptr;    ///< in program order
};

std::vector<LoadGroup> find_load_groups(const FunctionGraph& graph, BlockId block);

} // namespace ptarmigan::translator
