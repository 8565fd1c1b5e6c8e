// SPDX-License-Identifier: Apache-2.0
// What regions between barriers hand on to each other: loaded where one begins, saved where it ends or stops.
#pragma once

#include "translator/emit/graph_emitter.h"
#include "translator/emit/known_in_steps.h"
#include "translator/emit/region_frames.h"

#include <vector>

namespace ptarmigan::translator {

class RegionValues {
public:
    RegionValues(const FunctionGraph& graph, const RegionFrames& frames, KnownInSteps& known);

    /// From the step's frame, or that of the CTA.
    void load(GraphEmitter& emitter, ValueId id, llvm::Value* frame, llvm::Value* cta_in);
    /// As it is at the end of block `barrier`.
    void save(GraphEmitter& emitter, ValueId id, BlockId barrier, llvm::Value* frame, llvm::Value* cta_out) const;
    /// The bits of NaNs are settled when the value is loaded again: sums that only grow are then never looked at.
    bool saved_with_any_nan(ValueId id) const;

private:
    LaneValue looked_up(GraphEmitter& emitter, ValueId id, llvm::GlobalVariable* masks) const;

    const FunctionGraph& graph_;
    const RegionFrames& frames_;
    KnownInSteps& known_;
    std::vector<bool> canonical_nans_; ///< by value
};

} // namespace ptarmigan::translator
