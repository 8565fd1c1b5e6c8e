// SPDX-License-Identifier: Apache-2.0
// The types of NVML's interface that are used here, under its names, so that building needs none of NVIDIA's headers.
// tests/nvml/types_test compares them with nvml.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlUnit_t = struct nvmlUnit_st*;
using nvmlEventSet_t = struct nvmlEventSet_st*;

struct nvmlPciInfo_t {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};
/// Of nvmlDeviceGetPciInfo (v1): without the last member.
struct nvmlPciInfo_v1_t {
    char busId[16];
    unsigned domain, bus, device, pciDeviceId;
};
/// Of nvmlDeviceGetPciInfo_v2.
struct nvmlPciInfo_v2_t {
    char busId[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    unsigned reserved[4];
};
struct nvmlPciInfoExt_v1_t {
    unsigned version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[32];
};
struct nvmlMemory_t {
    unsigned long long total, free, used;
};
struct nvmlMemory_v2_t {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct nvmlProcessInfo_v1_t {
    unsigned pid;
    unsigned long long usedGpuMemory;
};
/// Of versions 2 and 3 of the calls.
struct nvmlProcessInfo_v2_t {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlUtilization_t {
    unsigned gpu, memory;
};
union nvmlValue_t {
    double dVal;
    int siVal;
    unsigned uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
    unsigned short usVal;
};
struct nvmlFieldValue_t {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
};
struct nvmlGpuFabricInfo_t {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId;
    unsigned char state;
};
struct nvmlGpuFabricInfo_v2_t {
    unsigned version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId;
    unsigned char state;
    unsigned healthMask;
};
struct nvmlGpuFabricInfo_v3_t {
    unsigned version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId;
    unsigned char state;
    unsigned healthMask;
    unsigned char healthSummary;
};
struct nvmlConfComputeSystemState_t {
    unsigned environment, ccFeature, devToolsMode;
};
struct nvmlConfComputeSystemCaps_t {
    unsigned cpuCaps, gpusCaps;
};
struct nvmlSystemConfComputeSettings_v1_t {
    unsigned version, environment, ccFeature, devToolsMode, multiGpuMode;
};
struct nvmlUUID_v1_t {
    unsigned version, type;
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
};
struct nvmlSystemDriverBranchInfo_v1_t {
    unsigned version;
    char branch[80];
};

} // extern "C"

namespace ptarmigan::nvml {

/// The version word that begins a structure of several versions: its size, and the version in the highest byte.
template <class Structure> constexpr unsigned structure_version(unsigned version) {
    return static_cast<unsigned>(sizeof(Structure)) | version << 24;
}

} // namespace ptarmigan::nvml
