// SPDX-License-Identifier: Apache-2.0
// Our declarations of NVML's types, compared with NVIDIA's header where it is installed.
#include "runtime/nvml/nvml_types.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <type_traits>

#ifdef PTARMIGAN_NVML_H
namespace real {
#include <nvml.h>
}
#define SAME_SIZE(type) CHECK(sizeof(type) == sizeof(real::type))
#define SAME_PLACE(type, member) CHECK(offsetof(type, member) == offsetof(real::type, member))

TEST_CASE("nvml: types are those of nvml.h") {
    SAME_SIZE(nvmlPciInfo_t);
    SAME_PLACE(nvmlPciInfo_t, busId);
    SAME_PLACE(nvmlPciInfo_t, pciSubSystemId);
    SAME_SIZE(nvmlPciInfoExt_v1_t);
    SAME_PLACE(nvmlPciInfoExt_v1_t, busId);
    SAME_SIZE(nvmlMemory_t);
    SAME_PLACE(nvmlMemory_t, used);
    SAME_SIZE(nvmlMemory_v2_t);
    SAME_PLACE(nvmlMemory_v2_t, reserved);
    SAME_PLACE(nvmlMemory_v2_t, used);
    SAME_SIZE(nvmlProcessInfo_v1_t);
    SAME_SIZE(nvmlProcessInfo_v2_t);
    SAME_PLACE(nvmlProcessInfo_v2_t, computeInstanceId);
    SAME_SIZE(nvmlUtilization_t);
    SAME_SIZE(nvmlFieldValue_t);
    SAME_PLACE(nvmlFieldValue_t, nvmlReturn);
    SAME_PLACE(nvmlFieldValue_t, value);
    SAME_SIZE(nvmlGpuFabricInfo_t);
    SAME_SIZE(nvmlGpuFabricInfo_v2_t);
    SAME_SIZE(nvmlGpuFabricInfo_v3_t);
    SAME_PLACE(nvmlGpuFabricInfo_v3_t, healthSummary);
    SAME_SIZE(nvmlConfComputeSystemState_t);
    SAME_SIZE(nvmlConfComputeSystemCaps_t);
    SAME_SIZE(nvmlSystemConfComputeSettings_v1_t);
    SAME_SIZE(nvmlUUID_v1_t);
    SAME_SIZE(nvmlSystemDriverBranchInfo_v1_t);
}
#endif
