// SPDX-License-Identifier: Apache-2.0
// What a device is, from the model that libcuda.so.1 answers from.
#include "runtime/nvml/library_state.h"

using namespace ptarmigan::nvml;
using ptarmigan::runtime::Device;

namespace {

/// CUdevice_attribute numbers.
constexpr int clock_rate = 13, memory_clock_rate = 36, memory_bus_width = 37;

int attribute(const Device& device, int id) {
    return device.attribute(id).value_or(0);
}

/// NVML_DEVICE_ARCH_*.
unsigned architecture_of(unsigned compute_capability) {
    constexpr struct {
        unsigned from, architecture;
    } table[] = {{120, 10}, {110, 10}, {100, 10}, {90, 9}, {89, 8}, {80, 7},
                 {75, 6},   {70, 5},   {60, 4},   {50, 3}, {30, 2}};
    for (const auto& [from, architecture] : table)
        if (compute_capability >= from) return architecture;
    return 0xffffffff; // NVML_DEVICE_ARCH_UNKNOWN
}

/// Units for single precision in a multiprocessor, as the CUDA programming guide counts cores.
unsigned cores_of(unsigned compute_capability) {
    switch (compute_capability) {
    case 60:
    case 70:
    case 72:
    case 75:
    case 80: return 64;
    default: return 128;
    }
}

/// An entry that says one number of every device.
template <class Number> nvmlReturn_t constant(const char* name, nvmlDevice_t handle, Number* place, long long value) {
    return device_entry(name, handle, [&](Device&, unsigned) { return give(place, value); });
}

} // namespace

PTM_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int* major, int* minor) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) -> nvmlReturn_t {
        if (!major || !minor) return invalid_argument;
        *major = static_cast<int>(device.compute_capability() / 10);
        *minor = static_cast<int>(device.compute_capability() % 10);
        return success;
    });
}

PTM_NVML nvmlDeviceGetArchitecture(nvmlDevice_t handle, unsigned* architecture) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) {
        return give(architecture, architecture_of(device.compute_capability()));
    });
}

PTM_NVML nvmlDeviceGetBrand(nvmlDevice_t handle, int* brand) {
    constexpr int nvidia = 14, geforce = 5; // NVML_BRAND_NVIDIA, NVML_BRAND_GEFORCE
    return device_entry(__func__, handle, [&](Device& device, unsigned) {
        return give(brand, device.name().find("GeForce") == std::string::npos ? nvidia : geforce);
    });
}

PTM_NVML nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned* cores) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) {
        return give(cores, cores_of(device.compute_capability()) * device.multiprocessors());
    });
}

PTM_NVML nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned* width) {
    return device_entry(__func__, handle,
                        [&](Device& device, unsigned) { return give(width, attribute(device, memory_bus_width)); });
}

PTM_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, int type, unsigned* mhz) {
    constexpr int graphics = 0, memory = 2; // NVML_CLOCK_*
    return device_entry(__func__, handle, [&](Device& device, unsigned) -> nvmlReturn_t {
        constexpr int khz_per_mhz = 1000, video = 3;
        if (!mhz || type < graphics || type > video) return invalid_argument;
        if (type == video) return not_supported;
        return give(mhz, attribute(device, type == memory ? memory_clock_rate : clock_rate) / khz_per_mhz);
    });
}

PTM_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, int* mode) {
    return constant(__func__, device, mode, 0); // shared by all processes
}

/// The model of the device stays whether anybody uses it or not.
PTM_NVML nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int* mode) {
    return constant(__func__, device, mode, 1);
}

PTM_NVML nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned* fans) {
    return constant(__func__, device, fans, 0);
}

PTM_NVML nvmlDeviceGetDisplayMode(nvmlDevice_t device, int* display) {
    return constant(__func__, device, display, 0);
}

PTM_NVML nvmlDeviceGetDisplayActive(nvmlDevice_t device, int* active) {
    return constant(__func__, device, active, 0);
}

PTM_NVML nvmlDeviceGetAccountingMode(nvmlDevice_t device, int* mode) {
    return constant(__func__, device, mode, 0);
}

PTM_NVML nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, int* mode) {
    return constant(__func__, device, mode, 0);
}

PTM_NVML nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* is_instance) {
    return constant(__func__, device, is_instance, 0);
}

PTM_NVML nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
    return constant(__func__, device, count, 0);
}

PTM_NVML nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned* current, unsigned* pending) {
    return device_entry(__func__, handle, [&](Device&, unsigned) -> nvmlReturn_t {
        if (!current || !pending) return invalid_argument;
        *current = *pending = 0;
        return success;
    });
}

PTM_NVML nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned, nvmlDevice_t* instance) {
    return device_entry(__func__, handle,
                        [&](Device&, unsigned) -> nvmlReturn_t { return instance ? not_found : invalid_argument; });
}
