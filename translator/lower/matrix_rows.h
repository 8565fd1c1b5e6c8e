// SPDX-License-Identifier: Apache-2.0
// What ldmatrix and stmatrix ask of their lanes' addresses.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// <W x i1>: lanes whose address the instruction looks at, among those that execute it; null: all of them.
llvm::Value* addressing_lanes(WarpEmitter& e, const ptx::Instruction& inst);

} // namespace ptarmigan::translator::lower
