// SPDX-License-Identifier: Apache-2.0
// Where values live while a CTA waits at a barrier: the step frame (one per step, in CtaContext::frames) and the CTA
// frame (uniform values, registers after optimisation).
#pragma once

#include "translator/analysis/graph/linear_plan.h"
#include "translator/analysis/loops/plan_turns.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>

namespace ptarmigan::translator {

struct RegionFrames {
    struct Place {
        std::uint32_t offset = 0;        ///< step frame: bytes; CTA frame: slot number
        std::uint32_t stride_offset = 0; ///< affine with a run-time stride
        bool in_cta_frame = false;
    };
    struct GuardPlace {
        std::uint32_t holds = 0, correction = 0;
    };
    std::map<ValueId, Place> values;
    std::map<ValueId, GuardPlace> guards;
    bool saves_mask = false; ///< some lanes may have exited at a barrier
    std::uint32_t mask_offset = 0;
    std::uint32_t turn_offset = 0;       ///< i32: 0, or 1 + the turn point where the step has stopped
    std::uint32_t turn_masks_offset = 0; ///< i64 each: the masks of that point
    std::uint32_t step_size = 0;         ///< bytes, multiple of 64
    std::uint32_t cta_slots = 0;         ///< 8 bytes each
};

/// Assigns places to every value that is live into some region after the first, or when a step stops in a loop, but for
/// those that `is_known` says can be had otherwise.
RegionFrames layout_frames(const FunctionGraph& graph, const BarrierPlan& barriers, const std::vector<TurnPoint>& turns,
                           unsigned width, bool saves_mask, const std::function<bool(ValueId)>& is_known);

} // namespace ptarmigan::translator
