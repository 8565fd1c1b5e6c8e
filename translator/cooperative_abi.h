// SPDX-License-Identifier: Apache-2.0
// What generated code finds behind the LaunchContext of a launch: where a cooperative grid's threads synchronise.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::abi {

/// The runtime hands out a LaunchContext that is the base of this.
struct CooperativeLaunch : LaunchContext {
    /// Address of the workspace, which %envreg1 (high word) and %envreg2 give: cooperative_groups counts grid.sync() in it. 0 unless
    /// the launch is cooperative.
    std::uint64_t grid_workspace = 0;
};
inline constexpr std::size_t grid_workspace_offset = sizeof(LaunchContext);
static_assert(sizeof(CooperativeLaunch) == grid_workspace_offset + sizeof(std::uint64_t));

/// Where CompileOptions::deterministic_yield finds the seed of the order of lanes: written for each CTA.
inline constexpr std::size_t schedule_seed_offset = offsetof(CtaContext, schedule_seed);

} // namespace ptarmigan::abi
