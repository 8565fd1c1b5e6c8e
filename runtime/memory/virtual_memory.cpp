// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/virtual_memory.h"

#include "runtime/base/host_access.h"
#include "runtime/base/log.h"
#include "runtime/device/device.h"
#include "runtime/memory/address_pool.h"
#include "runtime/memory/outside_writes.h"
#include "runtime/memory/process_memory.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint64_t physical_note = 0x7974706870617470; // "ptaphpty"
constexpr unsigned no_access = 0, read_access = 1, read_write_access = 3;

int protection_of(unsigned access) {
    return access == no_access ? PROT_NONE : access == read_access ? PROT_READ : PROT_READ | PROT_WRITE;
}

bool on_host(const MemoryPlace& place) {
    return place.type != MemoryPlace::device;
}

constexpr unsigned short usage_tile_pool = 1; ///< for sparse arrays only

/// Whether there is memory of that kind at that place. Handle types that nobody has named yet are taken, as a GPU's
/// driver does.
Status check_properties(const PhysicalProperties& properties) {
    constexpr int pinned = 1, file_descriptor = 1, windows = 2 | 4, fabric = 8;
    constexpr unsigned char generic_compression = 1;
    if (properties.type != pinned || properties.compression > generic_compression) return Status::invalid_value;
    if (properties.handle_types & windows) return Status::invalid_value;
    switch (properties.place.type) {
    case MemoryPlace::device:
        if (properties.place.id < 0 || properties.place.id >= Device::count()) return Status::invalid_device;
        break;
    case MemoryPlace::host:
        if (properties.handle_types & file_descriptor) return Status::invalid_value;
        break;
    case MemoryPlace::host_numa:
        if (properties.place.id != 0) return Status::invalid_value; // one node is told of
        break;
    default: return Status::invalid_value;
    }
    return properties.handle_types & fabric ? Status::not_supported : Status::success;
}

} // namespace

/// Memory of cuMemCreate. Its pages are those of its only map, the process's own, until something else has to see them,
/// and then a file's. Everything but the constants is guarded by VirtualMemory's mutex.
struct VirtualMemory::Physical {
    Physical(std::size_t bytes, const PhysicalProperties& its_properties) : size(bytes), properties(its_properties) {}
    ~Physical() {
        if (charged) AddressSpace::get().discharge(properties.place.id, size);
    }
    Physical(const Physical&) = delete;
    Physical& operator=(const Physical&) = delete;

    const std::size_t size;
    const PhysicalProperties properties;
    std::shared_ptr<MulticastTeam> team; ///< instead of memory
    FileDescriptor file;
    std::uintptr_t own_pages = 0; ///< where they are, without a file
    bool charged = false;         ///< counts as the device's
    unsigned references = 1;      ///< of handles
    unsigned maps = 0;
};

unsigned VirtualMemory::Map::any_device_access() const {
    unsigned any = no_access;
    for (const std::uint8_t access : device_access) any |= access;
    return any;
}

VirtualMemory& VirtualMemory::get() {
    static auto* memory = new VirtualMemory; // never destroyed: programs call in from their exit handlers
    return *memory;
}

Status VirtualMemory::reserve(std::size_t size, std::size_t alignment, std::uintptr_t wish, std::uintptr_t& address) {
    if (size == 0 || size % granularity != 0) return Status::invalid_value;
    constexpr std::size_t address_end = std::size_t{1} << 47; // what a process has
    if (alignment & (alignment - 1)) return Status::invalid_value;
    alignment = std::max(alignment, granularity);
    if (wish % alignment != 0 || alignment > address_end) return Status::invalid_value;
    if (wish >= address_end || size >= address_end || alignment >= address_end / 2) return Status::out_of_memory;
    const std::uintptr_t place = AddressPool::get().take(size, alignment, wish);
    if (place == 0) return Status::out_of_memory;
    std::lock_guard lock(mutex_);
    reservations_.emplace(place, size);
    address = place;
    return Status::success;
}

Status VirtualMemory::unreserve(std::uintptr_t address, std::size_t size) {
    std::lock_guard lock(mutex_);
    const auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second != size) return Status::invalid_value;
    const auto map = maps_.lower_bound(address);
    if (map != maps_.end() && map->first < address + size) return Status::invalid_value;
    reservations_.erase(found);
    AddressPool::get().give_back(address, size);
    return Status::success;
}

