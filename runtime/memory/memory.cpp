// SPDX-License-Identifier: Apache-2.0
// Allocation and queries of device, pinned, registered and managed memory.
#include "runtime/memory/memory.h"

#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/memory/process_memory.h"
#include "runtime/memory/virtual_memory.h"
#include "runtime/stream/dispatcher.h"
#include "runtime/stream/stream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

/// cuMemFree and cuMemFreeHost return after the work that may still use the memory.
void wait_for_context(Context& context) {
    Dispatcher::get().wait_for_all(context);
}

std::uintptr_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Ordinal of the calling thread's device; any_device where no context is current.
int device_of_caller() {
    const Context* const context = working_context();
    return context ? context->device() : any_device;
}

bool freeable_by_mem_free(const Allocation& allocation) {
    const bool kind =
        allocation.kind == MemoryKind::device || allocation.pool || allocation.kind == MemoryKind::managed;
    return kind && !allocation.owned_by_module && !allocation.free_pending;
}

} // namespace

Status memory_allocate(Context& context, std::size_t size, DevicePointer& pointer) {
    Allocation allocation;
    AddressSpace& space = AddressSpace::get();
    Status status = space.allocate(size, MemoryKind::device, &context, allocation);
    if (status == Status::out_of_memory && end_kept_memory())
        status = space.allocate(size, MemoryKind::device, &context, allocation);
    if (status == Status::success) pointer = allocation.base;
    return status;
}

Status memory_allocate_pitch(Context& context, std::size_t width, std::size_t height, unsigned element_size,
                             DevicePointer& pointer, std::size_t& pitch) {
    if (element_size != 4 && element_size != 8 && element_size != 16) return Status::invalid_value;
    if (width == 0 || height == 0) return Status::invalid_value;
    const std::size_t rounded = (width + 511) / 512 * 512;
    if (rounded < width || rounded > SIZE_MAX / height) return Status::out_of_memory;
    const Status status = memory_allocate(context, rounded * height, pointer);
    if (status == Status::success) pitch = rounded;
    return status;
}

Status memory_free(Context& context, DevicePointer pointer) {
    if (pointer == 0) return Status::success;
    const auto allocation = AddressSpace::get().find(pointer);
    if (const auto owner = allocation ? allocation->owner.lock() : nullptr) {
        if (allocation->base != pointer || !owner->mark_free_pending()) return Status::invalid_value;
        wait_for_context(context);
        owner->free();
        return Status::success;
    }
    if (!allocation || allocation->base != pointer || !freeable_by_mem_free(*allocation)) return Status::invalid_value;
    wait_for_context(context);
    if (allocation->kind == MemoryKind::imported) return ProcessMemory::get().close(pointer);
    return AddressSpace::get().free(pointer, freeable_by_mem_free);
}

Status memory_info(Context& context, std::size_t& free, std::size_t& total) {
    const AddressSpace& space = AddressSpace::get();
    total = space.capacity();
    free = total - std::min(total, space.bytes_in_use(context.device()));
    return Status::success;
}

Status memory_address_range(DevicePointer pointer, DevicePointer& base, std::size_t& size) {
    const auto allocation = AddressSpace::get().find(pointer);
    const bool elsewhere = allocation && allocation->kind == MemoryKind::pinned && allocation->pool;
    if (!allocation || elsewhere || allocation->access == 0 || !allocation->is_reached_by(device_of_caller()))
        return Status::not_found;
    base = allocation->base;
    size = allocation->size;
    return Status::success;
}

Status host_allocate(Context& context, std::size_t size, unsigned flags, void*& pointer) {
    if (flags & ~7u) return Status::invalid_value;
    pointer = nullptr;
    if (size == 0) return Status::success;
    AddressSpace& space = AddressSpace::get();
    Allocation allocation;
    const Status status = space.allocate(size, MemoryKind::pinned, &context, allocation);
    if (status != Status::success) return status;
    pointer = reinterpret_cast<void*>(allocation.base);
    return space.annotate(allocation.base, [flags](Allocation& record) { record.flags = flags; });
}

Status host_free(Context& context, void* pointer) {
    if (!pointer) return Status::success;
    const auto is_pinned = [](const Allocation& allocation) {
        return allocation.kind == MemoryKind::pinned && !allocation.pool;
    };
    const auto allocation = AddressSpace::get().find(address_of(pointer));
    if (!allocation || !is_pinned(*allocation)) return Status::invalid_value;
    wait_for_context(context);
    return AddressSpace::get().free(address_of(pointer), is_pinned);
}

