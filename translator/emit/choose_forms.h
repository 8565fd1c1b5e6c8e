// SPDX-License-Identifier: Apache-2.0
// The forms of a kernel: lanes per step, masks or program counters, regions between barriers or fibers, turns, rows of
// CTAs.
#pragma once

#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/graph/linear_plan.h"
#include "translator/analysis/memory/shared_accesses.h"
#include "translator/compile.h"
#include "translator/emit/kernel_unit.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// What is decided besides what KernelUnit has.
struct KernelForms {
    BarrierPlan barriers; ///< region form
    bool spins = false, could_spin = false;
    bool hands_over = false; ///< lanes run one by one, and are in step where a GPU's are
    CalledFunctions called;  ///< if so
    std::vector<AlignmentDemand> alignment_demands;
    std::optional<std::uint32_t> streamed_bytes; ///< of a kernel with versions
    std::uint32_t ctas_in_row = 1;
    AddressProgram addresses;
};

/// Sets the unit's forms, and makes the kernel's graph what they need: it has shapes and all else that analyses note in
/// it. Notes in `progress` (may be null) what it decides.
KernelForms choose_forms(KernelUnit& unit, FunctionGraph& graph, const GraphOptions& options,
                         CompileProgress* progress);

/// Lanes that run one by one come together where a GPU's are in step: true if there are such places. Leaves the shapes
/// of a whole warp behind.
bool mark_hand_over_points_of(const KernelUnit& unit, FunctionGraph& graph, const KernelForms& forms);

unsigned count_statements(const FunctionGraph& graph);

} // namespace ptarmigan::translator
