// SPDX-License-Identifier: Apache-2.0
// What is decided about the regions of a kernel between barriers before their code is made.
#pragma once

#include "translator/analysis/build/loop_accumulators.h"
#include "translator/analysis/graph/linear_plan.h"
#include "translator/analysis/loops/plan_turns.h"
#include "translator/emit/region_frames.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// What a region function returns when its step has stopped in a loop.
inline constexpr std::uint32_t stopped = 0xffffffffu;
/// Likewise in one that waits for memory.
inline constexpr std::uint32_t stopped_to_wait = 0xfffffffeu;

inline bool is_cut(const RegionView& view, BlockId block) {
    return block < view.cut_after.size() && view.cut_after[block];
}

struct RegionPlan {
    explicit RegionPlan(const FunctionGraph& graph) : products(graph) {}

    BarrierPlan barriers;
    bool counters = false;                     ///< lanes have program counters; then there are no `linear`
    std::vector<LinearPlan> linear;            ///< by region
    std::vector<std::vector<TurnPoint>> turns; ///< by region
    std::vector<bool> lane_by_lane;            ///< by region: lane_regions.h
    ProductGroups products;
    LoopAccumulators accumulators;
    std::optional<std::uint32_t> accumulators_offset; ///< behind the step's frame; none: on the stack
    RegionFrames frames;
    std::uint32_t step_size = 0; ///< bytes: of the frame and what is kept

    std::size_t count() const { return barriers.regions.size(); }
    const RegionView& view(std::size_t region) const { return barriers.regions[region]; }
    std::size_t region_behind(BlockId barrier) const {
        std::size_t next = 1;
        while (barriers.resume_of.at(next) != barrier) ++next;
        return next;
    }
};

} // namespace ptarmigan::translator
