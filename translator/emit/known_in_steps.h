// SPDX-License-Identifier: Apache-2.0
// Values that the step's number tells, as regions ask for them behind barriers.
#pragma once

#include "translator/emit/kernel_unit.h"
#include "translator/emit/step_numbers.h"

#include <llvm/IR/GlobalVariable.h>

#include <map>
#include <optional>

namespace ptarmigan::translator {

/// What StepNumbers says, found out once for each value. Nothing of steps of one lane.
class KnownInSteps {
public:
    KnownInSteps(KernelUnit& unit, const FunctionGraph& graph) : unit_(unit), numbers_(graph, unit.shape, unit.width) {}

    const std::optional<StepNumber>& number(ValueId id);
    /// A constant with the masks of all steps, by step, of a predicate that is known; null if it is not.
    llvm::GlobalVariable* masks(ValueId id);

private:
    KernelUnit& unit_;
    StepNumbers numbers_;
    std::map<ValueId, std::optional<StepNumber>> known_numbers_;
    std::map<ValueId, llvm::GlobalVariable*> known_masks_; ///< null: not known
};

} // namespace ptarmigan::translator
