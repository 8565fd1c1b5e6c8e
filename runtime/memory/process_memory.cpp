// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/process_memory.h"

#include "runtime/base/host_access.h"
#include "runtime/context/context.h"
#include "runtime/device/device.h"
#include "runtime/memory/address_pool.h"
#include "runtime/memory/outside_writes.h"

#include <sys/mman.h>

namespace ptarmigan::runtime {

int ordinal_of_device(int number) {
    for (int ordinal = 0; ordinal < Device::count(); ++ordinal)
        if (Device::get(ordinal).number() == number) return ordinal;
    return -1;
}

ProcessMemory& ProcessMemory::get() {
    static auto* memory = new ProcessMemory; // never destroyed: programs call in from their exit handlers
    return *memory;
}

Status ProcessMemory::place_of(DevicePointer pointer, std::uint64_t kind, FilePlace& place) {
    SharedAllocation shared;
    if (const Status status = AddressSpace::get().share(pointer, shared); status != Status::success) return status;
    place = {};
    place.kind = kind;
    place.file = shared.file;
    place.offset = shared.offset;
    place.size = shared.allocation.size;
    place.id = shared.allocation.id;
    return name_place(place);
}

Status ProcessMemory::open(const FilePlace& place, Context& context, const std::shared_ptr<MemoryPool>& pool,
                           DevicePointer& pointer) {
    std::lock_guard lock(mutex_);
    for (auto& [address, import] : imports_)
        if (import.inode == place.inode && import.offset == place.offset &&
            import.context->device() == context.device()) {
            if (import.context != &context) return Status::invalid_handle;
            // The owner has to have it still.
            if (!open_place(place)) return Status::invalid_value;
            ++import.opened;
            pointer = address;
            return Status::success;
        }
    const FileDescriptor file = open_place(place);
    FileNote note;
    std::size_t size = 0;
    if (!file || !read_shared_file(file.get(), size, note)) return Status::invalid_value;
    if (place.size == 0 || place.offset > size || place.size > size - place.offset) return Status::invalid_value;
    const std::pair key(place.inode, context.device());
    auto window = windows_.find(key);
    if (window == windows_.end()) {
        Window made;
        made.size = size;
        made.base = AddressPool::get().take(size, AddressSpace::granule);
        if (made.base == 0) return Status::out_of_memory;
        if (map_shared(made.base, size, file.get(), 0, PROT_READ | PROT_WRITE) == 0) {
            AddressPool::get().give_back(made.base, size);
            return Status::out_of_memory;
        }
        HostAccess::protect(made.base, size, PROT_READ | PROT_WRITE);
        window = windows_.emplace(key, made).first;
    }
    Allocation allocation;
    allocation.base = window->second.base + place.offset;
    allocation.size = place.size;
    allocation.kind = MemoryKind::imported;
    allocation.context = &context;
    allocation.device = context.device();
    allocation.pool = pool;
    const Status status = AddressSpace::get().add(allocation);
    if (status != Status::success) {
        if (window->second.users == 0) {
            unmap(window->second);
            windows_.erase(window);
        }
        return status;
    }
    ++window->second.users;
    imports_.emplace(allocation.base, Import{place.inode, place.offset, 1, &context});
    pointer = allocation.base;
    return Status::success;
}

void ProcessMemory::unmap(const Window& window) {
    HostAccess::forget(window.base, window.size);
    unmap_to_nothing(window.base, window.size);
    AddressPool::get().give_back(window.base, window.size);
}

void ProcessMemory::end(std::map<std::uintptr_t, Import>::iterator import) {
    const OutsideWrite ends; // of what is known of its contents
    static_cast<void>(AddressSpace::get().remove(import->first, MemoryKind::imported));
    const auto window = windows_.find({import->second.inode, import->second.context->device()});
    if (--window->second.users == 0) {
        unmap(window->second);
        windows_.erase(window);
    }
    imports_.erase(import);
}

Status ProcessMemory::close(DevicePointer pointer) {
    std::lock_guard lock(mutex_);
    const auto import = imports_.find(pointer);
    if (import == imports_.end()) return Status::invalid_value;
    if (--import->second.opened == 0) end(import);
    return Status::success;
}

void ProcessMemory::close_all(const Context* context) {
    std::lock_guard lock(mutex_);
    for (auto import = imports_.begin(); import != imports_.end();) {
        const auto next = std::next(import);
        if (import->second.context == context) end(import);
        import = next;
    }
}

} // namespace ptarmigan::runtime
