// SPDX-License-Identifier: Apache-2.0
// The device heap inside a reserved range of host addresses, and the register of all other memory.
#include "runtime/memory/address_space.h"

#include "runtime/base/log.h"
#include "runtime/device/device.h"
#include "runtime/memory/managed_advice.h"
#include "runtime/memory/outside_writes.h"
#include "runtime/memory/pool.h"

#include <mutex>
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

/// Managed and host memory is the host's: only device memory counts against the device's capacity.
constexpr bool counts(MemoryKind kind) {
    return kind == MemoryKind::device || kind == MemoryKind::pool;
}

} // namespace

AddressSpace& AddressSpace::get() {
    static auto* space = new AddressSpace; // never destroyed: kernels may outlive static destructors
    return *space;
}

AddressSpace::AddressSpace() {
    capacity_ = Device::get().total_memory();
    // Four times the capacity, so that ranges can stay unused for a while after a free and so catch
    // stale pointers.
    for (std::size_t size = capacity_ * 4; size >= granule * 8; size /= 2) {
        void* base = mmap(nullptr, size + granule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) continue;
        reservation_ = round_up(reinterpret_cast<std::uintptr_t>(base), granule);
        reservation_size_ = size;
        break;
    }
    std::size_t leading = 0;
    if (reservation_size_ > leading_bytes * 2 &&
        mprotect(reinterpret_cast<void*>(reservation_), leading_bytes, PROT_READ | PROT_WRITE) == 0)
        leading = leading_bytes;
    const std::size_t usable = reservation_size_ - leading;
    if (usable < capacity_) {
        log_once("reservation", "device memory is " + std::to_string(usable >> 20) + " MiB, not " +
                                    std::to_string(capacity_ >> 20) + ": this process has no more room for addresses");
        capacity_ = usable;
    }
    if (usable != 0) free_ranges_.emplace(reservation_ + leading, usable);
}

std::uintptr_t AddressSpace::take_range(std::size_t size, std::size_t align) {
    const bool own_granules = size > shared_granule_limit;
    for (auto range = free_ranges_.begin(); range != free_ranges_.end(); ++range) {
        const std::uintptr_t begin = range->first, end = begin + range->second;
        std::uintptr_t place = round_up(begin, own_granules ? granule : align);
        // A small allocation never straddles a granule: one user count each.
        if (!own_granules && place / granule != (place + size - 1) / granule) place = round_up(place, granule);
        if (place < begin || place + size < place || place + size > end) continue;
        free_ranges_.erase(range);
        if (place > begin) free_ranges_.emplace(begin, place - begin);
        if (place + size < end) free_ranges_.emplace(place + size, end - place - size);
        return place;
    }
    return 0;
}

void AddressSpace::give_range(std::uintptr_t address, std::size_t size) {
    auto next = free_ranges_.lower_bound(address);
    if (next != free_ranges_.end() && address + size == next->first) {
        size += next->second;
        next = free_ranges_.erase(next);
    }
    if (next != free_ranges_.begin()) {
        auto previous = std::prev(next);
        if (previous->first + previous->second == address) {
            previous->second += size;
            return;
        }
    }
    free_ranges_.emplace(address, size);
}

bool AddressSpace::commit(std::uintptr_t address, std::size_t size) {
    const std::uintptr_t first = address / granule, last = (address + size - 1) / granule;
    const std::uintptr_t begin = first * granule;
    const std::size_t length = (last - first + 1) * granule;
    const bool fresh = granule_users_.find(first) == granule_users_.end();
    if (fresh) {
        void* memory = reinterpret_cast<void*>(begin);
        if (mprotect(memory, length, PROT_READ | PROT_WRITE) != 0) return false;
        if (length >= 2 * granule) madvise(memory, length, MADV_HUGEPAGE);
    }
    for (std::uintptr_t index = first; index <= last; ++index) ++granule_users_[index];
    return true;
}

Status AddressSpace::allocate(std::size_t size, MemoryKind kind, Context* context, Allocation& allocation,
                              std::size_t align) {
    if (size == 0) return Status::invalid_value;
    std::unique_lock lock(mutex_);
    if (size > reservation_size_) return Status::out_of_memory;
    if (counts(kind) && (size > capacity_ || in_use_ > capacity_ - size)) return Status::out_of_memory;
    const std::size_t reserved = round_up(size, size > shared_granule_limit ? granule : alignment);
    if (align < alignment) align = alignment;
    const std::uintptr_t address = take_range(reserved, align);
    if (address == 0) return Status::out_of_memory;
    if (!commit(address, reserved)) {
        give_range(address, reserved);
        return Status::out_of_memory;
    }
    if (counts(kind)) in_use_ += reserved;
    allocation = Allocation{};
    allocation.base = address;
    allocation.size = size;
    allocation.kind = kind;
    allocation.context = context;
    allocation.id = next_id_++;
    allocations_.emplace(address, allocation);
    return Status::success;
}

void AddressSpace::release(const Allocation& allocation) {
    const bool own = allocation.size > shared_granule_limit;
    const std::size_t size = round_up(allocation.size, own ? granule : alignment);
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
        mmap(reinterpret_cast<void*>(first * granule), (last - first + 1) * granule, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    if (counts(allocation.kind)) in_use_ -= size;
    if (allocation.pool && !allocation.free_pending) allocation.pool->give_back(allocation.size);
    if (allocation.kind == MemoryKind::managed) ManagedAdvice::get().forget(allocation.base, allocation.end());
    give_range(allocation.base, size);
}

Status AddressSpace::free(std::uintptr_t address, const std::function<bool(const Allocation&)>& accepts) {
    const OutsideWrite ends; // of what is known of its contents
    std::unique_lock lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() || !accepts(found->second)) return Status::invalid_value;
    const Allocation allocation = found->second;
    allocations_.erase(found);
    if (allocation.kind != MemoryKind::registered) release(allocation);
    return Status::success;
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
    if (allocation.pool) allocation.pool->give_back(allocation.size);
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

bool AddressSpace::is_known_range(std::uintptr_t address, std::size_t size) const {
    const auto allocation = find(address);
    return allocation && size <= allocation->end() - address && !allocation->free_pending;
}

void AddressSpace::free_context(Context* context) {
    const OutsideWrite ends; // of what is known of its contents
    std::unique_lock lock(mutex_);
    for (auto entry = allocations_.begin(); entry != allocations_.end();) {
        if (entry->second.context != context) {
            ++entry;
            continue;
        }
        if (entry->second.kind != MemoryKind::registered) release(entry->second);
        entry = allocations_.erase(entry);
    }
}

std::size_t AddressSpace::bytes_in_use() const {
    std::shared_lock lock(mutex_);
    return in_use_;
}

} // namespace ptarmigan::runtime
