// SPDX-License-Identifier: Apache-2.0
// Which GPU the device claims to be: PTARMIGAN_DEVICE, a row of device_profiles.def. Without it the device is the host
// described as an H200. Constant after first use; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ptarmigan::runtime {

/// What a compute capability fixes.
struct CapabilityLimits {
    unsigned compute_capability;
    int threads, ctas;                                      ///< of a multiprocessor
    int shared, shared_optin, shared_reserved, shared_unit; ///< bytes
    int double_ratio, cores;
};

struct DeviceProfile {
    const char* id; ///< as PTARMIGAN_DEVICE names it
    const char* name;
    unsigned compute_capability, multiprocessors;
    std::uint64_t memory; ///< bytes
    int l2_bytes, clock_khz, memory_clock_khz, bus_width, pci_device_id, copy_engines;
    bool recorded; ///< its attributes come from such a GPU
    const char* source;
};

std::span<const DeviceProfile> device_profiles();
/// The one of that name, in letters of either case; null: there is none.
const DeviceProfile* find_profile(const std::string& id);
/// The chosen one; null: none is.
const DeviceProfile* chosen_profile();

/// Of the capability, or of the nearest one below in the table.
const CapabilityLimits& limits_of(unsigned compute_capability);
/// The device's: the chosen profile's, or an H200's whatever PTARMIGAN_CC says.
const CapabilityLimits& device_limits();

/// CUdevice_attribute `id` where the profile says another thing than an H200 does.
std::optional<int> profile_attribute(const DeviceProfile& profile, int id);

} // namespace ptarmigan::runtime
