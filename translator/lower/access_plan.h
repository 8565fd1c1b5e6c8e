// SPDX-License-Identifier: Apache-2.0
// How the lanes of a step reach memory when their addresses differ by compile-time constants: as a few loads or
// stores of consecutive elements ("chunks") instead of one access per lane. Pure arithmetic, no LLVM.
#pragma once

#include "translator/analysis/graph/shape.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptarmigan::translator::lower {

/// What a warp-wide access touches: `count` elements of `element_bytes` per lane, lane l starting at
/// base + offsets[l] + stride * steps[l].
struct AccessPattern {
    const LaneOffsets* offsets = nullptr;
    const LaneOffsets* steps = nullptr; ///< null: no run-time stride
    unsigned element_bytes = 4;
    unsigned count = 1;
    unsigned native_bytes = 64; ///< widest vector register of the target
    bool masks_gaps = false;    ///< a store of a register can leave out elements at no cost
};

struct AccessPlan {
    /// `length` consecutive elements from base + offset + stride * step.
    struct Chunk {
        std::int64_t offset = 0;
        std::int64_t step = 0;
        unsigned length = 0;
    };
    struct Place {
        unsigned chunk = 0, element = 0;
    };
    static constexpr unsigned no_lane = 0xffffffffu;

    std::vector<Chunk> chunks;
    /// By lane * count + component: where the element is.
    std::vector<Place> places;
    /// By chunk and element: lane * count + component that it belongs to (the highest lane where several share it),
    /// no_lane in a gap.
    std::vector<std::vector<unsigned>> owners;
    /// No element belongs to two lanes, so a mask over lanes is a mask over elements.
    bool exclusive = true;
    /// No chunk has a gap: stores may write whole chunks.
    bool gapless = true;
};

/// Chunks for a load. Gaps of up to three elements are read over: both ends of a gap are accessed and it is shorter
/// than a page, so it cannot fault if all lanes are active. None when single accesses are as good.
std::optional<AccessPlan> plan_load(const AccessPattern& pattern);
/// Chunks for a store: gapless, or with gaps of up to three elements where the target can leave them out.
std::optional<AccessPlan> plan_store(const AccessPattern& pattern);

} // namespace ptarmigan::translator::lower
