// SPDX-License-Identifier: Apache-2.0
// What all Ptarmigan processes of this user use of a device, and how busy they kept it lately.
#pragma once

#include <cstdint>
#include <vector>

namespace ptarmigan::nvml {

/// A process with a context on the device.
struct DeviceUser {
    std::uint32_t process;
    std::uint64_t memory; ///< bytes
};

/// Ordered by process. Thread-safe, as all here.
std::vector<DeviceUser> users_of(unsigned device);
/// The sum of theirs.
std::uint64_t memory_used(unsigned device);
/// Of the time since this was asked last, or of 20 ms that it waits for when it is asked first, how much a grid ran, in
/// per cent. Where grids of several processes ran at once their times are added up, to 100 at most.
unsigned busy_percent(unsigned device);

} // namespace ptarmigan::nvml
