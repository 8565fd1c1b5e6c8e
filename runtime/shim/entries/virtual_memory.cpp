// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: reservations, physical memory, maps, access, and memory shared by file descriptors.
#include "runtime/memory/virtual_memory.h"
#include "runtime/code/fault.h"
#include "runtime/shim/convert.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::AccessWish;
using runtime::MemoryPlace;
using runtime::PhysicalProperties;
using runtime::VirtualMemory;

namespace {

constexpr int file_descriptor_handle = 1, fabric_handle = 8;

MemoryPlace place_of(const CUmemLocation& location) {
    return {location.type, location.id};
}

void tell_of_fabric() {
    runtime::log_once("fabric", "fabric handles of memory are not supported: there is no fabric between CPUs");
}

/// invalid_value for what has to be zero and is not.
Status read(const CUmemAllocationProp* from, PhysicalProperties& properties) {
    if (!from || from->win32HandleMetaData) return Status::invalid_value;
    const auto is_set = [](unsigned char byte) { return byte != 0; };
    if (std::any_of(std::begin(from->allocFlags.reserved), std::end(from->allocFlags.reserved), is_set))
        return Status::invalid_value;
    if (from->requestedHandleTypes & fabric_handle) tell_of_fabric();
    properties.type = from->type;
    properties.handle_types = from->requestedHandleTypes;
    properties.place = place_of(from->location);
    properties.compression = from->allocFlags.compressionType;
    properties.rdma = from->allocFlags.gpuDirectRDMACapable;
    properties.usage = from->allocFlags.usage;
    return Status::success;
}

/// What is launched by now may use a map that is taken away.
void wait_for_all_work() {
    for (const auto& context : runtime::HandleTable<runtime::Context>::get().all())
        runtime::Dispatcher::get().wait_for_all(*context);
}

} // namespace

PTM_API(cuMemGetAllocationGranularity, std::size_t* size, const CUmemAllocationProp* properties, int option) {
    return entry([&] {
        if (!size || !properties || option < 0 || option > 1) return Status::invalid_value;
        *size = VirtualMemory::granularity; // of all memory, even such as there is none of
        return Status::success;
    });
}

PTM_API(cuMemAddressReserve, CUdeviceptr* address, std::size_t size, std::size_t alignment, CUdeviceptr wish,
        unsigned long long flags) {
    return entry([&] {
        if (!address || flags) return Status::invalid_value;
        std::uintptr_t place = 0;
        const Status status = VirtualMemory::get().reserve(size, alignment, wish, place);
        if (status == Status::success) *address = place;
        return status;
    });
}
PTM_API(cuMemAddressFree, CUdeviceptr address, std::size_t size) {
    return entry([&] { return VirtualMemory::get().unreserve(address, size); });
}

PTM_API(cuMemCreate, CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* properties,
        unsigned long long flags) {
    return entry([&] {
        PhysicalProperties wanted;
        if (!handle || flags) return Status::invalid_value;
        const Status status = read(properties, wanted);
        if (status != Status::success) return status;
        runtime::PhysicalHandle made = 0;
        const Status created = VirtualMemory::get().create(size, wanted, made);
        if (created == Status::success) *handle = made;
        return created;
    });
}
PTM_API(cuMemRelease, CUmemGenericAllocationHandle handle) {
    return entry([&] { return VirtualMemory::get().release(handle); });
}
PTM_API(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle* handle, void* address) {
    return entry([&] {
        if (!handle) return Status::invalid_value;
        runtime::PhysicalHandle found = 0;
        const Status status = VirtualMemory::get().retain(reinterpret_cast<std::uintptr_t>(address), found);
        if (status == Status::success) *handle = found;
        return status;
    });
}
PTM_API(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
    return entry([&] {
        PhysicalProperties found;
        if (!properties) return Status::invalid_value;
        const Status status = VirtualMemory::get().properties(handle, found);
        if (status != Status::success) return status;
        *properties = {};
        properties->type = found.type;
        properties->requestedHandleTypes = found.handle_types;
        properties->location = {found.place.type, found.place.id};
        properties->allocFlags.compressionType = found.compression;
        properties->allocFlags.gpuDirectRDMACapable = found.rdma;
        properties->allocFlags.usage = found.usage;
        return Status::success;
    });
}

PTM_API(cuMemMap, CUdeviceptr address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
        unsigned long long flags) {
    return entry([&] {
        if (flags) return Status::invalid_value;
        runtime::install_fault_handlers(); // memory that is mapped a second time is moved
        return VirtualMemory::get().map(address, size, offset, handle);
    });
}
PTM_API(cuMemUnmap, CUdeviceptr address, std::size_t size) {
    return entry([&] {
        wait_for_all_work();
        return VirtualMemory::get().unmap(address, size);
    });
}
PTM_API(cuMemSetAccess, CUdeviceptr address, std::size_t size, const CUmemAccessDesc* wishes, std::size_t count) {
    return entry([&] {
        if (!wishes || count == 0 || count > 1024) return Status::invalid_value;
        std::vector<AccessWish> wanted;
        for (std::size_t i = 0; i < count; ++i)
            wanted.push_back({place_of(wishes[i].location), static_cast<unsigned>(wishes[i].flags)});
        return VirtualMemory::get().set_access(address, size, wanted);
    });
}
PTM_API(cuMemGetAccess, unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    return entry([&] {
        if (!flags || !location) return Status::invalid_value;
        unsigned found = 0;
        const Status status = VirtualMemory::get().access(address, place_of(*location), found);
        if (status != Status::invalid_device) *flags = found;
        return status;
    });
}

PTM_API(cuMemExportToShareableHandle, void* shareable, CUmemGenericAllocationHandle handle, int type,
        unsigned long long flags) {
    return entry([&] {
        if (!shareable || flags || type != file_descriptor_handle) return Status::invalid_value;
        runtime::install_fault_handlers(); // its pages are moved while kernels may use them
        int file = -1;
        const Status status = VirtualMemory::get().export_file(handle, file);
        if (status == Status::success) *static_cast<int*>(shareable) = file;
        return status;
    });
}
PTM_API(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle* handle, void* shareable, int type) {
    return entry([&] {
        constexpr int windows_handle = 2, windows_global_handle = 4;
        if (!handle) return Status::invalid_value;
        if (type == fabric_handle) tell_of_fabric();
        if (type == fabric_handle || type == windows_handle || type == windows_global_handle)
            return Status::not_supported;
        if (type != file_descriptor_handle) return Status::invalid_value;
        runtime::PhysicalHandle made = 0;
        const auto file = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
        const Status status = VirtualMemory::get().import_file(file, made);
        if (status == Status::success) *handle = made;
        return status;
    });
}
