// SPDX-License-Identifier: Apache-2.0
// The device heap inside a reserved range of host addresses, and the register of all other memory.
#include "runtime/memory/address_space.h"

#include "runtime/base/host_access.h"
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/context/peer_access.h"
#include "runtime/device/device.h"
#include "runtime/device/device_use.h"
#include "runtime/memory/managed_advice.h"
#include "runtime/memory/outside_writes.h"
#include "runtime/memory/pool.h"

#include <mutex>
#include <numeric>
#include <string>
#include <sys/mman.h>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

/// Allocations up to this size share granules; larger ones have granules of their own, like the
/// driver's.
constexpr std::size_t shared_granule_limit = AddressSpace::granule / 2;

/// In front of the first allocation, accessible and nobody's: on a GPU the driver's own memory lies there, 96 MiB and
/// more (H100, driver 580), and kernels that read a row before their data pass. Only touched pages cost memory.
constexpr std::size_t leading_bytes = std::size_t{32} << 20;

/// Of the reservation; other memory is only known of.
constexpr bool in_space(MemoryKind kind) {
    return kind != MemoryKind::registered && kind != MemoryKind::mapped && kind != MemoryKind::imported;
}

/// Managed and host memory is the host's: only device memory counts against the device's capacity.
constexpr bool counts(MemoryKind kind) {
    return kind == MemoryKind::device || kind == MemoryKind::pool;
}

} // namespace

bool Allocation::is_reached_by(int ordinal) const {
    if (ordinal == any_device) return true;
    if (kind == MemoryKind::mapped) return access_of(ordinal) != 0;
    const bool on_device = kind == MemoryKind::device || kind == MemoryKind::pool || kind == MemoryKind::imported;
    if (!on_device || device == ordinal) return true;
    unsigned flags = 0;
    if (pool) return pool->access({MemoryPlace::device, ordinal}, flags) == Status::success && flags != 0;
    return !owned_by_module && PeerAccess::get().allows(ordinal, context);
}

AddressSpace& AddressSpace::get() {
    static auto* space = new AddressSpace; // never destroyed: kernels may outlive static destructors
    return *space;
}

AddressSpace::AddressSpace() {
    capacity_ = Device::get().total_memory();
    const auto devices = static_cast<std::size_t>(Device::number_of_devices());
    in_use_.resize(devices);
    // Four times the capacity, so that ranges can stay unused for a while after a free and so catch
    // stale pointers.
    for (std::size_t size = capacity_ * devices * 4; size >= granule * 8; size /= 2) {
        void* base = mmap(nullptr, size + granule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) continue;
        reservation_ = round_up(reinterpret_cast<std::uintptr_t>(base), granule);
        reservation_size_ = size;
        break;
    }
    HostAccess::set_addresses(reservation_, reservation_size_);
    std::size_t leading = 0;
    if (reservation_size_ > leading_bytes * 2 &&
        mprotect(reinterpret_cast<void*>(reservation_), leading_bytes, PROT_READ | PROT_WRITE) == 0)
        leading = leading_bytes;
    const std::size_t usable = reservation_size_ - leading;
    if (usable / devices < capacity_) {
        log_once("reservation", "device memory is " + std::to_string(usable / devices >> 20) + " MiB, not " +
                                    std::to_string(capacity_ >> 20) + ": this process has no more room for addresses");
        capacity_ = usable / devices;
    }
    // Half of the addresses are as much as there are for device memory, then.
    const std::size_t for_host = HostAccess::is_guarded() ? usable / 2 / granule * granule : 0;
    if (usable != for_host) free_ranges_.emplace(reservation_ + leading, usable - for_host);
    if (for_host != 0) free_host_ranges_.emplace(reservation_ + reservation_size_ - for_host, for_host);
}

AddressSpace::Ranges& AddressSpace::ranges_for(MemoryKind kind) {
    return HostAccess::is_guarded() && !counts(kind) ? free_host_ranges_ : free_ranges_;
}

