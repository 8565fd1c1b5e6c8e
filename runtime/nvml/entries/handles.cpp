// SPDX-License-Identifier: Apache-2.0
// Devices by number, UUID and PCI bus id, and these of a device.
#include "runtime/nvml/library_state.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

using namespace ptarmigan::nvml;
using ptarmigan::runtime::Device;

namespace {

struct PciPlace {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    bool operator==(const PciPlace&) const = default;
};

/// A hexadecimal number at the beginning of `text`, which is moved behind it.
bool take_number(std::string_view& text, unsigned& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

/// [domain:]bus:device[.function], as hexadecimal numbers.
bool parse_pci(std::string_view text, PciPlace& place) {
    unsigned numbers[3] = {};
    int count = 0;
    do {
        if (count == 3 || !take_number(text, numbers[count++])) return false;
    } while (take(text, ':'));
    if (count < 2) return false;
    place = count == 3 ? PciPlace{numbers[0], numbers[1], numbers[2], 0} : PciPlace{0, numbers[0], numbers[1], 0};
    if (take(text, '.') && !take_number(text, place.function)) return false;
    return text.empty();
}

PciPlace pci_of(const Device& device) {
    PciPlace place;
    parse_pci(device.pci_bus_id(), place);
    return place;
}

nvmlReturn_t find_by_index(unsigned index, nvmlDevice_t* device) {
    if (!device || index >= device_count()) return invalid_argument;
    *device = handle_of(index);
    return success;
}

nvmlReturn_t find_by_pci(const char* id, nvmlDevice_t* device) {
    if (!id || !device) return invalid_argument;
    PciPlace wanted;
    if (!parse_pci(id, wanted) || wanted.function != 0) return invalid_argument;
    for (unsigned i = 0; i < device_count(); ++i)
        if (pci_of(device_at(i)) == wanted) return find_by_index(i, device);
    return not_found;
}

/// With or without "GPU-", in small letters.
nvmlReturn_t find_by_uuid(std::string_view uuid, nvmlDevice_t* device) {
    constexpr std::string_view prefix = "GPU-";
    if (uuid.starts_with(prefix)) uuid.remove_prefix(prefix.size());
    for (unsigned i = 0; i < device_count(); ++i)
        if (uuid == std::string_view(uuid_text(device_at(i))).substr(prefix.size())) return find_by_index(i, device);
    return not_found;
}

int attribute(const Device& device, int id) {
    return device.attribute(id).value_or(0);
}

constexpr int pci_device_id = 139, pci_subsystem_id = 140; // CU_DEVICE_ATTRIBUTE_GPU_PCI_...

/// Fills in what all versions of the structure have.
template <class Info> void describe_pci(const Device& device, Info& info) {
    const PciPlace place = pci_of(device);
    info.domain = place.domain;
    info.bus = place.bus;
    info.device = place.device;
    info.pciDeviceId = static_cast<unsigned>(attribute(device, pci_device_id));
}

void write_pci(const PciPlace& place, int domain_digits, char* text, std::size_t size) {
    std::snprintf(text, size, "%0*X:%02X:%02X.%X", domain_digits, place.domain, place.bus, place.device,
                  place.function);
}

constexpr int short_domain = 4, long_domain = 8;

} // namespace

PTM_NVML nvmlDeviceGetCount(unsigned* count) {
    return entry(__func__, [&] { return give(count, device_count()); });
}

PTM_NVML nvmlDeviceGetCount_v2(unsigned* count) {
    return entry(__func__, [&] { return give(count, device_count()); });
}

PTM_NVML nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
    return entry(__func__, [&] { return find_by_index(index, device); });
}

PTM_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
    return entry(__func__, [&] { return find_by_index(index, device); });
}

PTM_NVML nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
    return entry(__func__, [&] { return find_by_pci(id, device); });
}

PTM_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
    return entry(__func__, [&] { return find_by_pci(id, device); });
}

PTM_NVML nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!uuid || !device) return invalid_argument;
        return find_by_uuid(uuid, device);
    });
}

