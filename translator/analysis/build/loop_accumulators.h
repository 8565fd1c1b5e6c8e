// SPDX-License-Identifier: Apache-2.0
// Accumulators that stay in the tensor core's layout over the rounds of a loop.
//
//   preheader: c = 0           header: p = phi(c, d)          a bank of the loop: one place in memory for each
//   loop:      d = p + A B ;   exit: r = phi(d)               accumulator, for p and d and what is between
//
// Where p is read by products only and d goes nowhere in the loop but to p, neither needs registers: c is packed into
// the place on the edge from the preheader, the loop's groups of products add to it, and d is unpacked on the exits.
#pragma once

#include "translator/analysis/build/product_groups.h"

#include <functional>
#include <unordered_map>

namespace ptarmigan::translator {

/// For steps of whole warps that execute masks. A loop has a bank if all lanes go round it together, and each of its
/// accumulators is passed on from the header's phis by one group after the other to the back edge. Its values are used
/// nowhere else, but for phis at exits: of the last group's result, and of the header's phis where the header leaves
/// before any of the groups. So a place holds one value at a time. Products that a part of a warp executes leave their
/// accumulators as they are, which is right for places, too. Needs loop-closed form and the shapes of the masks' form.
class LoopAccumulators {
public:
    struct Bank {
        std::uint32_t loop;
        ptx::MatrixForm form;                    ///< of one product
        bool pairs;                              ///< an accumulator is of two products side by side (ProductGroup)
        std::vector<std::vector<ValueId>> phis;  ///< of the header, by accumulator, in the order of its registers
        std::uint32_t offset, accumulator_bytes; ///< in the memory of all banks
    };
    /// Where a value is that has no registers.
    struct Place {
        std::uint32_t bank, accumulator, index;
    };
    /// A group that adds to a bank's accumulators, whose numbers are those of its chains, in order.
    struct Use {
        std::uint32_t bank;
        std::vector<std::uint8_t> accumulators;
    };

    LoopAccumulators() = default;
    /// Loops for whose header `refuses` is true have no bank: lanes may wait there for others.
    LoopAccumulators(const FunctionGraph& graph, const ProductGroups& groups,
                     const std::function<bool(BlockId)>& refuses);

    const std::vector<Bank>& banks() const { return banks_; }
    std::uint32_t bytes() const { return bytes_; } ///< of all banks together, a multiple of 64
    /// Null: the value has registers, as others do.
    const Place* place(ValueId value) const;
    /// Null: the group has its accumulators in registers.
    const Use* use(const ProductGroup& group) const;

private:
    std::vector<Bank> banks_;
    std::unordered_map<ValueId, Place> places_;
    std::unordered_map<const ProductGroup*, Use> uses_;
    std::uint32_t bytes_ = 0;
};

} // namespace ptarmigan::translator
