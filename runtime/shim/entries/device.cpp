// SPDX-License-Identifier: Apache-2.0
// Initialisation and devices.
#include "runtime/base/forked_child.h"
#include "runtime/device/driver_version.h"
#include "runtime/shim/convert.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Device;

namespace {

bool valid_device(CUdevice device) {
    return device >= 0 && device < Device::count();
}

/// Body of a query about `device` with one output.
template <class T, class Body> CUresult device_query(T* result, CUdevice device, Body&& body) {
    return entry([&] {
        if (!result) return Status::invalid_value;
        if (!valid_device(device)) return Status::invalid_device;
        return body(Device::get(device));
    });
}

int attribute_or_zero(int id) {
    return Device::get().attribute(id).value_or(0);
}

/// "0000:00:06.0" or "00:06.0" or with an upper-case address: the same device?
bool names_device(const char* text, const std::string& bus_id) {
    auto equal = [](const char* a, const char* b) {
        for (; *a && *b; ++a, ++b)
            if (std::tolower(static_cast<unsigned char>(*a)) != std::tolower(static_cast<unsigned char>(*b)))
                return false;
        return *a == *b;
    };
    return equal(text, bus_id.c_str()) || (bus_id.size() > 5 && equal(text, bus_id.c_str() + 5));
}

/// [domain:]bus:device.function, in hexadecimal digits.
bool is_bus_id(const char* text) {
    unsigned number = 0;
    char end = 0;
    return std::sscanf(text, "%x:%x:%x.%x%c", &number, &number, &number, &number, &end) == 4 ||
           std::sscanf(text, "%x:%x.%x%c", &number, &number, &number, &end) == 3 ||
           std::sscanf(text, "%x:%x:%x%c", &number, &number, &number, &end) == 3;
}

} // namespace

PTM_API(cuInit, unsigned flags) {
    return fenced([&] {
        if (flags) return Status::invalid_value;
        return runtime::is_forked_child() ? Status::not_initialized : Device::initialize();
    });
}

static_assert(driver_version == runtime::cuda_version); // libnvidia-ml.so.1 says the same

PTM_API(cuDriverGetVersion, int* version) {
    if (!version) return static_cast<CUresult>(Status::invalid_value);
    *version = driver_version;
    return 0;
}

PTM_API(cuDeviceGetCount, int* count) {
    return entry([&] {
        if (!count) return Status::invalid_value;
        *count = Device::count();
        return Status::success;
    });
}

PTM_API(cuDeviceGet, CUdevice* device, int ordinal) {
    return device_query(device, ordinal, [&](Device&) {
        *device = ordinal;
        return Status::success;
    });
}

PTM_API(cuDeviceGetName, char* name, int length, CUdevice device) {
    return device_query(name, device, [&](Device& found) {
        if (length <= 0) return Status::invalid_value;
        // Nothing behind the text: a program may say more than its buffer has.
        name[found.name().copy(name, static_cast<std::size_t>(length) - 1)] = 0;
        return Status::success;
    });
}

PTM_API(cuDeviceTotalMem_v2, std::size_t* bytes, CUdevice device) {
    return device_query(bytes, device, [&](Device& found) {
        *bytes = found.total_memory();
        return Status::success;
    });
}

PTM_API(cuDeviceTotalMem, unsigned* bytes, CUdevice device) {
    return device_query(bytes, device, [&](Device& found) {
        *bytes = static_cast<unsigned>(std::min<std::size_t>(found.total_memory(), 0xffffffffu));
        return Status::success;
    });
}

PTM_API(cuDeviceGetAttribute, int* value, int attribute, CUdevice device) {
    return device_query(value, device, [&](Device& found) {
        auto answer = found.attribute(attribute);
        if (!answer) return Status::invalid_value;
        *value = *answer;
        return Status::success;
    });
}

static CUresult get_uuid(CUuuid* uuid, CUdevice device) {
    return device_query(uuid, device, [&](Device& found) {
        std::memcpy(uuid->bytes, found.uuid().data(), sizeof uuid->bytes);
        return Status::success;
    });
}
PTM_API(cuDeviceGetUuid, CUuuid* uuid, CUdevice device) {
    return get_uuid(uuid, device);
}
PTM_API(cuDeviceGetUuid_v2, CUuuid* uuid, CUdevice device) {
    return get_uuid(uuid, device);
}