std::uintptr_t AddressSpace::take_range(Ranges& ranges, std::size_t size, std::size_t align) {
    const bool own_granules = size > shared_granule_limit;
    for (auto range = ranges.begin(); range != ranges.end(); ++range) {
        const std::uintptr_t begin = range->first, end = begin + range->second;
        std::uintptr_t place = round_up(begin, own_granules ? granule : align);
        // A small allocation never straddles a granule: one user count each.
        if (!own_granules && place / granule != (place + size - 1) / granule) place = round_up(place, granule);
        if (place < begin || place + size < place || place + size > end) continue;
        ranges.erase(range);
        if (place > begin) ranges.emplace(begin, place - begin);
        if (place + size < end) ranges.emplace(place + size, end - place - size);
        return place;
    }
    return 0;
}

void AddressSpace::give_range(Ranges& ranges, std::uintptr_t address, std::size_t size) {
    auto next = ranges.lower_bound(address);
    if (next != ranges.end() && address + size == next->first) {
        size += next->second;
        next = ranges.erase(next);
    }
    if (next != ranges.begin()) {
        auto previous = std::prev(next);
        if (previous->first + previous->second == address) {
            previous->second += size;
            return;
        }
    }
    ranges.emplace(address, size);
}

bool AddressSpace::commit(std::uintptr_t address, std::size_t size, MemoryKind kind) {
    const std::uintptr_t first = address / granule, last = (address + size - 1) / granule;
    const std::uintptr_t begin = first * granule;
    const std::size_t length = (last - first + 1) * granule;
    const bool fresh = granule_users_.find(first) == granule_users_.end();
    if (fresh) {
        void* memory = reinterpret_cast<void*>(begin);
        constexpr int protection = PROT_READ | PROT_WRITE;
        const bool opened =
            counts(kind) ? HostAccess::protect(begin, length, protection) : mprotect(memory, length, protection) == 0;
        if (!opened) return false;
        if (length >= 2 * granule) madvise(memory, length, MADV_HUGEPAGE);
    }
    for (std::uintptr_t index = first; index <= last; ++index) ++granule_users_[index];
    return true;
}

bool AddressSpace::has_room(int device, std::size_t size) const {
    return size <= capacity_ && in_use_[static_cast<std::size_t>(device)] <= capacity_ - size;
}

Status AddressSpace::allocate(std::size_t size, MemoryKind kind, Context* context, Allocation& allocation,
                              std::size_t align) {
    return allocate(size, kind, context, context ? context->device() : 0, allocation, align);
}

Status AddressSpace::allocate(std::size_t size, MemoryKind kind, Context* context, int device, Allocation& allocation,
                              std::size_t align) {
    if (size == 0) return Status::invalid_value;
    std::unique_lock lock(mutex_);
    if (size > reservation_size_) return Status::out_of_memory;
    if (counts(kind) && !has_room(device, size)) return Status::out_of_memory;
    const std::size_t reserved = round_up(size, size > shared_granule_limit ? granule : alignment);
    if (align < alignment) align = alignment;
    const std::uintptr_t address = take_range(ranges_for(kind), reserved, align);
    if (address == 0) return Status::out_of_memory;
    if (!commit(address, reserved, kind)) {
        give_range(ranges_for(kind), address, reserved);
        return Status::out_of_memory;
    }
    if (counts(kind)) set_in_use(device, in_use_[static_cast<std::size_t>(device)] + reserved);
    allocation = Allocation{};
    allocation.base = address;
    allocation.size = size;
    allocation.reserved = reserved;
    allocation.kind = kind;
    allocation.context = context;
    allocation.device = device;
    allocation.id = next_id_++;
    allocation.sync_memops = kind == MemoryKind::managed;
    allocations_.emplace(address, allocation);
    return Status::success;
}