Status VirtualMemory::create(std::size_t size, const PhysicalProperties& properties, PhysicalHandle& handle) {
    if (const Status status = check_properties(properties); status != Status::success) return status;
    if (size == 0 || size % granularity != 0) return Status::invalid_value;
    auto memory = std::make_shared<Physical>(size, properties);
    if (!on_host(properties.place)) {
        if (!AddressSpace::get().charge(properties.place.id, size)) return Status::out_of_memory;
        memory->charged = true;
    } else if (size > AddressSpace::get().capacity()) {
        return Status::out_of_memory;
    }
    handle = reinterpret_cast<PhysicalHandle>(memory.get());
    std::lock_guard lock(mutex_);
    handles_.emplace(handle, std::move(memory));
    return Status::success;
}

Status VirtualMemory::create(std::shared_ptr<MulticastTeam> team, PhysicalHandle& handle) {
    auto object = std::make_shared<Physical>(team->size(), PhysicalProperties{});
    object->team = std::move(team);
    handle = reinterpret_cast<PhysicalHandle>(object.get());
    std::lock_guard lock(mutex_);
    handles_.emplace(handle, std::move(object));
    return Status::success;
}

Status VirtualMemory::team(PhysicalHandle handle, std::shared_ptr<MulticastTeam>& team) const {
    std::lock_guard lock(mutex_);
    const auto object = find(handle);
    if (!object || !object->team) return Status::invalid_value;
    team = object->team;
    return Status::success;
}

Status VirtualMemory::bind(MulticastTeam& team, int device, std::size_t offset, Physical& memory,
                           std::size_t memory_offset, std::size_t size) {
    const int home = memory.properties.place.id;
    if (memory.team || on_host(memory.properties.place) || size > memory.size || memory_offset > memory.size - size)
        return Status::invalid_value;
    if (device != any_device && device != home) return Status::invalid_device;
    if (!share(memory)) return Status::out_of_memory;
    return team.bind(home, offset, size, memory.file.get(), memory_offset);
}

Status VirtualMemory::bind(MulticastTeam& team, int device, std::size_t offset, PhysicalHandle handle,
                           std::size_t memory_offset, std::size_t size) {
    std::lock_guard lock(mutex_);
    const auto memory = find(handle);
    return memory ? bind(team, device, offset, *memory, memory_offset, size) : Status::invalid_value;
}

Status VirtualMemory::bind_address(MulticastTeam& team, int device, std::size_t offset, std::uintptr_t address,
                                   std::size_t size) {
    {
        std::lock_guard lock(mutex_);
        auto map = maps_.upper_bound(address);
        if (map != maps_.begin() && address - std::prev(map)->first < std::prev(map)->second.size)
            return bind(team, device, offset, *std::prev(map)->second.memory, address - std::prev(map)->first, size);
    }
    SharedAllocation shared;
    const Status status = AddressSpace::get().share(address, shared);
    if (status != Status::success) return status;
    const Allocation& allocation = shared.allocation;
    if (!allocation.is_device_only() || size > allocation.end() - address) return Status::invalid_value;
    if (device != any_device && device != allocation.device) return Status::invalid_device;
    return team.bind(allocation.device, offset, size, shared.file, shared.offset + (address - allocation.base));
}

Status VirtualMemory::map_team(std::uintptr_t address, std::size_t size, std::size_t offset,
                               const std::shared_ptr<Physical>& memory) {
    if (offset % granularity != 0 || size % granularity != 0 || size > memory->size || offset > memory->size - size ||
        !memory->team->is_complete())
        return Status::invalid_value;
    Allocation allocation;
    allocation.base = address;
    allocation.size = size;
    allocation.kind = MemoryKind::mapped;
    allocation.access = no_access; // copies and fills of the driver's may not use it
    const auto reservation = std::prev(reservations_.upper_bound(address));
    allocation.reservation = reservation->first;
    allocation.reserved = reservation->second;
    const Status status = AddressSpace::get().add(allocation);
    if (status != Status::success) return status; // the program's own memory is registered there
    MulticastMaps::get().add(address, size, memory->team, offset);
    ++memory->maps;
    maps_.emplace(address, Map{size, memory, {}, 0});
    return Status::success;
}

std::shared_ptr<VirtualMemory::Physical> VirtualMemory::find(PhysicalHandle handle) const {
    const auto found = handles_.find(handle);
    return found == handles_.end() ? nullptr : found->second;
}

Status VirtualMemory::release(PhysicalHandle handle) {
    std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    if (found == handles_.end()) return Status::invalid_value;
    if (--found->second->references == 0) handles_.erase(found); // maps hold it, too
    return Status::success;
}

