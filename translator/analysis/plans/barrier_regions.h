// SPDX-License-Identifier: Apache-2.0
// Decides whether a kernel can be split at its CTA barriers, and the regions if so; small questions of the same kind.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// Needs compute_shapes. A kernel without CTA barriers is one splittable region.
/// Each region after the first starts at the successor of its barrier's block, which has no other predecessor.
BarrierPlan plan_barriers(const FunctionGraph& graph, const BlockShape& block);

/// From the entry and from behind each barrier of the whole CTA to the next such barriers or the end, whether or not
/// all threads come to each of them together. What lies behind other barriers is part of the region before them.
std::vector<RegionView> regions_between_barriers(const FunctionGraph& graph, const BlockShape& block);

/// Lanes of a warp talk to each other somewhere (shfl, vote, match, redux, bar.warp.sync, ...).
bool has_collectives(const FunctionGraph& graph);

/// Lanes of a warp may talk through volatile shared memory without a barrier, as programs of the time before Volta do:
/// every GPU runs straight code for the warp as a whole. With `generic`, generic addresses may be of shared memory.
bool talks_through_volatile(const FunctionGraph& graph, bool generic);

/// The same through plain shared memory: a load may meet another lane's store with no barrier of the CTA between them.
bool talks_without_barrier(const FunctionGraph& graph);

} // namespace ptarmigan::translator
