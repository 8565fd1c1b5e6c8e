// SPDX-License-Identifier: Apache-2.0
// Where lanes of a warp that run one by one wait for each other, so that they hand over through memory as lanes in step
// do.
#pragma once

#include "translator/analysis/memory/shared_accesses.h"

namespace ptarmigan::translator {

/// Lanes of a GPU's warp are in step behind the immediate post-dominator of a branch that parted them, and programs
/// hand over through shared memory there with no `bar.warp.sync` between. Marks
/// * accesses that may meet an earlier one of another lane, with no point nor collective of the whole warp between
///   (GraphInstruction::hand_over), and queries of who is active;
/// * the immediate post-dominators of divergent branches between which and which such points lie, so that lanes that
///   leave a loop do not mix with those of its next rounds (Block::hand_over).
/// Points are numbered from 1 in an order in which loops are contiguous and what lies behind is higher: of lanes that
/// wait at several, those at the lowest go on. To be asked with shapes for steps of a whole warp (form masks; of
/// irreducible graphs form program counters). Accesses of global memory count as meeting if they are of one object and
/// not of one place, or one is volatile and the other may be of the same object. True if there is a point.
bool mark_hand_over_points(FunctionGraph& graph, const BlockShape& block, const CalledFunctions& called);

} // namespace ptarmigan::translator