namespace {

/// True if every page of the range is mapped: msync() says so without touching any of them.
bool is_mapped(std::uintptr_t address, std::size_t size) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = address / page * page;
    return msync(reinterpret_cast<void*>(first), address + size - first, MS_ASYNC) == 0;
}

/// True if the program may read every page of a mapped range, and write to it if `writes`; also where nobody says.
bool is_accessible(std::uintptr_t address, std::size_t size, bool writes) {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return true;
    bool allowed = true;
    char line[512], mode[5] = {};
    unsigned long begin = 0, end = 0;
    while (allowed && std::fgets(line, sizeof line, maps)) {
        if (std::sscanf(line, "%lx-%lx %4s", &begin, &end, mode) != 3 || end <= address) continue;
        if (begin >= address + size) break;
        allowed = mode[0] == 'r' && (!writes || mode[1] == 'w');
    }
    std::fclose(maps);
    return allowed;
}

} // namespace

Status host_register(Context& context, void* pointer, std::size_t size, unsigned flags) {
    constexpr unsigned known_flags = 11; // portable, device map, read only; nothing here is I/O memory (4)
    if (!pointer || size == 0 || (flags & ~known_flags)) return Status::invalid_value;
    if (address_of(pointer) + size < address_of(pointer)) return Status::invalid_value;
    constexpr std::uintptr_t address_end = std::uintptr_t{1} << 47;
    if (address_of(pointer) >= address_end) return Status::not_supported;
    constexpr unsigned read_only = 8;
    const bool writes = !(flags & read_only);
    if (!is_mapped(address_of(pointer), size) || // copies will take it for memory that is there
        !is_accessible(address_of(pointer), size, writes))
        return Status::invalid_value;
    Allocation allocation;
    allocation.base = address_of(pointer);
    allocation.size = size;
    allocation.kind = MemoryKind::registered;
    allocation.context = &context;
    allocation.device = context.device();
    allocation.flags = flags;
    allocation.access = writes ? 3 : 1;
    return AddressSpace::get().add(allocation);
}

Status host_unregister(Context& context, void* pointer) {
    if (!pointer) return Status::invalid_value;
    const auto allocation = AddressSpace::get().find(address_of(pointer));
    if (!allocation) return Status::host_memory_not_registered;
    if (allocation->kind != MemoryKind::registered || allocation->base != address_of(pointer))
        return Status::invalid_value;
    wait_for_context(context);
    return AddressSpace::get().remove(address_of(pointer), MemoryKind::registered) ? Status::success
                                                                                   : Status::host_memory_not_registered;
}

Status host_device_pointer(void* host, unsigned flags, DevicePointer& pointer) {
    if (flags != 0 || !host) return Status::invalid_value;
    const auto allocation = AddressSpace::get().find(address_of(host));
    if (!allocation || !allocation->is_host()) return Status::invalid_value;
    pointer = address_of(host);
    return Status::success;
}

Status host_flags(void* host, unsigned& flags) {
    constexpr unsigned device_map = 2;
    const auto allocation = AddressSpace::get().find(address_of(host));
    if (!allocation || !allocation->is_host()) return Status::invalid_value;
    constexpr unsigned told = 7;
    flags = (allocation->flags & told) | device_map; // every context maps host memory
    return Status::success;
}

Status managed_allocate(Context& context, std::size_t size, unsigned flags, DevicePointer& pointer) {
    if (flags != 1 && flags != 2) return Status::invalid_value;
    AddressSpace& space = AddressSpace::get();
    Allocation allocation;
    const Status status = space.allocate(size, MemoryKind::managed, &context, allocation);
    if (status != Status::success) return status;
    pointer = allocation.base;
    return space.annotate(allocation.base, [flags](Allocation& record) { record.flags = flags; });
}

