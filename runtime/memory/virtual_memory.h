// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: addresses are reserved, physical memory is made, the one is mapped at the other, and then
// opened to a device. Checks are an H100's driver's (tests/driver_api/answers/virtual_memory_answers_h100.txt). A
// reservation is inaccessible memory of the process; physical memory that no mapping shows has no pages but a file's.
#pragma once

#include "runtime/base/shared_pages.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/multicast.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

namespace ptarmigan::runtime {

using PhysicalHandle = std::uint64_t; ///< CUmemGenericAllocationHandle

/// CUmemAllocationProp.
struct PhysicalProperties {
    int type = 1;         ///< CUmemAllocationType: pinned
    int handle_types = 0; ///< what it may be exported as: CUmemAllocationHandleType
    MemoryPlace place;
    unsigned char compression = 0, rdma = 0;
    unsigned short usage = 0;
};

/// CUmemAccessDesc.
struct AccessWish {
    MemoryPlace place;
    unsigned flags = 0; ///< CUmemAccess_flags
};

/// One of the process. Thread-safe; its mutex comes before AddressSpace's and AddressPool's.
class VirtualMemory {
public:
    static constexpr std::size_t granularity = AddressSpace::granule;

    static VirtualMemory& get();

    /// cuMemAddressReserve. `alignment` 0: the granularity. `wish` is taken if it is free.
    Status reserve(std::size_t size, std::size_t alignment, std::uintptr_t wish, std::uintptr_t& address);
    /// cuMemAddressFree: the whole of a reservation, without maps.
    Status unreserve(std::uintptr_t address, std::size_t size);

    /// cuMemCreate.
    Status create(std::size_t size, const PhysicalProperties& properties, PhysicalHandle& handle);
    /// cuMulticastCreate: a handle of a team. Such a handle is mapped, given access to and released as memory's; its
    /// addresses are for `multimem` instructions alone.
    Status create(std::shared_ptr<MulticastTeam> team, PhysicalHandle& handle);
    /// invalid_value if the handle is no team's.
    Status team(PhysicalHandle handle, std::shared_ptr<MulticastTeam>& team) const;
    /// cuMulticastBindMem: binds a part of the memory as its device's; as `device`'s, which it has to be, if that is
    /// not any_device.
    Status bind(MulticastTeam& team, int device, std::size_t offset, PhysicalHandle handle, std::size_t memory_offset,
                std::size_t size);
    /// cuMulticastBindAddr: the same of what is mapped or allocated at an address.
    Status bind_address(MulticastTeam& team, int device, std::size_t offset, std::uintptr_t address, std::size_t size);

    /// cuMemRelease: ends one reference; the memory lives on while it is mapped.
    Status release(PhysicalHandle handle);
    /// cuMemRetainAllocationHandle: of the map that `address` lies in.
    Status retain(std::uintptr_t address, PhysicalHandle& handle);
    /// As they are, not as they were wished for.
    Status properties(PhysicalHandle handle, PhysicalProperties& properties) const;

    /// cuMemMap: all of the memory (not_supported for a part). Nobody has access to a new map. cuMemUnmap: all maps of
    /// a range, each of them whole.
    Status map(std::uintptr_t address, std::size_t size, std::size_t offset, PhysicalHandle handle);
    Status unmap(std::uintptr_t address, std::size_t size);
    /// cuMemSetAccess, cuMemGetAccess.
    Status set_access(std::uintptr_t address, std::size_t size, std::span<const AccessWish> wishes);
    Status access(std::uintptr_t address, MemoryPlace place, unsigned& flags) const;

    /// cuMemExportToShareableHandle to a file descriptor, which is the caller's.
    Status export_file(PhysicalHandle handle, int& file);
    /// cuMemImportFromShareableHandle of a file descriptor, which stays the caller's.
    Status import_file(int file, PhysicalHandle& handle);

    /// The reservation that `address` lies in; false if in none.
    bool reservation(std::uintptr_t address, std::uintptr_t& begin, std::size_t& size) const;
    /// What `address` is to a kernel that may not use it, for reports of faults: "reserved (cuMemAddressReserve),
    /// nothing is mapped there"; static text, null where there is nothing to say.
    const char* describe(std::uintptr_t address) const;

private:
    struct Physical;
    struct Map {
        std::size_t size = 0;
        std::shared_ptr<Physical> memory;
        std::array<std::uint8_t, Device::most> device_access{}; ///< by ordinal
        unsigned host_access = 0;
        /// What any device may do.
        unsigned any_device_access() const;
    };
    VirtualMemory() = default;
    std::shared_ptr<Physical> find(PhysicalHandle handle) const;
    bool share(Physical& memory);
    Status bind(MulticastTeam& team, int device, std::size_t offset, Physical& memory, std::size_t memory_offset,
                std::size_t size);
    Status map_team(std::uintptr_t address, std::size_t size, std::size_t offset,
                    const std::shared_ptr<Physical>& memory);
    bool is_reserved(std::uintptr_t address, std::size_t size) const;
    void drop_map(std::map<std::uintptr_t, Map>::iterator map);

    mutable std::mutex mutex_;
    std::map<std::uintptr_t, std::size_t> reservations_;
    std::map<std::uintptr_t, Map> maps_; ///< by address
    std::unordered_map<PhysicalHandle, std::shared_ptr<Physical>> handles_;
};

} // namespace ptarmigan::runtime
