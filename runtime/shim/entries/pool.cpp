// SPDX-License-Identifier: Apache-2.0
// Pools of memory, and stream-ordered allocation from them.
#include "runtime/memory/pool.h"
#include "runtime/code/fault.h"
#include "runtime/memory/process_memory.h"
#include "runtime/shim/convert.h"

#include <algorithm>
#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::MemoryPlace;
using runtime::MemoryPool;

namespace {

constexpr int pinned = 1;          ///< CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int file_descriptor = 1; ///< CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

bool valid_device(CUdevice device) {
    return device >= 0 && device < runtime::Device::count();
}

MemoryPlace place_of(const CUmemLocation& location) {
    return {location.type, location.id};
}

/// entry() for calls on a pool: body(MemoryPool&).
template <class Body> CUresult pool_entry(CUmemoryPool handle, Body&& body) {
    return entry([&] {
        auto pool = find_handle<MemoryPool>(handle);
        return pool ? body(*pool) : Status::invalid_value;
    });
}

/// The default or the current pool of a device.
CUresult device_pool(CUmemoryPool* handle, CUdevice device, bool current) {
    return entry([&] {
        if (!handle) return Status::invalid_value;
        if (!valid_device(device)) return Status::invalid_device;
        std::shared_ptr<MemoryPool> pool;
        const Status status = runtime::pool_of_place({MemoryPlace::device, device}, pinned, current, pool);
        if (status == Status::success) *handle = to_handle<CUmemoryPool>(pool);
        return status;
    });
}

CUresult place_pool(CUmemoryPool* handle, const CUmemLocation* location, int type, bool current) {
    return entry([&] {
        if (!handle || !location) return Status::invalid_value;
        std::shared_ptr<MemoryPool> pool;
        const Status status = runtime::pool_of_place(place_of(*location), type, current, pool);
        if (status == Status::success) *handle = to_handle<CUmemoryPool>(pool);
        return status;
    });
}

Status allocate_from(runtime::Stream& stream, const std::shared_ptr<MemoryPool>& pool, CUdeviceptr* pointer,
                     std::size_t size) {
    if (!pointer || !pool) return Status::invalid_value;
    runtime::DevicePointer address = 0;
    const Status status = runtime::pool_allocate(stream, pool, size, address);
    if (status == Status::success) *pointer = address;
    return status;
}

} // namespace

PTM_API(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice device) {
    return device_pool(pool, device, false);
}
PTM_API(cuDeviceGetMemPool, CUmemoryPool* pool, CUdevice device) {
    return device_pool(pool, device, true);
}
PTM_API(cuDeviceSetMemPool, CUdevice device, CUmemoryPool handle) {
    return entry([&] {
        auto pool = find_handle<MemoryPool>(handle);
        if (!pool || !valid_device(device)) return Status::invalid_value;
        return runtime::set_pool_of_place({MemoryPlace::device, device}, pinned, pool);
    });
}
PTM_API(cuMemGetDefaultMemPool, CUmemoryPool* pool, CUmemLocation* location, int type) {
    return place_pool(pool, location, type, false);
}
PTM_API(cuMemGetMemPool, CUmemoryPool* pool, CUmemLocation* location, int type) {
    return place_pool(pool, location, type, true);
}
PTM_API(cuMemSetMemPool, CUmemLocation* location, int type, CUmemoryPool handle) {
    return entry([&] {
        if (!location) return Status::invalid_value;
        return runtime::set_pool_of_place(place_of(*location), type, find_handle<MemoryPool>(handle));
    });
}

