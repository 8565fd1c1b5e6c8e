// SPDX-License-Identifier: Apache-2.0
// Memory of other processes, and its maps in this one.
#pragma once

#include "runtime/base/file_place.h"
#include "runtime/base/status.h"
#include "runtime/memory/memory.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace ptarmigan::runtime {

/// Processes name devices to each other by number (Device::number()), since each may see others in another order: the
/// ordinal here, -1 for one that this process does not see.
int ordinal_of_device(int number);

/// One of the process. Thread-safe; its mutex comes before AddressSpace's and AddressPool's.
class ProcessMemory {
public:
    static ProcessMemory& get();

    /// The place of an allocation of this process, for kind `kind`.
    static Status place_of(DevicePointer pointer, std::uint64_t kind, FilePlace& place);
    /// Maps another process's allocation, or finds its map: each open() needs a close().
    Status open(const FilePlace& place, Context& context, const std::shared_ptr<MemoryPool>& pool,
                DevicePointer& pointer);
    /// invalid_value if open() did not give the pointer.
    Status close(DevicePointer pointer);
    /// Of all that `context` has opened.
    void close_all(const Context* context);

private:
    /// A mapping of a whole file.
    struct Window {
        std::uintptr_t base = 0;
        std::size_t size = 0;
        unsigned users = 0; ///< imports
    };
    struct Import {
        std::uint64_t inode, offset;
        unsigned opened = 0;
        const Context* context = nullptr;
    };
    ProcessMemory() = default;
    static void unmap(const Window& window);
    void end(std::map<std::uintptr_t, Import>::iterator import);

    std::mutex mutex_;
    std::map<std::pair<std::uint64_t, int>, Window> windows_; ///< by inode and device, which have one each
    std::map<std::uintptr_t, Import> imports_;                ///< by address
};

} // namespace ptarmigan::runtime
