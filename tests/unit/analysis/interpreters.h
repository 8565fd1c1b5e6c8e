// SPDX-License-Identifier: Apache-2.0
// Two ways to run a kernel of integer forms: thread by thread on the bound body, and step by step on the graph, obeying
// shapes, linearization plan and barrier regions as generated code does. Their stores must be the same.
#pragma once

#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/graph/linear_plan.h"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptarmigan::test {

/// Stores of one thread: (offset from the base register's value, value), in order.
using StoreLog = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

struct Launch {
    std::array<std::uint32_t, 3> ntid{32, 1, 1};
    std::array<std::uint64_t, 5> parameters{}; ///< by index of the entry's parameter
    std::uint32_t threads() const { return ntid[0] * ntid[1] * ntid[2]; }
};

/// Raised when the plan or a shape claims something that does not hold.
struct Violation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::vector<StoreLog> run_threads(const ptx::Module& module, const ptx::Body& body, const Launch& launch);

/// Runs all steps of a CTA, one after the other (region after region if `barriers` splits). Needs shapes for `width`.
std::vector<StoreLog> run_steps(const translator::FunctionGraph& graph, const translator::BarrierPlan& barriers,
                                const Launch& launch, unsigned width);

} // namespace ptarmigan::test
