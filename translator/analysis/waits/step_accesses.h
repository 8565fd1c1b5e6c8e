// SPDX-License-Identifier: Apache-2.0
// The loads and stores of a graph as step_order compares them: where threads come to in shared memory, one by one.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// An address in shared memory, modulo 2^32.
struct ThreadAddress {
    std::vector<std::uint32_t> numbers;         ///< by thread
    std::map<ValueId, std::uint32_t> in_common; ///< factors of what is the same in all threads of the CTA
};

struct StepAccess {
    BlockId block = no_block;
    bool writes = false;
    ptx::StateSpace space = ptx::StateSpace::generic;
    std::uint32_t bytes = 0;
    std::optional<ThreadAddress> address; ///< none: not known
    std::vector<bool> threads;            ///< that execute it
};

struct StepAccesses {
    std::vector<StepAccess> all;
    std::vector<std::vector<std::size_t>> by_block; ///< into all
    std::vector<bool> is_opaque;                    ///< by block: it does more than plain accesses
};

/// Of shared, global and generic memory. A barrier that ends its block is left out. Needs shapes.
StepAccesses find_step_accesses(const FunctionGraph& graph, const BlockShape& block);

} // namespace ptarmigan::translator
