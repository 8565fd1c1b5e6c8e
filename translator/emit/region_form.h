// SPDX-License-Identifier: Apache-2.0
// The region form: one function per interval between CTA barriers, called for every step, and the driver that runs
// them for a CTA until all steps have exited.
#pragma once

#include "translator/analysis/build/loop_accumulators.h"
#include "translator/analysis/graph/linear_plan.h"
#include "translator/emit/kernel_unit.h"

#include <llvm/ADT/ArrayRef.h>

namespace ptarmigan::translator {

/// The execution order of one region for the unit's width; scalar code for width 1.
LinearPlan plan_region(const KernelUnit& unit, const FunctionGraph& graph, const RegionView& view);

/// What loops of the graph keep if it is emitted with these plans: nothing without masks or with narrow steps.
LoopAccumulators loop_accumulators(const KernelUnit& unit, const FunctionGraph& graph, const ProductGroups& groups,
                                   llvm::ArrayRef<LinearPlan> plans);

/// Emits region functions and `void run_cta(CtaContext*)`. Returns the bytes of a step frame.
std::uint32_t emit_region_form(KernelUnit& unit, const FunctionGraph& graph, const BarrierPlan& barriers);

} // namespace ptarmigan::translator
