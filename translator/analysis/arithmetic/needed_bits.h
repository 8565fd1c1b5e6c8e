// SPDX-License-Identifier: Apache-2.0
// Bits that nobody looks at. Machine code moves halves and bytes and keeps predicates as bits of a register, with the
// rest of the register left as it was, which may be anything.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// A bitwise operation or prmt becomes a constant where all bits that are looked at are known, and one of its sources
/// where those are the source's; a prmt that reads a source for bytes that nobody looks at reads it no more. True if
/// anything changed.
bool resolve_needed_bits(FunctionGraph& graph);

} // namespace ptarmigan::translator
