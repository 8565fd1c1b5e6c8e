// SPDX-License-Identifier: Apache-2.0
// Occupancy as the NVIDIA driver computes it for compute capability 9.0 (formula checked against
// 3,432 recorded points).
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

class Kernel;

/// What the formula needs to know of a kernel.
struct OccupancyInput {
    unsigned registers = 0;
    std::size_t static_shared = 0;
    std::size_t max_dynamic_shared = 0;
};
/// Resident CTAs per multiprocessor; 0 if it can't run.
int resident_ctas(const OccupancyInput &kernel, int block_size, std::size_t dynamic_shared);

/// cuOccupancyMaxActiveBlocksPerMultiprocessor.
Status occupancy_blocks(Kernel &kernel, int block_size, std::size_t dynamic_shared, int &blocks);
/// cuOccupancyMaxPotentialBlockSize: `dynamic_shared_of` may be null (then `dynamic_shared` for all
/// sizes).
Status occupancy_block_size(Kernel &kernel, std::size_t (*dynamic_shared_of)(int),
                            std::size_t dynamic_shared, int block_size_limit, int &min_grid,
                            int &block_size);
/// cuOccupancyAvailableDynamicSMemPerBlock.
Status occupancy_dynamic_shared(Kernel &kernel, int blocks, int block_size, std::size_t &bytes);
/// cuOccupancyMaxActiveClusters: 0 clusters fit of sizes above 8 (16 when non-portable sizes are
/// allowed).
Status occupancy_clusters(Kernel &kernel, std::array<std::uint32_t, 3> cluster, int block_size,
                          std::size_t dynamic_shared, int &clusters);

} // namespace ptarmigan::runtime