Status VirtualMemory::retain(std::uintptr_t address, PhysicalHandle& handle) {
    std::lock_guard lock(mutex_);
    auto map = maps_.upper_bound(address);
    if (map == maps_.begin()) return Status::invalid_value;
    --map;
    if (address - map->first >= map->second.size) return Status::invalid_value;
    const std::shared_ptr<Physical>& memory = map->second.memory;
    handle = reinterpret_cast<PhysicalHandle>(memory.get());
    ++memory->references;
    handles_.emplace(handle, memory);
    return Status::success;
}

Status VirtualMemory::properties(PhysicalHandle handle, PhysicalProperties& properties) const {
    std::lock_guard lock(mutex_);
    const auto memory = find(handle);
    if (!memory) return Status::invalid_value;
    constexpr int file_descriptor = 1;
    properties = memory->properties;
    properties.handle_types &= file_descriptor;
    if (properties.place.type == MemoryPlace::host) properties.place = {MemoryPlace::host_numa, 0};
    // What was wished for and is not so: nothing is compressed here, and no other device reaches it.
    properties.compression = properties.rdma = 0;
    properties.usage = 0;
    return Status::success;
}

/// Gives the memory a file, with what its only map shows.
bool VirtualMemory::share(Physical& memory) {
    if (memory.file) return true;
    FileNote note;
    note.kind = physical_note;
    note.words[0] = static_cast<std::uint64_t>(memory.properties.type);
    note.words[1] = static_cast<std::uint64_t>(memory.properties.place.type);
    const MemoryPlace& place = memory.properties.place;
    note.words[2] = static_cast<std::uint64_t>(on_host(place) ? place.id : Device::get(place.id).number());
    FileDescriptor file = make_shared_file(memory.size, note);
    if (!file) return false;
    if (memory.own_pages != 0) {
        const Map& map = maps_.at(memory.own_pages);
        const int protection = protection_of(map.any_device_access() | map.host_access);
        const DeviceMemoryUse use;
        if (!move_to_file(memory.own_pages, memory.size, file.get(), protection)) return false;
        if (!on_host(memory.properties.place)) HostAccess::protect(memory.own_pages, memory.size, protection);
        memory.own_pages = 0;
    }
    memory.file = std::move(file);
    return true;
}

/// Reservations side by side are one.
bool VirtualMemory::is_reserved(std::uintptr_t address, std::size_t size) const {
    std::uintptr_t covered = address;
    while (covered - address < size) {
        auto reservation = reservations_.upper_bound(covered);
        if (reservation == reservations_.begin()) return false;
        --reservation;
        if (covered - reservation->first >= reservation->second) return false;
        covered = reservation->first + reservation->second;
    }
    return true;
}

Status VirtualMemory::map(std::uintptr_t address, std::size_t size, std::size_t offset, PhysicalHandle handle) {
    std::lock_guard lock(mutex_);
    const auto memory = find(handle);
    if (size == 0 || address % granularity != 0 || !memory || size > SIZE_MAX - address) return Status::invalid_value;
    if (memory->properties.usage & usage_tile_pool) return Status::invalid_value;
    if (!memory->team && (offset != 0 || size != memory->size)) return Status::not_supported;
    if (!is_reserved(address, size)) return Status::invalid_value;
    const auto next = maps_.lower_bound(address);
    if (next != maps_.end() && next->first < address + size) return Status::invalid_value;
    if (next != maps_.begin() && std::prev(next)->first + std::prev(next)->second.size > address)
        return Status::invalid_value;
    if (memory->team) return map_team(address, size, offset, memory);
    const bool own_pages = !memory->file && memory->maps == 0;
    if (own_pages) {
        memory->own_pages = address; // the reservation's own addresses; they are opened by set_access()
    } else if (!share(*memory) || map_shared(address, size, memory->file.get(), 0, PROT_NONE) == 0) {
        return Status::out_of_memory;
    }
    Allocation allocation;
    allocation.base = address;
    allocation.size = size;
    allocation.kind = MemoryKind::mapped;
    allocation.handle_types = memory->properties.handle_types;
    if (!on_host(memory->properties.place)) allocation.device = memory->properties.place.id;
    allocation.on_host = on_host(memory->properties.place);
    allocation.access = no_access;
    auto reservation = std::prev(reservations_.upper_bound(address));
    allocation.reservation = reservation->first;
    allocation.reserved = reservation->second;
    const Status status = AddressSpace::get().add(allocation);
    if (status != Status::success) { // the program's own memory is registered there
        if (own_pages)
            memory->own_pages = 0;
        else
            unmap_to_nothing(address, size);
        return status;
    }
    ++memory->maps;
    maps_.emplace(address, Map{size, memory});
    return Status::success;
}

