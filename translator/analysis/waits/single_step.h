// SPDX-License-Identifier: Apache-2.0
// Barriers of CTAs that have nobody to wait for.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// Takes the barriers out of the graph of a CTA that is one step under masks: its lanes come to each of them together,
/// and what they did before is done. `plan`: the graph's, which is splittable. False, and all stay, if there are none,
/// or where lanes that are on their way out when others come to one may still have something to do.
bool drop_barriers_of_single_step(FunctionGraph& graph, const BarrierPlan& plan);

} // namespace ptarmigan::translator
