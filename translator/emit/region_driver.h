// SPDX-License-Identifier: Apache-2.0
// run_cta(), which calls the functions of regions between barriers step by step.
#pragma once

#include "translator/emit/kernel_unit.h"
#include "translator/emit/region_plan.h"

#include <llvm/IR/Function.h>

#include <vector>

namespace ptarmigan::translator {

/// Emits `void run_cta(CtaContext*)`. Where CTAs run in rows (analysis/memory/cta_order.h) the step of each of them is
/// run before the next step of the first; they have one region and keep nothing.
void emit_region_driver(KernelUnit& unit, const FunctionGraph& graph, const RegionPlan& plan,
                        const std::vector<llvm::Function*>& functions);

} // namespace ptarmigan::translator
