// SPDX-License-Identifier: Apache-2.0
// What `ptarmigan smi` shows of a device, asked of NVML once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptarmigan::tool::smi {

struct Process {
    unsigned pid;
    std::string name;
    std::uint64_t memory; ///< bytes
};

struct DeviceState {
    unsigned index = 0, minor = 0;
    std::string name, uuid, bus_id; ///< bus_id: "00000000:00:06.0"
    unsigned pci_domain = 0, pci_bus = 0, pci_device = 0, pci_device_id = 0, pci_subsystem_id = 0;
    std::uint64_t memory_total = 0, memory_reserved = 0, memory_used = 0, memory_free = 0; ///< bytes
    unsigned busy = 0, memory_busy = 0;                                                    ///< per cent
    int cc_major = 0, cc_minor = 0, brand = 0;
    unsigned architecture = 0, max_clock = 0, max_memory_clock = 0; ///< MHz
    std::vector<Process> processes;
};

struct SystemState {
    std::string driver_version, nvml_version, cuda_version; ///< "13.5"
    unsigned device_count = 0;
    std::vector<DeviceState> devices; ///< those that were asked for
};

/// Asks. Throws std::runtime_error with NVML's text for what fails.
SystemState read_system();
/// Leaves the devices of a list as `-i` takes it: indices, UUIDs, bus ids. What is none of these does not count.
void select_devices(SystemState& system, const std::string& list);

/// Whole MiB, rounded up as nvidia-smi does it for what is reserved; `down` for the rest.
std::uint64_t mebibytes(std::uint64_t bytes);

/// "Thu Nov 26 16:05:58 2026", and "2026/11/26 16:05:59.542".
std::string long_time();
std::string short_time();

} // namespace ptarmigan::tool::smi
