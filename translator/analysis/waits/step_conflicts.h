// SPDX-License-Identifier: Apache-2.0
// In which order of a CTA's steps two accesses come to one place the wrong way round.
#pragma once

#include "translator/analysis/waits/step_accesses.h"

namespace ptarmigan::translator {

/// A set of orders of the steps.
enum class StepConflict : unsigned { none = 0, if_rising = 1, if_falling = 2, both = 3 };
constexpr StepConflict operator|(StepConflict a, StepConflict b) {
    return StepConflict(unsigned(a) | unsigned(b));
}

/// Of what is in shared memory and what is in global memory, none.
bool may_meet(const StepAccess& a, const StepAccess& b);

/// Where `second` comes behind `first` in each thread. Both have addresses, in which what all threads have in common is
/// the same.
StepConflict find_conflict(const StepAccess& first, const StepAccess& second, unsigned width);

} // namespace ptarmigan::translator
