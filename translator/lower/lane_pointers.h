// SPDX-License-Identifier: Apache-2.0
// Pointers for gathers and scatters.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Pointers of all lanes, `offset` bytes behind `addresses` (<W x i64>). Where the addresses are visibly a uniform base
/// and 32-bit indices, as p[i] with an int is, they are made of those: x86 gathers twice as many lanes at a time then.
llvm::Value* lane_pointers(WarpEmitter& e, llvm::Value* addresses, unsigned offset);

} // namespace ptarmigan::translator::lower
