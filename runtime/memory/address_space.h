// SPDX-License-Identifier: Apache-2.0
// Every allocation that the driver knows: device memory in a reserved range of host addresses,
// pinned, registered and managed host memory, pool memory. Device addresses are host addresses.
// Copies check their ranges here.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>

namespace ptarmigan::runtime {

class Context;
class MemoryPool;

enum class MemoryKind : std::uint8_t {
    device,     ///< cuMemAlloc and module variables
    pool,       ///< cuMemAllocAsync
    pinned,     ///< cuMemHostAlloc
    registered, ///< cuMemHostRegister: the program's own memory
    managed,    ///< cuMemAllocManaged and __managed__ variables
};

/// One allocation. Plain data; a copy stays valid when the allocation goes.
struct Allocation {
    std::uintptr_t base = 0;
    std::size_t size = 0; ///< as asked for
    MemoryKind kind = MemoryKind::device;
    Context* context = nullptr;       ///< owner, not to be followed after it is gone
    std::shared_ptr<MemoryPool> pool; ///< that it was asked of
    std::uint64_t id = 0;             ///< CU_POINTER_ATTRIBUTE_BUFFER_ID: never reused
    unsigned flags = 0;               ///< of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged
    bool owned_by_module = false;     ///< a variable: cuMemFree refuses it
    bool free_pending = false;        ///< cuMemFreeAsync was called
    std::uintptr_t end() const { return base + size; }
    bool is_host() const { return kind == MemoryKind::pinned || kind == MemoryKind::registered; }
};

/// Thread-safe. Lock order: its mutex is a leaf. Memory is committed and given back in 2 MiB
/// granules; a granule without a live allocation is inaccessible, so a use after free or far out of
/// bounds faults. As on a GPU accesses pass in the granules of live allocations, and below the first one.
class AddressSpace {
public:
    static constexpr std::size_t granule = std::size_t{2} << 20;
    static constexpr std::size_t alignment = 512;

    static AddressSpace& get();

    /// Device memory: 512-byte aligned. 0 bytes: invalid_value; more than there is: out_of_memory.
    /// `alignment` up to 2 MiB.
    Status allocate(std::size_t size, MemoryKind kind, Context* context, Allocation& allocation,
                    std::size_t alignment = AddressSpace::alignment);
    /// Frees the allocation that starts at `address`; invalid_value if there is none that `accepts`
    /// takes.
    Status free(std::uintptr_t address, const std::function<bool(const Allocation&)>& accepts);
    /// Adds memory of the program's (registered). host_memory_already_registered on overlap with such, invalid_value
    /// on overlap with other memory.
    Status add(Allocation allocation);
    /// Removes without freeing (registered). Nothing if none starts there.
    std::optional<Allocation> remove(std::uintptr_t address, MemoryKind kind);
    /// Marks the pool allocation at `address` as being freed; invalid_value if there is none or it
    /// already is.
    Status mark_free_pending(std::uintptr_t address);
    /// The allocation that `address` lies in.
    std::optional<Allocation> find(std::uintptr_t address) const;
    /// Edits the record of the allocation that starts at `address`; invalid_value if there is none.
    Status annotate(std::uintptr_t address, const std::function<void(Allocation&)>& edit);
    /// True if the range lies in one allocation of any kind that is not being freed: what a device
    /// pointer may be.
    bool is_known_range(std::uintptr_t address, std::size_t size) const;
    /// Frees everything that `context` owns.
    void free_context(Context* context);

    std::size_t bytes_in_use() const;
    std::size_t capacity() const { return capacity_; }
    /// True if the address lies in the reserved range, allocated or not. Async-signal-safe.
    bool in_reservation(std::uintptr_t address) const { return address - reservation_ < reservation_size_; }

private:
    AddressSpace();
    std::uintptr_t take_range(std::size_t size, std::size_t alignment);
    void give_range(std::uintptr_t address, std::size_t size);
    bool commit(std::uintptr_t address, std::size_t size);
    void release(const Allocation& allocation);

    mutable std::shared_mutex mutex_;
    std::map<std::uintptr_t, Allocation> allocations_;  ///< by base
    std::map<std::uintptr_t, std::size_t> free_ranges_; ///< of the reservation, coalesced
    std::map<std::uintptr_t, unsigned> granule_users_;  ///< live allocations per granule
    std::uintptr_t reservation_ = 0;
    std::size_t reservation_size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t in_use_ = 0;
    std::uint64_t next_id_ = 1;
};

} // namespace ptarmigan::runtime
