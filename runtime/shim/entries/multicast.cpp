// SPDX-License-Identifier: Apache-2.0
// Multicast objects. No driver could be asked: codes are those that cuda.h names.
#include "runtime/memory/multicast.h"
#include "runtime/code/fault.h"
#include "runtime/memory/virtual_memory.h"
#include "runtime/shim/convert.h"
#include "runtime/stream/dispatcher.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::any_device;
using runtime::Device;
using runtime::MulticastTeam;
using runtime::VirtualMemory;

namespace {

constexpr unsigned long long file_descriptor_handle = 1, fabric_handle = 8;

bool valid_device(CUdevice device) {
    return device >= 0 && device < Device::count();
}

/// not_supported for objects that other processes are to share.
Status check(const CUmulticastObjectProp* properties) {
    if (!properties || properties->flags || properties->numDevices == 0 || properties->size == 0 ||
        (properties->handleTypes & ~(file_descriptor_handle | fabric_handle)))
        return Status::invalid_value;
    if (properties->numDevices > static_cast<unsigned>(Device::count())) return Status::invalid_device;
    if (properties->handleTypes & fabric_handle) {
        runtime::log_once("multicast", "multicast objects are of one process: fabric handles are not supported");
        return Status::not_supported;
    }
    return Status::success;
}

/// entry() for calls on a multicast object: body(MulticastTeam&).
template <class Body> CUresult team_entry(CUmemGenericAllocationHandle handle, Body&& body) {
    return entry([&] {
        std::shared_ptr<MulticastTeam> team;
        const Status status = VirtualMemory::get().team(handle, team);
        return status == Status::success ? body(*team) : status;
    });
}

CUresult bind_memory(CUmemGenericAllocationHandle handle, int device, std::size_t offset,
                     CUmemGenericAllocationHandle memory, std::size_t memory_offset, std::size_t size,
                     unsigned long long flags) {
    return team_entry(handle, [&](MulticastTeam& team) {
        if (flags) return Status::invalid_value;
        if (device != any_device && !valid_device(device)) return Status::invalid_device;
        runtime::install_fault_handlers(); // its pages are moved while kernels may use them
        return VirtualMemory::get().bind(team, device, offset, memory, memory_offset, size);
    });
}

CUresult bind_address(CUmemGenericAllocationHandle handle, int device, std::size_t offset, CUdeviceptr memory,
                      std::size_t size, unsigned long long flags) {
    return team_entry(handle, [&](MulticastTeam& team) {
        if (flags) return Status::invalid_value;
        if (device != any_device && !valid_device(device)) return Status::invalid_device;
        runtime::install_fault_handlers(); // its pages are moved while kernels may use them
        return VirtualMemory::get().bind_address(team, device, offset, memory, size);
    });
}

} // namespace

PTM_API(cuMulticastGetGranularity, std::size_t* size, const CUmulticastObjectProp* properties, int option) {
    return entry([&] {
        constexpr int recommended = 1;
        if (!size || option < 0 || option > recommended) return Status::invalid_value;
        const Status status = check(properties);
        if (status == Status::success) *size = VirtualMemory::granularity;
        return status;
    });
}

PTM_API(cuMulticastCreate, CUmemGenericAllocationHandle* handle, const CUmulticastObjectProp* properties) {
    return entry([&] {
        if (!handle) return Status::invalid_value;
        if (const Status status = check(properties); status != Status::success) return status;
        if (properties->size % VirtualMemory::granularity) return Status::invalid_value;
        runtime::PhysicalHandle made = 0;
        const Status status = VirtualMemory::get().create(
            std::make_shared<MulticastTeam>(properties->numDevices, properties->size), made);
        if (status == Status::success) *handle = made;
        return status;
    });
}

PTM_API(cuMulticastAddDevice, CUmemGenericAllocationHandle handle, CUdevice device) {
    return team_entry(handle, [&](MulticastTeam& team) {
        return valid_device(device) ? team.add_device(device) : Status::invalid_device;
    });
}

PTM_API(cuMulticastBindMem, CUmemGenericAllocationHandle handle, std::size_t offset,
        CUmemGenericAllocationHandle memory, std::size_t memory_offset, std::size_t size, unsigned long long flags) {
    return bind_memory(handle, any_device, offset, memory, memory_offset, size, flags);
}
PTM_API(cuMulticastBindMem_v2, CUmemGenericAllocationHandle handle, CUdevice device, std::size_t offset,
        CUmemGenericAllocationHandle memory, std::size_t memory_offset, std::size_t size, unsigned long long flags) {
    return bind_memory(handle, device < 0 ? Device::most : device, offset, memory, memory_offset, size, flags);
}
PTM_API(cuMulticastBindAddr, CUmemGenericAllocationHandle handle, std::size_t offset, CUdeviceptr memory,
        std::size_t size, unsigned long long flags) {
    return bind_address(handle, any_device, offset, memory, size, flags);
}
PTM_API(cuMulticastBindAddr_v2, CUmemGenericAllocationHandle handle, CUdevice device, std::size_t offset,
        CUdeviceptr memory, std::size_t size, unsigned long long flags) {
    return bind_address(handle, device < 0 ? Device::most : device, offset, memory, size, flags);
}

PTM_API(cuMulticastUnbind, CUmemGenericAllocationHandle handle, CUdevice device, std::size_t offset, std::size_t size) {
    return team_entry(handle, [&](MulticastTeam& team) {
        if (!valid_device(device)) return Status::invalid_device;
        // What is launched by now may use it.
        for (const auto& context : runtime::HandleTable<runtime::Context>::get().all())
            runtime::Dispatcher::get().wait_for_all(*context);
        return team.unbind(device, offset, size);
    });
}
