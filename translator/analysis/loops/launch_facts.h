// SPDX-License-Identifier: Apache-2.0
// What only a launch knows and most launches have in common. Strides that are parameters are nearly always those of
// neighbouring elements in the last dimension, and loops that go on by the size of the grid end in their first round,
// since programs start a thread for each element.
#pragma once

#include "translator/analysis/shapes/lane_tests.h"

#include <unordered_map>

namespace ptarmigan::translator {

struct LaunchFacts {
    /// A parameter that is `number`: lanes of an access by it are neighbours then.
    struct Stride {
        ptx::Operand parameter; ///< the address
        ptx::ScalarType type = ptx::ScalarType::none;
        std::uint64_t number = 0;
    };
    std::vector<Stride> strides;
    /// Results that are the same for all threads: quotients by the grid's size, which are 0, and comparisons by which
    /// loops end.
    std::unordered_map<ValueId, std::uint64_t> rounds;
    std::unordered_map<ValueId, ValueId> firsts; ///< what phis are in a loop's first round
    explicit operator bool() const { return !strides.empty() || !rounds.empty(); }
};

/// Of loops that go on by the size of the grid. `spans`: cta_spans(), none if a CTA is one step.
void find_single_rounds(const FunctionGraph& graph, const CtaSpans& spans, LaunchFacts& facts);
/// There may be some of the others: what differs between lanes is multiplied by what only the launch knows.
bool multiplies_by_numbers_of_launch(const FunctionGraph& graph);
/// Of accesses by strides that are parameters. In versions of the kernel whose lanes agree they are seen.
void find_near_strides(const FunctionGraph& graph, LaunchFacts& facts);

/// The number that the load of a parameter gives; null if it is none of the strides.
const std::uint64_t* stride_of(const FunctionGraph& graph, const LaunchFacts& facts, const ptx::Instruction& inst);

/// Makes `graph`, of which `facts` were found, code for launches that have them. Shapes are to be computed then.
void assume_facts(FunctionGraph& graph, const LaunchFacts& facts, const BlockShape& block);

} // namespace ptarmigan::translator
