// SPDX-License-Identifier: Apache-2.0
// Loads of several adjacent elements per lane from unrelated addresses: one vector load per lane, then a transposition.
#pragma once

#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

/// True if `access` is better made lane by lane than element by element: 16 bytes per lane.
bool wants_rows(WarpEmitter& e, const MemoryAccess& access);
/// Element k of every active lane as value k; inactive lanes get any value.
llvm::SmallVector<llvm::Value*, 8> load_rows(WarpEmitter& e, const MemoryAccess& access);

} // namespace ptarmigan::translator::lower
