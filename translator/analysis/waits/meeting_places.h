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
/// of the program alone. Needs compute_shapes(form masks) for steps of a whole warp. `lanes_wait`: for each other, so
/// that they overtake each other behind what masks would have them join at.
void mark_whole_meetings(FunctionGraph& graph, bool lanes_wait);

/// Lanes ask which others are here (activemask).
bool asks_who_is_here(const Block& block);
bool has_queries(const FunctionGraph& graph);

/// Some collective's members are those that a query in another block has named. With program counters lanes wait there
/// until no other can go on, which may be because it waits for them: behind the collective they give a lock back.
/// Needs mark_whole_meetings().
bool meets_in_part(const FunctionGraph& graph);

/// Lanes wait in the block for others. Not for a query, nor at collectives of those that one in the block has named.
bool gathers(const Block& block);

/// The member mask that all collectives of the block have, if it is known in front of it and there is nothing else that
/// lanes wait at; else null.
const ptx::Operand* common_members(const FunctionGraph& graph, BlockId block);

/// Gives queries blocks of their own, which with program counters run for lanes of one round: they end before anything
/// that others take part in. True if something changed.
bool split_at_queries(FunctionGraph& graph);

} // namespace ptarmigan::translator
