// SPDX-License-Identifier: Apache-2.0
// Every allocation that the driver knows: device memory in a reserved range of host addresses,
// pinned, registered and managed host memory, pool memory. Device addresses are host addresses.
// Copies check their ranges here.
#pragma once

#include "runtime/base/shared_pages.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class MemoryPool;

enum class MemoryKind : std::uint8_t {
    device,     ///< cuMemAlloc and module variables
    pool,       ///< cuMemAllocAsync
    pinned,     ///< cuMemHostAlloc
    registered, ///< cuMemHostRegister: the program's own memory
    managed,    ///< cuMemAllocManaged and __managed__ variables
    mapped,     ///< cuMemMap
    imported,   ///< another process's: cuIpcOpenMemHandle, cuMemPoolImportPointer
};

/// Who frees and lends memory that stays where it is when a program frees it: a graph's.
class AllocationOwner {
public:
    virtual ~AllocationOwner() = default;
    /// Whether the program holds the memory now: between launches it may be nobody's.
    virtual bool is_held() const = 0;
    /// False if the program does not hold the memory.
    virtual bool mark_free_pending() = 0;
    /// The program's work with it has ended. After mark_free_pending().
    virtual void free() = 0;
};

/// Instead of an ordinal: what some device may do.
constexpr int any_device = -1;

/// One allocation. Plain data; a copy stays valid when the allocation goes.
struct Allocation {
    std::uintptr_t base = 0;
    std::size_t size = 0;           ///< as asked for
    std::size_t reserved = 0;       ///< bytes of the address space's that it takes; of a map: its reservation's
    std::uintptr_t reservation = 0; ///< of a map: where its reservation begins
    MemoryKind kind = MemoryKind::device;
    Context* context = nullptr;           ///< owner, not to be followed after it is gone
    std::shared_ptr<MemoryPool> pool;     ///< that it was asked of
    std::weak_ptr<AllocationOwner> owner; ///< empty: the program frees it
    std::uint64_t id = 0;                 ///< CU_POINTER_ATTRIBUTE_BUFFER_ID: never reused
    unsigned flags = 0;                   ///< of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged
    bool owned_by_module = false;         ///< a variable: cuMemFree refuses it
    bool free_pending = false;            ///< cuMemFreeAsync was called
    bool sync_memops = false;             ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
    bool on_host = false;                 ///< mapped memory of the host's
    unsigned access = 3;                  ///< of any device: CUmemAccess_flags
    std::uint32_t access_by_device = 0;   ///< of mapped memory: two bits for each ordinal
    int handle_types = 0;                 ///< of mapped memory: CUmemAllocationHandleType
    int device = 0;                       ///< ordinal: whose memory it is, or who allocated memory of the host's
    std::uintptr_t end() const { return base + size; }
    /// CUmemAccess_flags of a device's kernels (an ordinal), as far as maps say; that memory is a peer's does not
    /// count.
    unsigned access_of(int ordinal) const {
        return kind == MemoryKind::mapped && ordinal != any_device ? access_by_device >> 2 * ordinal & 3 : access;
    }
    /// Whether kernels of a device may use it: its own memory, the host's, and peers' that it was given access to.
    bool is_reached_by(int ordinal) const;
    bool is_host() const { return kind == MemoryKind::pinned || kind == MemoryKind::registered; }
    /// Neither the host nor another process writes to it.
    bool is_device_only() const {
        return kind == MemoryKind::device || kind == MemoryKind::pool || (kind == MemoryKind::mapped && !on_host);
    }
};

/// What a range of addresses is as a whole.
struct KnownRange {
    bool known = false;   ///< begins in memory that the driver knows
    bool whole = false;   ///< and ends in it: in one allocation that is not being freed, or in maps side by side
    bool host = false;    ///< Allocation::is_host()
    bool reached = false; ///< Allocation::is_reached_by()
    bool lent = false;    ///< access is given by cuMemSetAccess or cuMemPoolSetAccess
    unsigned access = 0;  ///< of the device to all of it
};

/// Where another process finds an allocation of this one.
struct SharedAllocation {
    Allocation allocation;
    int file = -1; ///< the address space's: not to be closed, gone with the allocation
    std::size_t offset = 0;
};

