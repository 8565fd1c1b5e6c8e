// SPDX-License-Identifier: Apache-2.0
// Where the warps of a CTA have to wait for each other so that a word of shared memory is read by all before one writes
// it again, though no barrier stands between.
#pragma once

#include "translator/analysis/memory/shared_accesses.h"

namespace ptarmigan::translator {

/// In front of an instruction of a block; the number of instructions: at its end.
struct GraphPoint {
    BlockId block = no_block;
    std::size_t index = 0;
    auto operator<=>(const GraphPoint&) const = default;
};

struct RacePoints {
    std::vector<GraphPoint> points; ///< sorted
    std::size_t left = 0;           ///< reads on whose ways to writes that they likely meet there is no such point
};

enum class MeetingPoints : std::uint8_t {
    for_all,      ///< all threads of the CTA that have not exited come there together, as at a barrier
    for_anyone,   ///< anywhere
    where_likely, ///< anywhere, between accesses that likely meet only
};

/// Points that separate each read of shared memory behind a barrier from the writes that may follow before the next
/// one, if threads of different steps (of `width` lanes) may do so at the same place: a race that GPUs win, whose warps
/// come to the read at about the same time. Between what provably is apart (shared_accesses.h) and between what a
/// barrier separates on every way, there are none. Points outside loops are preferred. Needs shapes for `width` and
/// masks.
RacePoints race_points(const FunctionGraph& graph, const BlockShape& block, unsigned width, MeetingPoints where,
                       const CalledFunctions& called = {});

} // namespace ptarmigan::translator
