// SPDX-License-Identifier: Apache-2.0
// Run-time checks of addresses whose alignment is not known (translator/analysis/memory/alignment.h).
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Ends the kernel with a misaligned address if an active lane's address is no multiple of `bytes` (a power of two).
/// `counted` (<W x i1>): only these lanes' addresses matter; null: all.
void check_alignment(WarpEmitter& e, const LaneAddress& address, unsigned bytes, bool is_write,
                     llvm::Value* counted = nullptr);

} // namespace ptarmigan::translator::lower
