// SPDX-License-Identifier: Apache-2.0
// Memory, processes and utilisation.
#include "runtime/nvml/library_state.h"
#include "runtime/nvml/use_history.h"

#include <algorithm>

using namespace ptarmigan::nvml;
using ptarmigan::runtime::Device;

namespace {

struct MemoryUse {
    std::uint64_t total, used, free;
};

MemoryUse memory_of(const Device& device, unsigned index) {
    const std::uint64_t total = device.total_memory(), used = std::min<std::uint64_t>(memory_used(index), total);
    return {total, used, total - used};
}

void describe(const DeviceUser& user, nvmlProcessInfo_v1_t& info) {
    info = {user.process, user.memory};
}

void describe(const DeviceUser& user, nvmlProcessInfo_v2_t& info) {
    constexpr unsigned no_instance = 0xffffffff;
    info = {user.process, user.memory, no_instance, no_instance};
}

template <class Info> nvmlReturn_t list_processes(const std::vector<DeviceUser>& users, unsigned* count, Info* list) {
    if (!count) return invalid_argument;
    const unsigned room = *count;
    *count = static_cast<unsigned>(users.size());
    if (users.size() > room) return insufficient_size;
    if (!users.empty() && !list) return invalid_argument;
    for (std::size_t i = 0; i < users.size(); ++i) describe(users[i], list[i]);
    return success;
}

template <class Info> nvmlReturn_t computing(const char* name, nvmlDevice_t handle, unsigned* count, Info* list) {
    return device_entry(name, handle,
                        [&](Device&, unsigned index) { return list_processes(users_of(index), count, list); });
}

/// Nobody draws, and there is no MPS.
template <class Info> nvmlReturn_t nobody(const char* name, nvmlDevice_t handle, unsigned* count, Info* list) {
    return device_entry(name, handle, [&](Device&, unsigned) { return list_processes({}, count, list); });
}

} // namespace

PTM_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t* memory) {
    return device_entry(__func__, handle, [&](Device& device, unsigned index) -> nvmlReturn_t {
        if (!memory) return invalid_argument;
        const MemoryUse use = memory_of(device, index);
        *memory = {use.total, use.free, use.used};
        return success;
    });
}

PTM_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t* memory) {
    return device_entry(__func__, handle, [&](Device& device, unsigned index) -> nvmlReturn_t {
        if (!memory) return invalid_argument;
        if (memory->version != structure_version<nvmlMemory_v2_t>(2))
            return function_not_found; // of an older kind than others
        const MemoryUse use = memory_of(device, index);
        *memory = {memory->version, use.total, 0, use.free, use.used};
        return success;
    });
}

PTM_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t* utilization) {
    return device_entry(__func__, handle, [&](Device&, unsigned index) -> nvmlReturn_t {
        if (!utilization) return invalid_argument;
        *utilization = {busy_percent(index), 0}; // nobody counts accesses of memory
        return success;
    });
}

PTM_NVML nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* list) {
    return computing(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* list) {
    return computing(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* list) {
    return computing(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* list) {
    return nobody(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* list) {
    return nobody(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* list) {
    return nobody(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* list) {
    return nobody(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* list) {
    return nobody(__func__, device, count, list);
}

PTM_NVML nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* list) {
    return nobody(__func__, device, count, list);
}
