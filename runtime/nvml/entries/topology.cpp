// SPDX-License-Identifier: Apache-2.0
// Where devices lie: beside each other under one bridge, beside all CPUs of this process, with no links and no fabric.
#include "runtime/nvml/library_state.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace ptarmigan::nvml;
using ptarmigan::runtime::Device;

namespace {

constexpr int topology_internal = 0, topology_hostbridge = 30; // NVML_TOPOLOGY_*

/// Devices of one host: memory is one, so no bus is between them, and programs call that a host bridge.
int level_between(unsigned a, unsigned b) {
    return a == b ? topology_internal : topology_hostbridge;
}

/// The CPUs of this process as words of bits.
nvmlReturn_t give_cpus(unsigned size, unsigned long* set) {
    if (!set || size == 0) return invalid_argument;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    constexpr unsigned bits = 8 * sizeof(unsigned long);
    std::fill_n(set, size, 0ul);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &cpus)) continue;
        if (cpu / bits >= size) return insufficient_size;
        set[cpu / bits] |= 1ul << (cpu % bits);
    }
    return success;
}

template <class Body> nvmlReturn_t pair_entry(const char* name, nvmlDevice_t a, nvmlDevice_t b, Body&& body) {
    return device_entry(name, a, [&](Device&, unsigned first) -> nvmlReturn_t {
        unsigned second = 0;
        return index_of(b, second) ? body(first, second) : static_cast<nvmlReturn_t>(invalid_argument);
    });
}

template <class Info> nvmlReturn_t no_fabric(Info& info) {
    constexpr unsigned char state_not_supported = 0; // NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
    std::memset(info.clusterUuid, 0, sizeof info.clusterUuid);
    info.status = success;
    info.cliqueId = 0;
    info.state = state_not_supported;
    return success;
}

} // namespace

PTM_NVML nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, int* level) {
    return pair_entry(__func__, a, b,
                      [&](unsigned first, unsigned second) { return give(level, level_between(first, second)); });
}

PTM_NVML nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int* same) {
    return pair_entry(__func__, a, b, [&](unsigned first, unsigned second) { return give(same, first == second); });
}

PTM_NVML nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t handle, int level, unsigned* count, nvmlDevice_t* list) {
    return device_entry(__func__, handle, [&](Device&, unsigned index) -> nvmlReturn_t {
        if (!count || (*count != 0 && !list)) return invalid_argument;
        std::vector<nvmlDevice_t> found;
        for (unsigned i = 0; i < device_count(); ++i)
            if (i != index && level_between(index, i) == level) found.push_back(handle_of(i));
        const std::size_t room = *count;
        *count = static_cast<unsigned>(found.size());
        if (room != 0) std::copy_n(found.begin(), std::min(room, found.size()), list);
        return success;
    });
}

PTM_NVML nvmlSystemGetTopologyGpuSet(unsigned, unsigned* count, nvmlDevice_t* list) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!count || (*count != 0 && !list)) return invalid_argument;
        for (unsigned i = 0; i < std::min(*count, device_count()); ++i) list[i] = handle_of(i);
        *count = device_count();
        return success;
    });
}

PTM_NVML nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int capability, int* status) {
    return pair_entry(__func__, a, b, [&](unsigned first, unsigned second) -> nvmlReturn_t {
        constexpr int links = 2, last = 4;     // NVML_P2P_CAPS_INDEX_NVLINK, _PROP
        constexpr int ok = 0, unsupported = 5; // NVML_P2P_STATUS_*
        if (!status) return invalid_argument;
        if (capability < 0 || capability > last)
            return give(status, ok); // as NVIDIA's library says of what it does not know
        return give(status, first == second || capability == links ? unsupported : ok);
    });
}

PTM_NVML nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned size, unsigned long* set) {
    return device_entry(__func__, handle, [&](Device&, unsigned) { return give_cpus(size, set); });
}

PTM_NVML nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t handle, unsigned size, unsigned long* set, unsigned scope) {
    return device_entry(__func__, handle,
                        [&](Device&, unsigned) { return scope > 1 ? invalid_argument : give_cpus(size, set); });
}

PTM_NVML nvmlDeviceGetMemoryAffinity(nvmlDevice_t handle, unsigned size, unsigned long* set, unsigned scope) {
    return device_entry(__func__, handle, [&](Device&, unsigned) -> nvmlReturn_t {
        if (!set || size == 0 || scope > 1) return invalid_argument;
        std::fill_n(set, size, 0ul);
        set[0] = 1; // HOST_NUMA_ID, 134, is 0, too
        return success;
    });
}

PTM_NVML nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, nvmlGpuFabricInfo_t* info) {
    return device_entry(__func__, handle, [&](Device&, unsigned) {
        return info ? no_fabric(*info) : static_cast<nvmlReturn_t>(invalid_argument);
    });
}

PTM_NVML nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, nvmlGpuFabricInfo_v3_t* info) {
    return device_entry(__func__, handle, [&](Device&, unsigned) -> nvmlReturn_t {
        if (!info) return invalid_argument;
        if (info->version == structure_version<nvmlGpuFabricInfo_v2_t>(2)) {
            info->healthMask = 0;
            return no_fabric(*info);
        }
        if (info->version != structure_version<nvmlGpuFabricInfo_v3_t>(3)) return version_mismatch;
        info->healthMask = 0;
        info->healthSummary = 0;
        return no_fabric(*info);
    });
}

/// Each field has its own answer, and none of them is kept here: counters of hardware.
PTM_NVML nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t* values) {
    return device_entry(__func__, handle, [&](Device&, unsigned) -> nvmlReturn_t {
        if (!values || count <= 0) return invalid_argument;
        for (int i = 0; i < count; ++i) {
            values[i].timestamp = values[i].latencyUsec = 0;
            values[i].value = {};
            values[i].nvmlReturn = not_supported;
        }
        return success;
    });
}