namespace {

/// Writes a value in the size that CUDA's attribute has.
template <class T> Status put(void* destination, T value) {
    std::memcpy(destination, &value, sizeof value);
    return Status::success;
}

/// The memory behind an allocation that the driver has got in one piece: [begin, begin + size).
void mapping_of(const Allocation& allocation, std::uintptr_t& begin, std::size_t& size) {
    constexpr std::size_t page = 4096, pool_piece = std::size_t{32} << 20;
    const bool whole_pages = allocation.kind == MemoryKind::registered;
    const std::size_t unit = whole_pages ? page : AddressSpace::granule;
    begin = allocation.base / unit * unit;
    size = allocation.pool ? pool_piece : (allocation.end() - begin + unit - 1) / unit * unit;
}

/// Attribute of a known allocation; the numbers are CUpointer_attribute's.
Status known_pointer_attribute(const Allocation& allocation, int attribute, DevicePointer pointer, void* value) {
    const MemoryKind kind = allocation.kind;
    const bool host = allocation.is_host() || allocation.on_host, managed = kind == MemoryKind::managed;
    const bool mapped = kind == MemoryKind::mapped;
    const bool of_host_pool = kind == MemoryKind::pinned && allocation.pool;
    const bool of_context = !allocation.pool && !mapped && !(managed && allocation.owned_by_module);
    const bool for_host = (host && !mapped) || managed; // the host has an address of it
    constexpr unsigned type_host = 1, type_device = 2;
    std::uintptr_t first = 0;
    std::size_t size = 0;
    mapping_of(allocation, first, size);
    switch (attribute) {
    case 1: return put<const void*>(value, of_context ? allocation.context : nullptr);
    case 2: return put(value, host ? type_host : type_device);
    case 3:
        if (allocation.access && !of_host_pool && allocation.is_reached_by(device_of_caller()))
            return put(value, pointer);
        static_cast<void>(put<void*>(value, nullptr));
        return Status::invalid_value;
    case 4:
        if (for_host) return put(value, pointer);
        static_cast<void>(put<void*>(value, nullptr)); // the driver zeroes it and fails
        return Status::invalid_value;
    case 5:
        if (host) return Status::invalid_value;
        // Who asks for these lets others read the memory.
        static_cast<void>(
            AddressSpace::get().annotate(allocation.base, [](Allocation& record) { record.sync_memops = true; }));
        return put<std::uint64_t>(value, 0);
    case 6: return put<unsigned>(value, allocation.sync_memops);
    case 7: return put(value, allocation.id);
    case 8: return put<unsigned>(value, managed);
    case 9: return put<int>(value, allocation.device);
    case 10: return put<unsigned>(value, kind == MemoryKind::device && !allocation.owned_by_module);
    case 11: return put<std::uint64_t>(value, of_host_pool ? 0 : mapped ? allocation.reservation : allocation.base);
    case 12: return put<std::uint64_t>(value, mapped ? allocation.reserved : allocation.size);
    case 13: return put<unsigned>(value, 1);
    case 14: return put<std::uint64_t>(value, static_cast<std::uint64_t>(allocation.handle_types));
    case 15: return put<unsigned>(value, 0); // no RDMA
    case 16: return put<unsigned>(value, allocation.access);
    case 17: return put<const void*>(value, allocation.pool.get());
    case 18: return put<std::uint64_t>(value, mapped ? allocation.size : size);
    case 19: return put<std::uint64_t>(value, first);
    case 20: return put<std::uint64_t>(value, first / AddressSpace::granule);
    case 21: return put<unsigned>(value, 0);
    default: return Status::invalid_value;
    }
}

/// Bytes that an attribute's value has.
std::size_t attribute_size(int attribute) {
    switch (attribute) {
    case 2:
    case 6:
    case 8:
    case 9:
    case 10:
    case 13:
    case 15:
    case 16:
    case 21: return 4;
    case 5: return 16;
    default: return 8;
    }
}

} // namespace

Status set_sync_memops(DevicePointer pointer, bool on) {
    const auto allocation = AddressSpace::get().find(pointer);
    if (!allocation) return Status::invalid_value;
    return AddressSpace::get().annotate(allocation->base, [on](Allocation& record) { record.sync_memops = on; });
}

Status pointer_attribute(int attribute, DevicePointer pointer, void* value, bool plural) {
    if (attribute < 1 || attribute > 21 || !value) return Status::invalid_value;
    constexpr int host_pointer = 4, tokens = 5, ordinal = 9, range_start = 11, range_size = 12;
    if (plural && attribute == tokens) return Status::invalid_value;
    auto allocation = AddressSpace::get().find(pointer);
    if (const auto owner = allocation ? allocation->owner.lock() : nullptr; owner && !owner->is_held()) allocation = {};
    const Status status =
        allocation ? known_pointer_attribute(*allocation, attribute, pointer, value) : Status::invalid_value;
    if (status == Status::success || !plural) return status;
    // cuPointerGetAttributes succeeds for any address and leaves zeros; the ordinal of nothing is
    // -2.
    if (!allocation && attribute == host_pointer) return put(value, pointer);
    if (!allocation && (attribute == range_start || attribute == range_size)) {
        std::uintptr_t begin = 0;
        std::size_t size = 0;
        if (!VirtualMemory::get().reservation(pointer, begin, size)) return Status::success; // left as it is
        return put<std::uint64_t>(value, attribute == range_start ? begin : size);
    }
    std::memset(value, 0, attribute_size(attribute));
    if (!allocation && attribute == ordinal) return put<int>(value, -2);
    return Status::success;
}

} // namespace ptarmigan::runtime