void AddressSpace::release(const Allocation& allocation) {
    const std::size_t size = allocation.reserved;
    const std::uintptr_t first = allocation.base / granule;
    const std::uintptr_t last = (allocation.base + size - 1) / granule;
    bool empty = true;
    for (std::uintptr_t index = first; index <= last; ++index) {
        auto users = granule_users_.find(index);
        if (--users->second == 0)
            granule_users_.erase(users);
        else
            empty = false;
    }
    if (empty) {
        // One mmap gives the pages back and makes the range inaccessible again.
        HostAccess::forget(first * granule, (last - first + 1) * granule);
        unmap_to_nothing(first * granule, (last - first + 1) * granule);
        shared_.erase(first * granule);
    }
    if (counts(allocation.kind))
        set_in_use(allocation.device, in_use_[static_cast<std::size_t>(allocation.device)] - size);
    if (allocation.pool && !allocation.free_pending) allocation.pool->give_back(allocation.size);
    if (allocation.kind == MemoryKind::managed) ManagedAdvice::get().forget(allocation.base, allocation.end());
    give_range(ranges_for(allocation.kind), allocation.base, size);
}

Status AddressSpace::free(std::uintptr_t address, const std::function<bool(const Allocation&)>& accepts) {
    const OutsideWrite ends; // of what is known of its contents
    std::unique_lock lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() || !accepts(found->second)) return Status::invalid_value;
    const Allocation allocation = found->second;
    allocations_.erase(found);
    if (in_space(allocation.kind)) release(allocation);
    return Status::success;
}

Status AddressSpace::keep(std::uintptr_t address, const std::function<bool(const Allocation&)>& accepts,
                          Allocation& kept) {
    const OutsideWrite ends; // of what is known of its contents
    std::unique_lock lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() || !accepts(found->second)) return Status::invalid_value;
    kept = found->second;
    kept.pool = nullptr;
    allocations_.erase(found);
    return Status::success;
}

Allocation AddressSpace::reuse(const Allocation& kept, std::size_t size, Context* context) {
    Allocation allocation;
    allocation.base = kept.base;
    allocation.size = size;
    allocation.reserved = kept.reserved;
    allocation.kind = kept.kind;
    allocation.device = kept.device;
    allocation.context = context;
    std::unique_lock lock(mutex_);
    allocation.id = next_id_++;
    allocations_.emplace(allocation.base, allocation);
    return allocation;
}

void AddressSpace::end(const Allocation& kept) {
    std::unique_lock lock(mutex_);
    release(kept);
}

Status AddressSpace::add(Allocation allocation) {
    std::unique_lock lock(mutex_);
    auto next = allocations_.lower_bound(allocation.base);
    const auto taken = [](const Allocation& other) {
        return other.kind == MemoryKind::registered ? Status::host_memory_already_registered : Status::invalid_value;
    };
    if (next != allocations_.end() && next->first < allocation.end()) return taken(next->second);
    if (next != allocations_.begin() && std::prev(next)->second.end() > allocation.base)
        return taken(std::prev(next)->second);
    allocation.id = next_id_++;
    allocations_.emplace(allocation.base, allocation);
    return Status::success;
}

std::optional<Allocation> AddressSpace::remove(std::uintptr_t address, MemoryKind kind) {
    const OutsideWrite ends; // of what is known of its contents
    std::unique_lock lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() || found->second.kind != kind) return std::nullopt;
    const Allocation allocation = found->second;
    allocations_.erase(found);
    return allocation;
}

Status AddressSpace::mark_free_pending(std::uintptr_t address) {
    std::unique_lock lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end()) return Status::invalid_value;
    Allocation& allocation = found->second;
    const bool freeable =
        allocation.kind == MemoryKind::device || allocation.pool || allocation.kind == MemoryKind::managed;
    if (!freeable || allocation.owned_by_module || allocation.free_pending) return Status::invalid_value;
    allocation.free_pending = true;
    if (allocation.pool && in_space(allocation.kind)) allocation.pool->give_back(allocation.size);
    return Status::success;
}

Status AddressSpace::annotate(std::uintptr_t address, const std::function<void(Allocation&)>& edit) {
    std::unique_lock lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end()) return Status::invalid_value;
    edit(found->second);
    return Status::success;
}

