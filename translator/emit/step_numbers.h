// SPDX-License-Identifier: Apache-2.0
// What each thread's number in the block says alone: indices into tiles, their addresses in shared memory. Such values
// need no place in the step's frame; behind a barrier they are a constant, or computed from the step's number, so that
// what all steps have in common is seen to be so.
#pragma once

#include "translator/analysis/arithmetic/thread_bits.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// Lane 0's value in step s: first + s * per_step.
struct StepNumber {
    std::uint64_t first = 0, per_step = 0;
};

class StepNumbers {
public:
    StepNumbers(const FunctionGraph& graph, const BlockShape& block, unsigned width);
    /// Of a uniform or affine value of up to 64 bits; none if it is not known.
    std::optional<StepNumber> of(ValueId value);
    /// Of a predicate: the lanes of each step in which it holds, lane 0 the lowest bit; none if that is not known.
    std::optional<std::vector<std::uint64_t>> masks_of(ValueId value);

private:
    const FunctionGraph& graph_;
    const unsigned width_;
    ThreadBitsTable bits_;
    std::vector<const GraphInstruction*> definitions_;
};

} // namespace ptarmigan::translator
