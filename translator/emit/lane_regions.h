// SPDX-License-Identifier: Apache-2.0
// Regions between barriers that run lane by lane in a kernel whose other regions are wide steps: loops in which each
// lane walks through shared memory by itself. Words that are loaded and stored one by one are faster than gathers and
// scatters under masks of a few lanes; what other regions do is faster wide.
#pragma once

#include "translator/analysis/graph/linear_plan.h"
#include "translator/emit/region_frames.h"
#include "translator/emit/step_numbers.h"
#include "translator/emit/warp_emitter.h"

#include <llvm/IR/GlobalVariable.h>

#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// By region of `barriers`: worth it, and nobody can see it. Needs the shapes of wide steps.
std::vector<bool> choose_lane_regions(const FunctionGraph& graph, const BlockShape& block, const BarrierPlan& barriers);

/// What a wide step keeps for a region: the first that is there of a number, masks of all steps, a place in a frame.
struct KeptValue {
    const Shape& shape;
    llvm::Type* scalar;
    std::optional<StepNumber> number;
    llvm::GlobalVariable* masks;
    const RegionFrames::Place* place;
};

/// What a lane has of that, in a function whose step is the lane's thread.
class StepLanes {
public:
    StepLanes(Ir& ir, unsigned width, llvm::Value* thread, llvm::Value* frame, llvm::Value* cta_in);
    /// Null: nothing is kept.
    llvm::Value* own(const KeptValue& value) const;

private:
    llvm::Value* own_bit(const Shape& shape, llvm::Value* word) const;
    llvm::Value* behind_first(llvm::Value* first, const Shape& shape) const;

    Ir& ir_;
    const unsigned width_;
    llvm::Value *frame_, *cta_in_, *step_, *lane_;
};

/// Calls the function of a region, whose arguments for the step are given, for one lane of it after the other, and
/// notes whose turn it is. All come to the same barrier.
llvm::Value* run_lanes(Ir& ir, unsigned width, llvm::Function* region, llvm::ArrayRef<llvm::Value*> of_step);

} // namespace ptarmigan::translator
