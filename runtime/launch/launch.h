// SPDX-License-Identifier: Apache-2.0
// cuLaunchKernel: checks, the parameter block, and the grid's way into a stream.
#pragma once

#include "runtime/base/status.h"
#include "runtime/context/green_context.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class Function;
class Kernel;
class Stream;
struct Grid;

/// What a launch asks for.
struct LaunchConfig {
    std::array<std::uint32_t, 3> grid{1, 1, 1};
    std::array<std::uint32_t, 3> block{1, 1, 1};
    std::array<std::uint32_t, 3> cluster{0, 0, 0}; ///< 0: not given
    bool has_cluster = false;                      ///< the cluster attribute was given
    std::uint32_t dynamic_shared = 0;
    bool cooperative = false;
    SmRange multiprocessors;              ///< where it runs; launch() takes it from the stream
    std::optional<int> priority;          ///< instead of the stream's
    const void* library_kernel = nullptr; ///< the CUkernel that named it: noted in captured graphs
    bool programmatic = false;            ///< need not wait for the end of a kernel before it: noted in captured graphs
};

/// Launches `function` on `stream`: exactly one of `parameters` (a pointer per parameter) and
/// `extra` (CU_LAUNCH_PARAM_* list) may be given; parameters are copied before it returns. All
/// launch errors are synchronous and not sticky (invalid_value, launch_out_of_resources,
/// invalid_cluster_size, cooperative_launch_too_large, not_supported, invalid_ptx); a fault of the
/// kernel shows at a later call.
Status launch(Function& function, const LaunchConfig& config, Stream& stream, void* const* parameters,
              void* const* extra);

/// The grid that launch() would submit, with all its checks.
Status make_grid(Function& function, const LaunchConfig& config, Context& context, void* const* parameters,
                 void* const* extra, std::shared_ptr<Grid>& grid);
/// For a grid that has been run and is to run again with the same parameters: true if it is as made, with a number of
/// its own; false if it has to be made again, because it ended with a fault or launched others, somebody still holds
/// it, or there is better code now.
bool renew_grid(const std::shared_ptr<Grid>& grid);
/// The parameter block of a launch in the kernel's layout; invalid_value as launch().
Status pack_launch_parameters(const Kernel& kernel, void* const* parameters, void* const* extra,
                              std::vector<std::uint8_t>& block);
/// The checks of a configuration that need no code: what a launch returns for them.
Status check_launch(Kernel& kernel, const LaunchConfig& config);

} // namespace ptarmigan::runtime
