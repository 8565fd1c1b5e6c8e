// SPDX-License-Identifier: Apache-2.0
// Collectives and barriers at which lanes of one warp may meet although they come to different ones.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// True if lanes of a step may wait at one collective or CTA barrier for lanes of the same step that come to another
/// one
/// (`if (c) shfl.sync ...; else shfl.sync ...;` with the same member mask), or to the same one along another way.
/// Neither masks nor program counters can bring them together: such a kernel runs lane by lane, each with a stack of
/// its own. Needs compute_shapes(). Not so where the ways have joined before the other one and all lanes come to it
/// equally often: then a program whose members match has none that waits.
bool may_meet_elsewhere(const FunctionGraph& graph);

/// Marks collectives with one member mask that all lanes of a warp which have not exited come to together, by the shape
/// of the program alone. Needs compute_shapes(form masks) for steps of a whole warp.
void mark_whole_meetings(FunctionGraph& graph);

} // namespace ptarmigan::translator