PTM_API(cuDeviceGetLuid, char* luid, unsigned*, CUdevice) {
    PTM_REQUIRE(luid);
    return static_cast<CUresult>(Status::not_supported); // Windows only, as the driver answers on Linux
}

PTM_API(cuDeviceComputeCapability, int* major, int* minor, CUdevice device) {
    return device_query(major, device, [&](Device& found) {
        if (!minor) return Status::invalid_value;
        *major = static_cast<int>(found.compute_capability() / 10);
        *minor = static_cast<int>(found.compute_capability() % 10);
        return Status::success;
    });
}

PTM_API(cuDeviceGetProperties, CUdevprop* properties, CUdevice device) {
    return device_query(properties, device, [&](Device&) {
        CUdevprop p;
        p.maxThreadsPerBlock = attribute_or_zero(1);
        for (int i = 0; i < 3; ++i) {
            p.maxThreadsDim[i] = attribute_or_zero(2 + i);
            p.maxGridSize[i] = attribute_or_zero(5 + i);
        }
        p.sharedMemPerBlock = attribute_or_zero(8);
        p.totalConstantMemory = attribute_or_zero(9);
        p.SIMDWidth = attribute_or_zero(10);
        p.memPitch = attribute_or_zero(11);
        p.regsPerBlock = attribute_or_zero(12);
        p.clockRate = attribute_or_zero(13);
        p.textureAlign = attribute_or_zero(14);
        *properties = p;
        return Status::success;
    });
}

PTM_API(cuDeviceGetPCIBusId, char* bus_id, int length, CUdevice device) {
    return device_query(bus_id, device, [&](Device& found) {
        const std::string& text = found.pci_bus_id();
        if (length <= 0 || static_cast<std::size_t>(length) <= text.size()) return Status::invalid_value;
        std::memcpy(bus_id, text.c_str(), text.size() + 1);
        return Status::success;
    });
}

PTM_API(cuDeviceGetByPCIBusId, CUdevice* device, const char* bus_id) {
    return entry([&] {
        if (!device || !bus_id || !is_bus_id(bus_id)) return Status::invalid_value;
        for (int ordinal = 0; ordinal < Device::count(); ++ordinal)
            if (names_device(bus_id, Device::get(ordinal).pci_bus_id())) {
                *device = ordinal;
                return Status::success;
            }
        return Status::invalid_device;
    });
}

PTM_API(cuDeviceGetExecAffinitySupport, int* supported, int, CUdevice device) {
    return device_query(supported, device, [&](Device&) {
        *supported = 0;
        return Status::success;
    });
}

PTM_API(cuDeviceCanAccessPeer, int* can, CUdevice device, CUdevice peer) {
    return device_query(can, device, [&](Device&) {
        if (!valid_device(peer)) return Status::invalid_device;
        *can = device != peer;
        return Status::success;
    });
}

PTM_API(cuDeviceGetP2PAttribute, int* value, int attribute, CUdevice source, CUdevice peer) {
    return device_query(value, source, [&](Device&) {
        // Rank of the way's speed (0: the best), access, native atomics, arrays, only some atomics: an H200's behind
        // NVLink.
        constexpr int answers[] = {0, 1, 1, 1, 0};
        if (!valid_device(peer) || peer == source) return Status::invalid_device;
        if (attribute < 1 || attribute > 5) return Status::invalid_value;
        *value = answers[attribute - 1];
        return Status::success;
    });
}

PTM_API(cuDeviceGetTexture1DLinearMaxWidth, std::size_t* elements, int, unsigned, CUdevice device) {
    return device_query(elements, device, [&](Device&) { return Status::not_supported; });
}

PTM_API(cuFlushGPUDirectRDMAWrites, int target, int scope) {
    // The current context's memory, for its owner or all devices. Writes of the CPU to its own memory need no flush.
    constexpr int current_context = 0, to_owner = 100, to_all_devices = 200;
    const bool known = target == current_context && (scope == to_owner || scope == to_all_devices);
    return context_entry([&](runtime::Context&) { return known ? Status::success : Status::invalid_value; });
}