/// Thread-safe. Lock order: its mutex is a leaf. Memory is committed and given back in 2 MiB
/// granules; a granule without a live allocation is inaccessible, so a use after free or far out of
/// bounds faults. As on a GPU accesses pass in the granules of live allocations, and below the first one.
class AddressSpace {
public:
    static constexpr std::size_t granule = std::size_t{2} << 20;
    static constexpr std::size_t alignment = 512;

    static AddressSpace& get();

    /// Memory of the context's device: 512-byte aligned. 0 bytes: invalid_value; more than the device has left:
    /// out_of_memory. `alignment` up to 2 MiB.
    Status allocate(std::size_t size, MemoryKind kind, Context* context, Allocation& allocation,
                    std::size_t alignment = AddressSpace::alignment);
    /// The same of another device's memory (an ordinal).
    Status allocate(std::size_t size, MemoryKind kind, Context* context, int device, Allocation& allocation,
                    std::size_t alignment = AddressSpace::alignment);
    /// Frees the allocation that starts at `address`; invalid_value if there is none that `accepts`
    /// takes.
    Status free(std::uintptr_t address, const std::function<bool(const Allocation&)>& accepts);
    /// free() for memory that a pool keeps: it stays committed, counts as in use, and is nobody's until reuse() or
    /// end().
    Status keep(std::uintptr_t address, const std::function<bool(const Allocation&)>& accepts, Allocation& kept);
    /// Makes kept memory an allocation of `size` bytes, which it has to have.
    Allocation reuse(const Allocation& kept, std::size_t size, Context* context);
    void end(const Allocation& kept);
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
    /// What it is to a device (an ordinal).
    KnownRange range(std::uintptr_t address, std::size_t size, int device = any_device) const;
    /// Moves the granules of the allocation that `address` lies in into a file, unless they are in one: what another
    /// process may map. Only memory of this space; invalid_value for other memory, out_of_memory if there are no files.
    /// Needs the fault handlers to be in place (move_to_file).
    Status share(std::uintptr_t address, SharedAllocation& shared);
    /// True if the range is what a pointer may be in kernels of a device (an ordinal), and be written to.
    bool is_known_range(std::uintptr_t address, std::size_t size, int device = any_device) const;
    /// Frees everything that `context` owns.
    void free_context(Context* context);

    /// Counts memory of a device (an ordinal) that is not allocated here; false if it has not so much left.
    bool charge(int device, std::size_t size);
    void discharge(int device, std::size_t size);
    /// Of a device; of all of them.
    std::size_t bytes_in_use(int device) const;
    std::size_t bytes_in_use() const;
    /// Of each device.
    std::size_t capacity() const { return capacity_; }
    /// True if the address lies in the reserved range, allocated or not. Async-signal-safe.
    bool in_reservation(std::uintptr_t address) const { return address - reservation_ < reservation_size_; }
    /// True if any byte of the range does; a range that goes on from address 0 has all bytes.
    bool meets_reservation(std::uintptr_t address, std::size_t size) const {
        return in_reservation(address) || reservation_ - address < size;
    }

private:
    AddressSpace();
    using Ranges = std::map<std::uintptr_t, std::size_t>; ///< coalesced
    /// Where memory of that kind comes from: granules don't hold memory that the host may use beside such that it may
    /// not.
    Ranges& ranges_for(MemoryKind kind);
    static std::uintptr_t take_range(Ranges& ranges, std::size_t size, std::size_t alignment);
    static void give_range(Ranges& ranges, std::uintptr_t address, std::size_t size);
    bool commit(std::uintptr_t address, std::size_t size, MemoryKind kind);
    void release(const Allocation& allocation);
    /// Tells other processes, too. With the lock held.
    void set_in_use(int device, std::size_t bytes);
    struct SharedGranules {
        std::size_t size;
        FileDescriptor file;
    };

    mutable std::shared_mutex mutex_;
    std::map<std::uintptr_t, Allocation> allocations_; ///< by base
    Ranges free_ranges_;                               ///< of the reservation
    Ranges free_host_ranges_;                          ///< where HostAccess guards device memory
    std::map<std::uintptr_t, unsigned> granule_users_; ///< live allocations per granule
    std::map<std::uintptr_t, SharedGranules> shared_;  ///< by address
    std::uintptr_t reservation_ = 0;
    std::size_t reservation_size_ = 0;
    std::size_t capacity_ = 0;
    bool has_room(int device, std::size_t size) const;
    std::vector<std::size_t> in_use_; ///< by device
    std::uint64_t next_id_ = 1;
};

} // namespace ptarmigan::runtime