void VirtualMemory::drop_map(std::map<std::uintptr_t, Map>::iterator map) {
    static_cast<void>(AddressSpace::get().remove(map->first, MemoryKind::mapped));
    Physical& memory = *map->second.memory;
    --memory.maps;
    if (memory.team) {
        MulticastMaps::get().remove(map->first);
        maps_.erase(map);
        return;
    }
    if (memory.own_pages == map->first) memory.own_pages = 0;
    HostAccess::forget(map->first, map->second.size);
    unmap_to_nothing(map->first, map->second.size);
    maps_.erase(map);
}

Status VirtualMemory::unmap(std::uintptr_t address, std::size_t size) {
    const OutsideWrite ends; // of what is known of its contents
    std::lock_guard lock(mutex_);
    if (size == 0 || size > SIZE_MAX - address || !is_reserved(address, size)) return Status::invalid_value;
    const auto first = maps_.lower_bound(address), last = maps_.lower_bound(address + size);
    const auto cut = [](auto map, std::uintptr_t at) { return map->first < at && at < map->first + map->second.size; };
    if (first != maps_.begin() && cut(std::prev(first), address)) return Status::invalid_value;
    if (last != maps_.begin() && cut(std::prev(last), address + size)) return Status::invalid_value;
    // What handles still mean keeps its contents.
    for (auto map = first; map != last; ++map) {
        Physical& memory = *map->second.memory;
        if (memory.own_pages != 0 && memory.references != 0 && !share(memory)) return Status::out_of_memory;
    }
    for (auto map = first; map != last;) drop_map(map++);
    return Status::success;
}

Status VirtualMemory::set_access(std::uintptr_t address, std::size_t size, std::span<const AccessWish> wishes) {
    std::lock_guard lock(mutex_);
    // From the begin of a map to the end of one; there may be holes between.
    const auto first = maps_.find(address);
    if (first == maps_.end() || size == 0 || size > SIZE_MAX - address) return Status::invalid_value;
    const auto last = maps_.lower_bound(address + size);
    if (std::prev(last)->first + std::prev(last)->second.size != address + size) return Status::invalid_value;
    for (const AccessWish& wish : wishes) {
        const bool here = wish.place.type == MemoryPlace::device;
        if (wish.place.type != MemoryPlace::device && wish.place.type != MemoryPlace::host &&
            wish.place.type != MemoryPlace::host_numa)
            return Status::invalid_value;
        if (here && (wish.place.id < 0 || wish.place.id >= Device::count())) return Status::invalid_value;
        if (wish.flags != no_access && wish.flags != read_access && wish.flags != read_write_access)
            return Status::invalid_value;
        for (auto map = first; map != last; ++map) {
            const Physical& memory = *map->second.memory;
            if (!here && !on_host(memory.properties.place)) return Status::not_supported;
            if (memory.team && !memory.team->has(wish.place.id)) return Status::invalid_device;
        }
    }
    for (auto map = first; map != last; ++map) {
        Map& changed = map->second;
        for (const AccessWish& wish : wishes)
            if (wish.place.type == MemoryPlace::device)
                changed.device_access[static_cast<std::size_t>(wish.place.id)] = static_cast<std::uint8_t>(wish.flags);
            else
                changed.host_access = wish.flags;
        if (changed.memory->team) {
            MulticastMaps::get().set_access(map->first, changed.any_device_access() == read_write_access);
            continue;
        }
        const int protection = protection_of(changed.any_device_access() | changed.host_access);
        const bool guarded = !on_host(changed.memory->properties.place);
        const bool set = guarded ? HostAccess::protect(map->first, changed.size, protection)
                                 : mprotect(reinterpret_cast<void*>(map->first), changed.size, protection) == 0;
        if (!set) return Status::out_of_memory;
        if (changed.memory->own_pages == map->first)
            madvise(reinterpret_cast<void*>(map->first), changed.size, MADV_HUGEPAGE);
        static_cast<void>(AddressSpace::get().annotate(map->first, [&](Allocation& record) {
            record.access = changed.any_device_access();
            record.access_by_device = 0;
            for (std::size_t device = 0; device < changed.device_access.size(); ++device)
                record.access_by_device |= std::uint32_t{changed.device_access[device]} << 2 * device;
        }));
    }
    return Status::success;
}

