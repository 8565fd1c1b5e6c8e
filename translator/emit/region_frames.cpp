// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/region_frames.h"

#include <algorithm>

namespace ptarmigan::translator {

RegionFrames layout_frames(const FunctionGraph& graph, const BarrierPlan& barriers, unsigned width, bool saves_mask) {
    RegionFrames frames;
    frames.saves_mask = saves_mask;
    std::set<ValueId> live, guards;
    for (const auto& values : barriers.live_in)
        for (ValueId value : values) {
            const SsaValue& info = graph.values[value];
            if (info.is_constant || info.is_undefined) continue;
            live.insert(value);
            if (info.shape.guard != no_value) guards.insert(info.shape.guard);
        }
    std::uint32_t offset = 0;
    auto place = [&](std::uint32_t bytes) {
        std::uint32_t alignment = bytes >= 64 ? 64 : 16;
        offset = (offset + alignment - 1) / alignment * alignment;
        std::uint32_t start = offset;
        offset += bytes;
        return start;
    };
    auto lane_bytes = [](const SsaValue& value) { return std::max(1u, ptx::byte_size(value.type)); };
    for (ValueId value : live) {
        const SsaValue& info = graph.values[value];
        RegionFrames::Place& where = frames.values[value];
        if (info.shape.level == Shape::Level::cta_uniform && lane_bytes(info) <= 8) {
            where.in_cta_frame = true;
            where.offset = frames.cta_slots++;
        } else if (info.shape.is_uniform() || info.shape.is_affine()) {
            where.offset = place(lane_bytes(info));
            if (info.shape.is_affine() && info.shape.steps) where.stride_offset = place(lane_bytes(info));
        } else {
            // Predicates are packed into a 64-bit mask.
            where.offset = place(info.type == ptx::ScalarType::pred ? 8 : lane_bytes(info) * width);
        }
    }
    for (ValueId guard : guards) {
        frames.guards[guard].holds = place(1);
        frames.guards[guard].correction = place(8 * width);
    }
    if (saves_mask) frames.mask_offset = place(8);
    frames.step_size = (offset + 63) / 64 * 64;
    return frames;
}

} // namespace ptarmigan::translator
