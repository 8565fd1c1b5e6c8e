// SPDX-License-Identifier: Apache-2.0
// What a process uses of its devices, in a page that other processes can read: memory, contexts, and for how long
// kernels ran. libnvidia-ml.so.1 reads those of all processes that /proc shows to this user.
#pragma once

#include "runtime/base/shared_pages.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace ptarmigan::runtime {

/// Of one device in one process. Writers and readers are in different processes: everything is relaxed.
struct DeviceUse {
    std::atomic<std::uint64_t> memory;    ///< bytes that are allocated
    std::atomic<std::uint32_t> contexts;  ///< active ones
    std::atomic<std::uint32_t> grids;     ///< that run now
    std::atomic<std::int64_t> busy_since; ///< CLOCK_MONOTONIC, ns: when the first of these began
    std::atomic<std::uint64_t> busy;      ///< ns for which at least one grid ran, until `busy_since`

    /// Around a grid that runs; `now` as the monotonic clock has it, in ns. Grids of several streams at once may add a
    /// little too much or too little: the time is for people.
    void grid_begins(std::int64_t now);
    void grid_ends(std::int64_t now);
};

inline constexpr std::size_t max_used_devices = 32;

struct DeviceUsePage {
    std::uint64_t kind;               ///< so that no other file is taken for one, and its layout
    std::uint32_t process;            ///< as the process itself sees it
    std::atomic<std::uint32_t> state; ///< 0 before cuInit (process_lock.h)
    DeviceUse devices[max_used_devices];
};

/// This process's use of device `ordinal`, counted over all devices whatever the program sees of them. Lock-free after
/// the first call, which makes the page. A forked child has a page of its own that nobody sees.
DeviceUse& device_use(unsigned ordinal = 0);
DeviceUsePage& own_device_use_page();
/// The page of a process that says to be its own (a forked child has its parent's); none: there is none, or it may not
/// be written.
FileDescriptor open_device_use(std::uint32_t process);

/// What one process used when it was looked at.
struct ProcessUse {
    std::uint32_t process; ///< as this process sees it
    struct PerDevice {
        std::uint64_t memory;
        std::uint32_t contexts;
        std::uint64_t busy; ///< ns so far
    };
    std::array<PerDevice, max_used_devices> devices;
};

/// Of all processes that /proc shows and lets read, this one too; none where there is no /proc. Takes some
/// microseconds for each process of the user's.
std::vector<ProcessUse> read_device_uses();

} // namespace ptarmigan::runtime
