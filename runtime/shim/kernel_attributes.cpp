// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/kernel_attributes.h"

#include "runtime/context/context.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::shim {

namespace {

bool is_kernel_attribute(unsigned id) {
    switch (id) {
    case launch_access_policy_window:
    case launch_cooperative:
    case launch_cluster_dimension:
    case launch_cluster_scheduling:
    case launch_priority:
    case launch_mem_sync_domain_map:
    case launch_mem_sync_domain:
    case launch_updatable_node:
    case launch_shared_carveout: return true;
    default: return false;
    }
}

/// What the driver refuses, and what it makes of values that are out of range.
Status settle(const runtime::KernelWork& work, unsigned id, CUlaunchAttributeValue& value) {
    constexpr int most_percent = 100, last_domain = 1;
    switch (id) {
    case launch_access_policy_window:
        return value.accessPolicyWindow.hitRatio >= 0 && value.accessPolicyWindow.hitRatio <= 1 ? Status::success
                                                                                                : Status::invalid_value;
    case launch_priority: {
        int least = 0, greatest = 0;
        runtime::Context::stream_priority_range(least, greatest);
        value.priority = std::clamp(value.priority, greatest, least);
        return Status::success;
    }
    case launch_cluster_dimension: {
        const auto extents = value.clusterDim;
        if (extents.x == 0 && extents.y == 0 && extents.z == 0) return Status::success;
        const auto& grid = work.config.grid;
        const bool divides = extents.x && extents.y && extents.z && grid[0] % extents.x == 0 &&
                             grid[1] % extents.y == 0 && grid[2] % extents.z == 0;
        return divides ? Status::success : Status::invalid_cluster_size;
    }
    case launch_mem_sync_domain:
        return value.memSyncDomain >= 0 && value.memSyncDomain <= last_domain ? Status::success : Status::invalid_value;
    case launch_shared_carveout:
        return value.cooperative >= -1 && value.cooperative <= most_percent ? Status::success : Status::invalid_value;
    case launch_updatable_node: return value.cooperative ? Status::not_supported : Status::invalid_value;
    default: return Status::success;
    }
}

} // namespace

Status get_attribute(const runtime::KernelWork& work, unsigned id, CUlaunchAttributeValue& value) {
    if (!is_kernel_attribute(id)) return Status::invalid_value;
    value = {};
    if (id == launch_mem_sync_domain_map) value.memSyncDomainMap = {0, 1};
    if (const auto found = work.attributes.find(id); found != work.attributes.end())
        std::memcpy(&value, found->second.data(), sizeof value);
    return Status::success;
}

Status set_attribute(runtime::KernelWork& work, unsigned id, const CUlaunchAttributeValue& given) {
    if (!is_kernel_attribute(id)) return Status::invalid_value;
    CUlaunchAttributeValue value = given;
    if (const Status status = settle(work, id, value); status != Status::success) return status;
    std::memcpy(work.attributes[id].data(), &value, sizeof value);
    apply_attributes(work);
    return Status::success;
}

void apply_attributes(runtime::KernelWork& work) {
    if (const auto found = work.attributes.find(launch_cooperative); found != work.attributes.end())
        work.config.cooperative = static_cast<std::uint32_t>(found->second[0]) != 0;
    const auto cluster = work.attributes.find(launch_cluster_dimension);
    if (cluster == work.attributes.end()) return;
    CUlaunchAttributeValue value{};
    std::memcpy(&value, cluster->second.data(), sizeof value);
    work.config.has_cluster = value.clusterDim.x != 0;
    work.config.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
}

} // namespace ptarmigan::shim