std::optional<Allocation> AddressSpace::find(std::uintptr_t address) const {
    std::shared_lock lock(mutex_);
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return std::nullopt;
    const Allocation& allocation = std::prev(next)->second;
    if (address >= allocation.end()) return std::nullopt;
    return allocation;
}

KnownRange AddressSpace::range(std::uintptr_t address, std::size_t size, int device) const {
    KnownRange range;
    std::shared_lock lock(mutex_);
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return range;
    const Allocation& first = std::prev(next)->second;
    if (address >= first.end()) return range;
    range.known = true;
    range.host = first.is_host();
    range.reached = first.is_reached_by(device);
    range.lent = first.kind == MemoryKind::mapped || first.pool != nullptr;
    range.access = first.access_of(device);
    if (first.free_pending) return range;
    std::size_t covered = first.end() - address;
    // Memory that grows by maps is used as one.
    while (covered < size && first.kind == MemoryKind::mapped && next != allocations_.end() &&
           next->first == address + covered && next->second.kind == MemoryKind::mapped) {
        covered += next->second.size;
        range.access &= next->second.access_of(device);
        ++next;
    }
    range.whole = size <= covered;
    return range;
}

bool AddressSpace::is_known_range(std::uintptr_t address, std::size_t size, int device) const {
    const KnownRange known = range(address, size, device);
    return known.whole && known.access == 3 && known.reached;
}

Status AddressSpace::share(std::uintptr_t address, SharedAllocation& shared) {
    constexpr std::uint64_t granules_note = 0x72677379617074; // any other file is none of these
    std::unique_lock lock(mutex_);
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return Status::invalid_value;
    const Allocation& allocation = std::prev(next)->second;
    if (address >= allocation.end() || allocation.free_pending || !in_space(allocation.kind))
        return Status::invalid_value;
    const std::uintptr_t begin = allocation.base / granule * granule;
    auto granules = shared_.find(begin);
    if (granules == shared_.end()) {
        const std::size_t size = round_up(allocation.end() - begin, granule);
        FileDescriptor file = make_shared_file(size, FileNote{granules_note});
        const DeviceMemoryUse use;
        if (!file || !move_to_file(begin, size, file.get(), PROT_READ | PROT_WRITE)) return Status::out_of_memory;
        if (counts(allocation.kind)) HostAccess::protect(begin, size, PROT_READ | PROT_WRITE);
        granules = shared_.emplace(begin, SharedGranules{size, std::move(file)}).first;
    }
    shared = {allocation, granules->second.file.get(), allocation.base - begin};
    return Status::success;
}

void AddressSpace::set_in_use(int device, std::size_t bytes) {
    in_use_[static_cast<std::size_t>(device)] = bytes;
    device_use(static_cast<unsigned>(Device::get(device).number())).memory.store(bytes, std::memory_order_relaxed);
}

bool AddressSpace::charge(int device, std::size_t size) {
    std::unique_lock lock(mutex_);
    if (!has_room(device, size)) return false;
    set_in_use(device, in_use_[static_cast<std::size_t>(device)] + size);
    return true;
}

void AddressSpace::discharge(int device, std::size_t size) {
    std::unique_lock lock(mutex_);
    set_in_use(device, in_use_[static_cast<std::size_t>(device)] - size);
}

void AddressSpace::free_context(Context* context) {
    const OutsideWrite ends; // of what is known of its contents
    std::unique_lock lock(mutex_);
    for (auto entry = allocations_.begin(); entry != allocations_.end();) {
        if (entry->second.context != context) {
            ++entry;
            continue;
        }
        if (in_space(entry->second.kind)) release(entry->second);
        entry = allocations_.erase(entry);
    }
}

std::size_t AddressSpace::bytes_in_use(int device) const {
    std::shared_lock lock(mutex_);
    return in_use_[static_cast<std::size_t>(device)];
}

std::size_t AddressSpace::bytes_in_use() const {
    std::shared_lock lock(mutex_);
    return std::accumulate(in_use_.begin(), in_use_.end(), std::size_t{0});
}

} // namespace ptarmigan::runtime
