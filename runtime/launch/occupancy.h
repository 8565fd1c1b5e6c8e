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
int resident_ctas(const OccupancyInput& kernel, int block_size, std::size_t dynamic_shared);

/// cuOccupancyMaxActiveBlocksPerMultiprocessor.
Status occupancy_blocks(Kernel& kernel, int block_size, std::size_t dynamic_shared, int& blocks);
/// cuOccupancyMaxPotentialBlockSize: `dynamic_shared_of` may be null (then `dynamic_shared` for all
/// sizes).
Status occupancy_block_size(Kernel& kernel, std::size_t (*dynamic_shared_of)(int), std::size_t dynamic_shared,
                            int block_size_limit, int& min_grid, int& block_size);
/// cuOccupancyAvailableDynamicSMemPerBlock.
Status occupancy_dynamic_shared(Kernel& kernel, int blocks, int block_size, std::size_t& bytes);
/// Clusters of `size` CTAs that `multiprocessors` hold at a time, `per_multiprocessor` CTAs on each
/// (8 of them count at most): a cluster stays within a group of multiprocessors that has at least as
/// many as the cluster has CTAs. The groups are those of the GPU of 132 that was recorded
/// (tests/recordings/synchronization/cluster_occupancy), else of 16 each and a rest.
int resident_clusters(unsigned multiprocessors, int per_multiprocessor, std::uint64_t size);
/// cuOccupancyMaxActiveClusters: sizes above 8 want a kernel that allows non-portable ones. At least
/// one cluster where its CTAs fit at all, because one worker takes all of them. Null: of a kernel that needs nothing.
Status occupancy_clusters(Kernel* kernel, std::array<std::uint32_t, 3> cluster, int block_size,
                          std::size_t dynamic_shared, int& clusters);

} // namespace ptarmigan::runtime
