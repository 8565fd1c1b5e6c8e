// SPDX-License-Identifier: Apache-2.0
// One function for each region between barriers.
#pragma once

#include "translator/emit/kernel_unit.h"
#include "translator/emit/known_in_steps.h"
#include "translator/emit/region_plan.h"

#include <vector>

namespace ptarmigan::translator {

/// By region:
///     i32 region(CtaContext*, i32 step, ptr step_frame, ptr cta_in, ptr cta_out [, i32 ctaid.x])
/// returns the number of the region that follows the barrier that the step reached, or 0 when it has exited. Barriers
/// are CTA-uniform, so all live steps return the same number. Or it returns `stopped`: the step has had its turn in a
/// long loop (analysis/plan_turns.h) and is called again when the others have had theirs. Values that are the same in
/// the whole CTA travel in cta_in / cta_out (double-buffered: a step must not see what an earlier step of the same
/// interval wrote); after inlining these are scalars in registers.
std::vector<llvm::Function*> emit_region_functions(KernelUnit& unit, const FunctionGraph& graph, const RegionPlan& plan,
                                                   KnownInSteps& known);

} // namespace ptarmigan::translator
