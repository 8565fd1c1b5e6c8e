// SPDX-License-Identifier: Apache-2.0
// Pools of stream-ordered memory. Memory comes from the device heap; of what a pool keeps reserved large pieces stay as
// they are, for the next allocation, and small ones go back to the heap at once. What is reserved is counted as an
// H100's driver does it, in 32 MiB, because programs steer by these numbers.
#pragma once

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/memory/address_space.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace ptarmigan::runtime {

class Stream;
struct FilePlace;                    ///< base/file_place.h
using DevicePointer = std::uint64_t; ///< CUdeviceptr: a host address

/// CUmemLocation.
struct MemoryPlace {
    enum Type : int { none = 0, device = 1, host = 2, host_numa = 3, host_numa_current = 4 };
    int type = none, id = -2;
    bool operator==(const MemoryPlace&) const = default;
    /// As the calls of CUDA 12 and before name places: a device, -1 for hosts, -2 for none.
    int ordinal() const { return type == none ? -2 : type == device ? id : -1; }
};

/// What a pool's memory is. `kind`: pool (a device's), pinned (a host's) or managed.
struct PoolProperties {
    MemoryKind kind = MemoryKind::pool;
    MemoryPlace place{MemoryPlace::device, 0};
    std::size_t max_size = 0; ///< 0: the device's
    bool is_default = false;
    int handle_types = 0;     ///< what it may be exported as: CUmemAllocationHandleType
    std::uint64_t origin = 0; ///< of an imported pool: the exported one's number
};

/// Thread-safe; its mutex is a leaf. Lives as long as its handle or its memory.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
public:
    explicit MemoryPool(const PoolProperties& properties = {}) : properties_(properties) {}
    /// The properties of cuMemPoolCreate (CUmemAllocationType and CUmemLocation); invalid_value for places and kinds
    /// that have no memory, out_of_memory for more than there is.
    static Status create(int allocation_type, MemoryPlace place, std::size_t max_size, int handle_types,
                         std::shared_ptr<MemoryPool>& pool);
    /// cuMemPoolImportFromShareableHandle of a file descriptor, which stays the caller's.
    static Status import_file(int file, std::shared_ptr<MemoryPool>& pool);
    /// cuMemPoolExportToShareableHandle to a file descriptor, which is the caller's.
    Status export_file(int& file);
    /// cuMemPoolExportPointer: where other processes find an allocation of such a pool.
    static Status export_pointer(DevicePointer pointer, FilePlace& place);
    /// cuMemPoolImportPointer, of an imported pool. The pointer is freed as any other.
    static Status import_pointer(const std::shared_ptr<MemoryPool>& pool, const FilePlace& place, Context& context,
                                 DevicePointer& pointer);

    const PoolProperties& properties() const { return properties_; }
    /// CUmemPool_attribute 1..13 (others invalid_value): 1..3, 9..12 are int, the others 64 bits.
    Status attribute(int attribute, void* value) const;
    Status set_attribute(int attribute, const void* value);
    /// CUmemAccess_flags of who is at `place`.
    Status access(MemoryPlace place, unsigned& flags) const;
    Status set_access(MemoryPlace place, unsigned flags);
    /// What set_access() would say, without changing anything.
    Status check_access(MemoryPlace place, unsigned flags) const;

    /// An allocation of the stream's context, counted; out_of_memory beyond the largest size.
    Status allocate(std::size_t size, Context* context, Allocation& allocation);
    /// Frees an allocation that is free_pending, and counted as given back: keeps it, if that is worth it.
    void end(DevicePointer pointer);
    /// Keeps nothing any more: its handle is gone.
    void retire();

    /// Counts memory that is asked for: out_of_memory beyond the largest size.
    Status take(std::size_t size);
    /// Counts memory whose freeing was asked for; it stays reserved.
    void give_back(std::size_t size);
    /// Unused memory beyond `kept` bytes is reserved no longer.
    void trim(std::size_t kept);
    void trim_to_threshold();

private:
    const PoolProperties properties_;
    mutable std::mutex mutex_;
    FileDescriptor file_;      ///< what it was exported as, once it was
    std::uint64_t number_ = 0; ///< that other processes know it by, once they do
    int flags_[3] = {1, 1, 1}; ///< attributes 1 to 3
    std::uint64_t threshold_ = 0, reserved_ = 0, reserved_high_ = 0, used_ = 0, used_high_ = 0;
    std::array<unsigned, Device::most> device_access_{}; ///< by ordinal, of other devices than the pool's own
    /// Frees what is kept beyond what is reserved and not used; with the lock, which it gives back.
    void end_surplus(std::unique_lock<std::mutex> lock);
    std::multimap<std::size_t, Allocation> kept_; ///< committed memory for the next allocations, by size
    std::size_t kept_bytes_ = 0;
    bool retired_ = false;
};

/// The default and the current pool of a place (CUmemLocation) for an allocation type: not_supported and invalid_value
/// as the driver says. Made when first asked for.
Status pool_of_place(MemoryPlace place, int allocation_type, bool current, std::shared_ptr<MemoryPool>& pool);
/// Makes a pool current; invalid_value for one of another place or kind.
Status set_pool_of_place(MemoryPlace place, int allocation_type, const std::shared_ptr<MemoryPool>& pool);
/// Takes a pool away from wherever it is current. invalid_value for a default pool.
Status retire_pool(const std::shared_ptr<MemoryPool>& pool);

/// To be called where a program waits: pools then give back what is unused and above their threshold. Two loads if no
/// pool has anything to give.
void trim_pools_to_thresholds();
/// Before memory is refused: pools give back all that they keep. True if that was anything.
bool end_kept_memory();

/// cuMemAllocAsync, cuMemAllocFromPoolAsync; 0 bytes: success and null.
Status pool_allocate(Stream& stream, const std::shared_ptr<MemoryPool>& pool, std::size_t size, DevicePointer& pointer);
/// cuMemFreeAsync: frees in stream order. Takes cuMemAlloc's memory too. A second free:
/// invalid_value.
Status pool_free(Stream& stream, DevicePointer pointer);

} // namespace ptarmigan::runtime