PTM_API(cuMemPoolCreate, CUmemoryPool* handle, const CUmemPoolProps* properties) {
    return entry([&] {
        if (!handle || !properties) return Status::invalid_value;
        const auto is_set = [](unsigned char byte) { return byte != 0; };
        if (std::any_of(std::begin(properties->reserved), std::end(properties->reserved), is_set))
            return Status::invalid_value;
        constexpr int fabric = 8;
        if (properties->handleTypes & ~(file_descriptor | fabric)) return Status::invalid_value;
        if (properties->handleTypes & fabric) {
            runtime::log_once("fabric", "fabric handles of memory are not supported: there is no fabric between CPUs");
            return Status::not_supported;
        }
        if (properties->handleTypes && properties->location.type == MemoryPlace::host) return Status::invalid_value;
        std::shared_ptr<MemoryPool> pool;
        const Status status = MemoryPool::create(properties->allocType, place_of(properties->location),
                                                 properties->maxSize, properties->handleTypes, pool);
        if (status == Status::success) *handle = to_handle<CUmemoryPool>(pool);
        return status;
    });
}
PTM_API(cuMemPoolDestroy, CUmemoryPool handle) {
    return entry([&] {
        auto pool = find_handle<MemoryPool>(handle);
        if (!pool) return Status::invalid_value;
        const Status status = runtime::retire_pool(pool);
        if (status == Status::success) runtime::HandleTable<MemoryPool>::get().remove(handle);
        return status;
    });
}
PTM_API(cuMemPoolGetAttribute, CUmemoryPool handle, int attribute, void* value) {
    return pool_entry(handle, [&](MemoryPool& pool) { return pool.attribute(attribute, value); });
}
PTM_API(cuMemPoolSetAttribute, CUmemoryPool handle, int attribute, void* value) {
    return pool_entry(handle, [&](MemoryPool& pool) { return pool.set_attribute(attribute, value); });
}
PTM_API(cuMemPoolTrimTo, CUmemoryPool handle, std::size_t kept) {
    return pool_entry(handle, [&](MemoryPool& pool) {
        if (pool.properties().origin) return Status::invalid_value; // another process's
        pool.trim(kept);
        return Status::success;
    });
}
PTM_API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc* places, std::size_t count) {
    return pool_entry(handle, [&](MemoryPool& pool) {
        if (!places && count) return Status::invalid_value;
        const auto for_each = [&](auto&& act) {
            Status status = Status::success;
            for (std::size_t i = 0; i < count && status == Status::success; ++i)
                status = act(place_of(places[i].location), static_cast<unsigned>(places[i].flags));
            return status;
        };
        const Status status =
            for_each([&](MemoryPlace place, unsigned flags) { return pool.check_access(place, flags); });
        if (status != Status::success) return status;
        return for_each([&](MemoryPlace place, unsigned flags) { return pool.set_access(place, flags); });
    });
}
PTM_API(cuMemPoolGetAccess, unsigned* flags, CUmemoryPool handle, CUmemLocation* location) {
    return pool_entry(handle, [&](MemoryPool& pool) {
        return flags && location ? pool.access(place_of(*location), *flags) : Status::invalid_value;
    });
}

PTM_STREAM_API(cuMemAllocAsync, cuMemAllocAsync_ptsz, (CUdeviceptr * pointer, std::size_t size, CUstream stream),
               (pointer, size, stream)) {
    return stream_entry(stream, default_stream, [&](runtime::Stream& queue) {
        const int device = queue.context().device();
        return allocate_from(queue, runtime::primary_context(device)->pool(), pointer, size);
    });
}
PTM_STREAM_API(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz,
               (CUdeviceptr * pointer, std::size_t size, CUmemoryPool handle, CUstream stream),
               (pointer, size, handle, stream)) {
    return stream_entry(stream, default_stream, [&](runtime::Stream& queue) {
        return allocate_from(queue, find_handle<MemoryPool>(handle), pointer, size);
    });
}
PTM_STREAM_API(cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream), (pointer, stream)) {
    return stream_entry(stream, default_stream, [&](runtime::Stream& queue) {
        return pointer ? runtime::pool_free(queue, pointer) : Status::success;
    });
}

// ---- pools that processes share ----

PTM_API(cuMemPoolExportToShareableHandle, void* shareable, CUmemoryPool handle, int type, unsigned long long flags) {
    return pool_entry(handle, [&](MemoryPool& pool) {
        if (!shareable || flags || type != file_descriptor) return Status::invalid_value;
        int file = -1;
        const Status status = pool.export_file(file);
        if (status == Status::success) *static_cast<int*>(shareable) = file;
        return status;
    });
}
PTM_API(cuMemPoolImportFromShareableHandle, CUmemoryPool* handle, void* shareable, int type, unsigned long long flags) {
    return entry([&] {
        if (!handle || flags || type != file_descriptor) return Status::invalid_value;
        std::shared_ptr<MemoryPool> pool;
        const auto file = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
        const Status status = MemoryPool::import_file(file, pool);
        if (status == Status::success) *handle = to_handle<CUmemoryPool>(pool);
        return status;
    });
}
PTM_API(cuMemPoolExportPointer, CUmemPoolPtrExportData* data, CUdeviceptr pointer) {
    return entry([&] {
        if (!data) return Status::invalid_value;
        runtime::install_fault_handlers(); // its pages are moved while kernels may use them
        runtime::FilePlace place;
        const Status status = MemoryPool::export_pointer(pointer, place);
        if (status == Status::success) std::memcpy(data, &place, sizeof place);
        return status;
    });
}
PTM_API(cuMemPoolImportPointer, CUdeviceptr* pointer, CUmemoryPool handle, CUmemPoolPtrExportData* data) {
    PTM_REQUIRE(pointer && handle && data);
    return entry([&] { // also before a context is current: Python's children take buffers apart first
        const auto pool = find_handle<MemoryPool>(handle);
        if (!pool) return Status::invalid_value;
        const runtime::MemoryPlace& home = pool->properties().place;
        runtime::Context* const current = runtime::working_context();
        const int device = home.type == runtime::MemoryPlace::device ? home.id : 0;
        runtime::Context& context = current ? *current : *runtime::primary_context(device);
        runtime::FilePlace place;
        std::memcpy(static_cast<void*>(&place), data, sizeof place);
        runtime::DevicePointer opened = 0;
        const Status status = MemoryPool::import_pointer(pool, place, context, opened);
        if (status == Status::success) *pointer = opened;
        return status;
    });
}
