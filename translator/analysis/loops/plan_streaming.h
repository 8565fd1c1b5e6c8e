// SPDX-License-Identifier: Apache-2.0
// Which stores may go past the caches when a grid writes more than they hold. A plain store reads the line first that
// it is about to overwrite, and pushes out another; a streaming one does neither, but whoever reads the line next goes
// to memory.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Sets GraphInstruction::streams for stores to buffers that the kernel does not read. Returns the bytes that a thread
/// stores so, each instruction counted once. None in kernels that order memory or wait: streaming stores are ordered
/// with nothing before the grid's end.
std::uint32_t plan_streaming(FunctionGraph& graph);

} // namespace ptarmigan::translator
