// SPDX-License-Identifier: Apache-2.0
// How far a value moves from one round of its loop to the next.
#pragma once

#include "translator/analysis/arithmetic/linear_sums.h"

namespace ptarmigan::translator {

class LoopStrides {
public:
    explicit LoopStrides(const FunctionGraph& graph) : graph_(graph), sums_(graph) {}

    /// What `value` gains by a round of `loop`; none if that is not a constant that is seen to be one. As linear_sums.h
    /// says, for hints only.
    std::optional<std::int64_t> of(ValueId value, std::uint32_t loop) const;
    /// The same as a sum over values that `loop` leaves alone; none if it is no such sum. Products of what moves with
    /// one of these values are looked through.
    std::optional<LinearSum> gain_of(ValueId value, std::uint32_t loop) const;
    /// Of a sum over the header's phis and values that `loop` leaves alone.
    std::optional<LinearSum> gain_of(const LinearSum& sum, std::uint32_t loop) const;
    /// True if `value` is computed from something that `loop` loads in the same round.
    bool depends_on_load(ValueId value, std::uint32_t loop) const;
    const LinearSums& sums() const { return sums_; }

private:
    std::optional<LinearSum> gain_through_products(ValueId value, std::uint32_t loop, unsigned& steps_left) const;

    const FunctionGraph& graph_;
    const LinearSums sums_;
};

} // namespace ptarmigan::translator
