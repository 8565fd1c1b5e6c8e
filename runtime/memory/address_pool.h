// SPDX-License-Identifier: Apache-2.0
// Addresses for memory beside the device heap: reservations, and maps of other processes' memory. What is given back
// stays inaccessible and is given out again, so that the host's own memory never lies where device memory was, and a
// stale pointer is found out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace ptarmigan::runtime {

/// One of the process. Thread-safe.
class AddressPool {
public:
    static AddressPool& get();

    /// Inaccessible addresses, aligned to a power of two; at `wish` if that is free and not 0. 0 if there are none.
    std::uintptr_t take(std::size_t size, std::size_t alignment, std::uintptr_t wish = 0);
    /// What take() gave and is inaccessible again.
    void give_back(std::uintptr_t address, std::size_t size);
    /// Whether any byte of a range was ever taken, given back or not.
    bool meets(std::uintptr_t address, std::size_t size) const;

private:
    using Ranges = std::map<std::uintptr_t, std::size_t>; ///< begin to size; none touches the next
    AddressPool() = default;
    static void add(Ranges& ranges, std::uintptr_t address, std::size_t size);
    static void cut(Ranges& ranges, std::uintptr_t address, std::size_t size);
    static bool meets(const Ranges& ranges, std::uintptr_t address, std::size_t size);
    bool take_at(std::uintptr_t address, std::size_t size);
    void give_all_to_the_system();

    mutable std::mutex mutex_;
    Ranges all_, free_; ///< taken from the system; of these, what nobody has
};

} // namespace ptarmigan::runtime
