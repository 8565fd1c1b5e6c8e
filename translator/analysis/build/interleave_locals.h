// SPDX-License-Identifier: Apache-2.0
// Local memory interleaved by lane: lanes that access one place of their arrays access memory that lies together.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Finds the variables in local memory whose addresses are used for nothing but ld and st (and arithmetic and
/// comparisons that lead there), and numbers their places from 0 on: addresses become these numbers, which all lanes
/// have in common, and GraphInstruction::lane_granule marks the accesses. Place p of lane l of a step lies at byte
///     p / granule * granule * W + l * granule + p % granule
/// of the step's interleaved memory; a variable's granule is its largest element. All other variables stay as they are,
/// in one piece per thread, because generic pointers see them. In kernels only: frames of functions are called at any
/// depth. Behind build_ssa(), before simplify().
void interleave_locals(FunctionGraph& graph);

} // namespace ptarmigan::translator
