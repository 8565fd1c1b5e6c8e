// SPDX-License-Identifier: Apache-2.0
// Accesses whose lanes turn out to be neighbours at run time only: a stride that is a parameter and happens to be one
// element (x[i * incx]), or addresses computed lane by lane (a quotient and a remainder of the thread's number, each
// times a stride) that come out side by side all the same.
#pragma once

#include "translator/lower/memory_access.h"

#include <optional>

namespace ptarmigan::translator::lower {

struct NeighbourAccess {
    MemoryAccess access;              ///< its address is lane 0's
    AccessPlan plan;                  ///< where the lanes' elements are from there on
    llvm::Value* condition = nullptr; ///< i1: that is what `access` touches, and the plan's chunks may be made
};

/// What `access` is where its lanes are neighbours; the test is emitted at the insertion point. None where single
/// accesses are as good or lanes are hardly ever neighbours. `access` is not known to be made in chunks anyway.
std::optional<NeighbourAccess> load_of_neighbours(WarpEmitter& e, const MemoryAccess& access);
/// Likewise; the plan is gapless, or has gaps that a store leaves out, if all lanes are active.
std::optional<NeighbourAccess> store_of_neighbours(WarpEmitter& e, const MemoryAccess& access);

} // namespace ptarmigan::translator::lower
