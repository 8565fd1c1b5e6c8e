// SPDX-License-Identifier: Apache-2.0
// Allocation of device, host and managed memory, and queries about pointers.
#include "runtime/memory/memory.h"
#include "runtime/shim/convert.h"

#include <algorithm>
#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;

namespace {

/// entry() for calls that name memory: body(Context&) in the memory's context, or in the current one, if any, for
/// addresses that the driver does not know; `unknown` without one.
template <class Body> CUresult allocation_entry(CUdeviceptr pointer, Status unknown, Body&& body) {
    return entry([&] {
        const auto allocation = runtime::AddressSpace::get().find(pointer);
        Context* context = allocation && allocation->context ? allocation->context : runtime::working_context();
        if (!context) return unknown;
        const Status status = context->status();
        return status == Status::success ? body(*context) : status;
    });
}

/// Stores the address that `allocate(DevicePointer&)` gives, if it succeeds.
template <class Allocate> Status give_address(CUdeviceptr* pointer, Allocate&& allocate) {
    if (!pointer) return Status::invalid_value;
    runtime::DevicePointer address = 0;
    const Status status = allocate(address);
    if (status == Status::success) *pointer = address;
    return status;
}

CUresult allocate_host(void** pointer, std::size_t size, unsigned flags) {
    return context_entry([&](Context& context) {
        if (!pointer) return Status::invalid_value;
        return runtime::host_allocate(context, size, flags, *pointer);
    });
}

CUresult register_host(void* pointer, std::size_t size, unsigned flags) {
    return context_entry([&](Context& context) { return runtime::host_register(context, pointer, size, flags); });
}

} // namespace

PTM_API(cuMemAlloc_v2, CUdeviceptr* pointer, std::size_t size) {
    return context_entry([&](Context& context) {
        return give_address(
            pointer, [&](runtime::DevicePointer& address) { return runtime::memory_allocate(context, size, address); });
    });
}
PTM_API(cuMemAllocPitch_v2, CUdeviceptr* pointer, std::size_t* pitch, std::size_t width, std::size_t height,
        unsigned element_size) {
    return context_entry([&](Context& context) {
        return give_address(pitch ? pointer : nullptr, [&](runtime::DevicePointer& address) {
            return runtime::memory_allocate_pitch(context, width, height, element_size, address, *pitch);
        });
    });
}
PTM_API(cuMemFree_v2, CUdeviceptr pointer) {
    if (pointer == 0) return entry([] { return Status::success; });
    return allocation_entry(pointer, Status::invalid_value,
                            [&](Context& context) { return runtime::memory_free(context, pointer); });
}

PTM_API(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
    return context_entry([&](Context& context) {
        std::size_t free_bytes = 0, total_bytes = 0;
        Status status = runtime::memory_info(context, free_bytes, total_bytes);
        store(free, free_bytes);
        store(total, total_bytes);
        return status;
    });
}

PTM_API(cuMemGetAddressRange_v2, CUdeviceptr* base, std::size_t* size, CUdeviceptr pointer) {
    if (!base && !size) return fenced([] { return Status::success; }); // nothing is asked
    return context_entry([&](Context&) {
        runtime::DevicePointer start = 0;
        std::size_t bytes = 0;
        Status status = runtime::memory_address_range(pointer, start, bytes);
        if (status == Status::success) {
            store(base, start);
            store(size, bytes);
        }
        return status;
    });
}

PTM_API(cuMemHostAlloc, void** pointer, std::size_t size, unsigned flags) {
    return allocate_host(pointer, size, flags);
}
PTM_API(cuMemAllocHost, void** pointer, unsigned size) {
    return allocate_host(pointer, size, 0);
}
PTM_API(cuMemAllocHost_v2, void** pointer, std::size_t size) {
    return allocate_host(pointer, size, 0);
}
PTM_API(cuMemFreeHost, void* pointer) {
    if (!pointer) return entry([] { return Status::success; });
    return allocation_entry(reinterpret_cast<CUdeviceptr>(pointer), Status::invalid_value,
                            [&](Context& context) { return runtime::host_free(context, pointer); });
}
PTM_API(cuMemHostRegister, void* pointer, std::size_t size, unsigned flags) {
    return register_host(pointer, size, flags);
}
PTM_API(cuMemHostRegister_v2, void* pointer, std::size_t size, unsigned flags) {
    return register_host(pointer, size, flags);
}
PTM_API(cuMemHostUnregister, void* pointer) {
    PTM_REQUIRE(pointer);
    return allocation_entry(reinterpret_cast<CUdeviceptr>(pointer), Status::host_memory_not_registered,
                            [&](Context& context) { return runtime::host_unregister(context, pointer); });
}
PTM_API(cuMemHostGetDevicePointer_v2, CUdeviceptr* pointer, void* host, unsigned flags) {
    return context_entry([&](Context&) {
        return give_address(pointer, [&](runtime::DevicePointer& address) {
            return runtime::host_device_pointer(host, flags, address);
        });
    });
}
PTM_API(cuMemHostGetFlags, unsigned* flags, void* host) {
    PTM_REQUIRE(flags);
    return context_entry([&](Context&) { return flags ? runtime::host_flags(host, *flags) : Status::invalid_value; });
}

PTM_API(cuMemAllocManaged, CUdeviceptr* pointer, std::size_t size, unsigned flags) {
    PTM_REQUIRE(pointer);
    return context_entry([&](Context& context) {
        return give_address(pointer, [&](runtime::DevicePointer& address) {
            return runtime::managed_allocate(context, size, flags, address);
        });
    });
}

PTM_API(cuPointerGetAttribute, void* value, unsigned attribute, CUdeviceptr pointer) {
    return entry([&] {
        if (!value) return Status::invalid_value;
        if (attribute == pointer_device_pointer && !runtime::current_context()) return Status::invalid_context;
        return runtime::pointer_attribute(static_cast<int>(attribute), pointer, value);
    });
}
PTM_API(cuPointerGetAttributes, unsigned count, unsigned* attributes, void** values, CUdeviceptr pointer) {
    return entry([&] {
        if (!attributes || !values || !count) return Status::invalid_value;
        for (unsigned i = 0; i < count; ++i) {
            Status status = runtime::pointer_attribute(static_cast<int>(attributes[i]), pointer, values[i], true);
            if (status != Status::success) return status;
        }
        return Status::success;
    });
}
PTM_API(cuPointerSetAttribute, const void* value, unsigned attribute, CUdeviceptr pointer) {
    return allocation_entry(pointer, Status::invalid_value, [&](Context&) {
        const auto allocation = runtime::AddressSpace::get().find(pointer);
        if (!value || !allocation) return Status::invalid_value;
        if (allocation->kind == runtime::MemoryKind::mapped) return Status::not_supported;
        if (attribute != pointer_sync_memops) return Status::invalid_value;
        unsigned on = 0;
        std::memcpy(&on, value, sizeof on);
        return runtime::set_sync_memops(pointer, on != 0);
    });
}