Status VirtualMemory::access(std::uintptr_t address, MemoryPlace place, unsigned& flags) const {
    const bool here = place.type == MemoryPlace::device;
    if (here ? place.id < 0 || place.id >= Device::count()
             : place.type != MemoryPlace::host && place.type != MemoryPlace::host_numa)
        return Status::invalid_device;
    flags = no_access;
    std::lock_guard lock(mutex_);
    auto map = maps_.upper_bound(address);
    if (map != maps_.begin() && address - std::prev(map)->first < std::prev(map)->second.size) {
        const Map& found = std::prev(map)->second;
        // A GPU's driver gives the host the device's access to the device's memory, which is so here.
        const MemoryPlace& home = found.memory->properties.place;
        const bool as_device = place.type == MemoryPlace::host && !on_host(home);
        if (here)
            flags = found.device_access[static_cast<std::size_t>(place.id)];
        else if (as_device)
            flags = found.any_device_access();
        else
            flags = found.host_access;
        return Status::success;
    }
    // Of what was not mapped the driver knows that it exists, and no more.
    return AddressSpace::get().range(address, 1).known ? Status::success : Status::invalid_value;
}

Status VirtualMemory::export_file(PhysicalHandle handle, int& file) {
    std::lock_guard lock(mutex_);
    const auto memory = find(handle);
    constexpr int file_descriptor = 1;
    if (memory && memory->team) {
        log_once("multicast", "multicast objects are of one process: they have no handles for others");
        return Status::not_supported;
    }
    if (!memory || !(memory->properties.handle_types & file_descriptor)) return Status::invalid_value;
    if (!share(*memory)) return Status::out_of_memory;
    const int copy = fcntl(memory->file.get(), F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return Status::operating_system;
    file = copy;
    return Status::success;
}

Status VirtualMemory::import_file(int file, PhysicalHandle& handle) {
    FileNote note;
    std::size_t size = 0;
    if (!read_shared_file(file, size, note) || note.kind != physical_note || size == 0 || size % granularity != 0)
        return Status::unknown;
    FileDescriptor copy(fcntl(file, F_DUPFD_CLOEXEC, 3));
    if (!copy) return Status::operating_system;
    PhysicalProperties properties;
    properties.type = static_cast<int>(note.words[0]);
    properties.place = {static_cast<int>(note.words[1]), static_cast<int>(note.words[2])};
    if (!on_host(properties.place)) {
        properties.place.id = ordinal_of_device(properties.place.id);
        if (properties.place.id < 0) return Status::invalid_device;
    }
    if (check_properties(properties) != Status::success) return Status::unknown;
    auto memory = std::make_shared<Physical>(size, properties);
    memory->file = std::move(copy);
    handle = reinterpret_cast<PhysicalHandle>(memory.get());
    std::lock_guard lock(mutex_);
    handles_.emplace(handle, std::move(memory));
    return Status::success;
}

bool VirtualMemory::reservation(std::uintptr_t address, std::uintptr_t& begin, std::size_t& size) const {
    std::lock_guard lock(mutex_);
    const auto next = reservations_.upper_bound(address);
    if (next == reservations_.begin()) return false;
    begin = std::prev(next)->first;
    size = std::prev(next)->second;
    return address - begin < size;
}

const char* VirtualMemory::describe(std::uintptr_t address) const {
    std::lock_guard lock(mutex_);
    if (auto map = maps_.upper_bound(address); map != maps_.begin()) {
        --map;
        const unsigned access = map->second.any_device_access();
        if (address - map->first < map->second.size && map->second.memory->team)
            return "multicast memory, which only multimem instructions may use, of devices that have access "
                   "(cuMemSetAccess), where memory of each is bound (cuMulticastBindMem)";
        if (address - map->first < map->second.size)
            return access == no_access     ? "mapped, but no access was set for the device (cuMemSetAccess)"
                   : access == read_access ? "mapped for reading only (cuMemSetAccess)"
                                           : nullptr;
    }
    if (auto reservation = reservations_.upper_bound(address); reservation != reservations_.begin()) {
        --reservation;
        if (address - reservation->first < reservation->second)
            return "reserved (cuMemAddressReserve), but nothing is mapped there";
    }
    if (AddressPool::get().meets(address, 1) && !AddressSpace::get().range(address, 1).known)
        return "device memory that has been given back (cuMemAddressFree, cuIpcCloseMemHandle)";
    return nullptr;
}

} // namespace ptarmigan::runtime