PTM_NVML nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t* uuid, nvmlDevice_t* device) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        constexpr unsigned ascii = 1, binary = 2;
        if (!uuid || !device) return invalid_argument;
        if (uuid->version != structure_version<nvmlUUID_v1_t>(1)) return version_mismatch;
        if (uuid->type == ascii)
            return find_by_uuid({uuid->value.str, strnlen(uuid->value.str, sizeof uuid->value.str)}, device);
        if (uuid->type != binary) return invalid_argument;
        for (unsigned i = 0; i < device_count(); ++i)
            if (std::memcmp(device_at(i).uuid().data(), uuid->value.bytes, sizeof uuid->value.bytes) == 0)
                return find_by_index(i, device);
        return not_found;
    });
}

PTM_NVML nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
    return entry(__func__, [&]() -> nvmlReturn_t { return serial && device ? not_found : invalid_argument; });
}

PTM_NVML nvmlDeviceGetName(nvmlDevice_t handle, char* name, unsigned length) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) {
        constexpr std::size_t most = 63; // programs have 64 bytes for it
        return give_text(device.name().substr(0, most), name, length);
    });
}

PTM_NVML nvmlDeviceGetUUID(nvmlDevice_t handle, char* uuid, unsigned length) {
    return device_entry(__func__, handle,
                        [&](Device& device, unsigned) { return give_text(uuid_text(device), uuid, length); });
}

PTM_NVML nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* index) {
    return device_entry(__func__, handle, [&](Device&, unsigned number) { return give(index, number); });
}

PTM_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned* minor) {
    return device_entry(__func__, handle, [&](Device&, unsigned number) { return give(minor, number); });
}

PTM_NVML nvmlDeviceGetModuleId(nvmlDevice_t handle, unsigned* module) {
    return device_entry(__func__, handle, [&](Device&, unsigned number) { return give(module, number); });
}

PTM_NVML nvmlDeviceGetBoardId(nvmlDevice_t handle, unsigned* board) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) {
        const PciPlace place = pci_of(device);
        return give(board, place.domain << 16 | place.bus << 8 | place.device);
    });
}

PTM_NVML nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned* several) {
    return device_entry(__func__, handle, [&](Device&, unsigned) { return give(several, 0); });
}

PTM_NVML nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_v1_t* info) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) -> nvmlReturn_t {
        if (!info) return invalid_argument;
        describe_pci(device, *info);
        write_pci(pci_of(device), short_domain, info->busId, sizeof info->busId);
        return success;
    });
}

PTM_NVML nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_v2_t* info) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) -> nvmlReturn_t {
        if (!info) return invalid_argument;
        describe_pci(device, *info);
        info->pciSubSystemId = static_cast<unsigned>(attribute(device, pci_subsystem_id));
        write_pci(pci_of(device), short_domain, info->busId, sizeof info->busId);
        return success;
    });
}

PTM_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t* info) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) -> nvmlReturn_t {
        if (!info) return invalid_argument;
        describe_pci(device, *info);
        info->pciSubSystemId = static_cast<unsigned>(attribute(device, pci_subsystem_id));
        write_pci(pci_of(device), short_domain, info->busIdLegacy, sizeof info->busIdLegacy);
        write_pci(pci_of(device), long_domain, info->busId, sizeof info->busId);
        return success;
    });
}

PTM_NVML nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_v1_t* info) {
    return device_entry(__func__, handle, [&](Device& device, unsigned) -> nvmlReturn_t {
        constexpr unsigned display_controller = 3, three_d = 2; // classes of the PCI specification
        if (!info) return invalid_argument;
        if (info->version != structure_version<nvmlPciInfoExt_v1_t>(1)) return version_mismatch;
        describe_pci(device, *info);
        info->pciSubSystemId = static_cast<unsigned>(attribute(device, pci_subsystem_id));
        info->baseClass = display_controller;
        info->subClass = three_d;
        write_pci(pci_of(device), long_domain, info->busId, sizeof info->busId);
        return success;
    });
}
