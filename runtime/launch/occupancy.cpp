// SPDX-License-Identifier: Apache-2.0
// The occupancy formula: CTAs, warps, registers and shared memory per multiprocessor, recorded of compute capability
// 9.0; other capabilities put other limits into it.
#include "runtime/launch/occupancy.h"

#include "runtime/context/green_context.h"
#include "runtime/device/device.h"
#include "runtime/device/device_profile.h"
#include "runtime/module/module_source.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

constexpr int max_block = 1024, warp = 32;

std::size_t as_size(int limit) {
    return static_cast<std::size_t>(limit);
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

Status input_of(Kernel& kernel, OccupancyInput& input) {
    const KernelFacts* facts = nullptr;
    if (const Status status = kernel.facts(facts); status != Status::success) return status;
    input = {facts->registers, facts->static_shared, kernel.max_dynamic_shared(*facts)};
    return Status::success;
}

} // namespace

int resident_ctas(const OccupancyInput& kernel, int block_size, std::size_t dynamic_shared) {
    if (block_size > max_block || dynamic_shared > kernel.max_dynamic_shared) return 0;
    const CapabilityLimits& limits = device_limits();
    const int warps = (block_size + warp - 1) / warp;
    int ctas = std::min(limits.ctas, limits.threads / warp / warps);
    if (kernel.registers > 0) {
        // Four schedulers with 16384 registers each; a warp takes its registers in units of 256.
        const std::size_t per_warp = round_up(std::size_t{32} * kernel.registers, 256);
        ctas = std::min(ctas, static_cast<int>(16384 / per_warp * 4) / warps);
    }
    const std::size_t shared =
        round_up(kernel.static_shared + dynamic_shared + as_size(limits.shared_reserved), as_size(limits.shared_unit));
    return shared == 0 ? ctas : std::min(ctas, static_cast<int>(as_size(limits.shared) / shared));
}

Status occupancy_blocks(Kernel& kernel, int block_size, std::size_t dynamic_shared, int& blocks) {
    if (block_size <= 0) return Status::invalid_value;
    OccupancyInput input;
    if (const Status status = input_of(kernel, input); status != Status::success) return status;
    blocks = resident_ctas(input, block_size, dynamic_shared);
    return Status::success;
}

Status occupancy_block_size(Kernel& kernel, std::size_t (*dynamic_shared_of)(int), std::size_t dynamic_shared,
                            int block_size_limit, int& min_grid, int& block_size) {
    OccupancyInput input;
    if (const Status status = input_of(kernel, input); status != Status::success) return status;
    const KernelFacts* facts = nullptr;
    if (const Status status = kernel.facts(facts); status != Status::success) return status;
    int limit = std::min(max_block, static_cast<int>(facts->max_threads));
    if (block_size_limit > 0) limit = std::min(limit, block_size_limit);
    int best_threads = 0, best_size = 0, best_ctas = 0;
    for (int size = static_cast<int>(round_up(static_cast<std::size_t>(limit), warp)); size > 0; size -= warp) {
        const int candidate = std::min(size, limit);
        const std::size_t shared = dynamic_shared_of ? dynamic_shared_of(candidate) : dynamic_shared;
        const int ctas = resident_ctas(input, candidate, shared);
        if (ctas * candidate <= best_threads) continue;
        best_threads = ctas * candidate;
        best_size = candidate;
        best_ctas = ctas;
    }
    block_size = best_size;
    const std::shared_ptr<GreenContext> green = current_green_context(); // of which alone it is asked then
    min_grid = best_ctas * static_cast<int>(green ? green->range().count : Device::get().multiprocessors());
    return Status::success;
}

Status occupancy_dynamic_shared(Kernel& kernel, int blocks, int block_size, std::size_t& bytes) {
    if (blocks <= 0 || block_size <= 0 || block_size > max_block) return Status::invalid_value;
    OccupancyInput input;
    if (const Status status = input_of(kernel, input); status != Status::success) return status;
    bytes = 0;
    if (resident_ctas(input, block_size, 0) < blocks) return Status::success;
    const CapabilityLimits& limits = device_limits();
    const std::size_t unit = as_size(limits.shared_unit), optin = as_size(limits.shared_optin);
    const std::size_t per_cta = as_size(limits.shared) / static_cast<std::size_t>(blocks) / unit * unit;
    const std::size_t used = as_size(limits.shared_reserved) + input.static_shared;
    // "Cap computed dynamic SM by user requested limit specified via cuFuncSetAttribute()" (cuda_occupancy.h).
    if (per_cta > used) bytes = std::min({per_cta - used, optin - input.static_shared, input.max_dynamic_shared});
    return Status::success;
}

int resident_clusters(unsigned multiprocessors, int per_multiprocessor, std::uint64_t size) {
    const auto ctas = static_cast<unsigned>(std::min(per_multiprocessor, 8));
    std::uint64_t clusters = 0;
    for (const unsigned members : multiprocessor_groups(multiprocessors))
        if (members >= size) clusters += std::uint64_t{members} * ctas / size;
    return static_cast<int>(clusters);
}

Status occupancy_clusters(Kernel* kernel, std::array<std::uint32_t, 3> cluster, int block_size,
                          std::size_t dynamic_shared, int& clusters) {
    const std::uint64_t size = std::uint64_t{cluster[0]} * cluster[1] * cluster[2];
    if (size == 0 || (size > 8 && !(kernel && kernel->non_portable_cluster()))) return Status::invalid_cluster_size;
    if (block_size <= 0) return Status::invalid_value;
    OccupancyInput input{0, 0, as_size(device_limits().shared_optin)};
    if (kernel)
        if (const Status status = input_of(*kernel, input); status != Status::success) return status;
    const int per_sm = resident_ctas(input, block_size, dynamic_shared);
    clusters = resident_clusters(Device::get().multiprocessors(), per_sm, size);
    if (per_sm > 0 && size <= 16) clusters = std::max(clusters, 1);
    return Status::success;
}

} // namespace ptarmigan::runtime
