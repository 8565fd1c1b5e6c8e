// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device_profile.h"

#include "runtime/base/env.h"

#include <algorithm>
#include <cctype>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;

constexpr DeviceProfile profiles[] = {
#define PROFILE(id, name, cc, multiprocessors, memory, l2, clock, memory_clock, bus, pci_device, engines, recorded,    \
                source)                                                                                                \
    {#id,                                                                                                              \
     name,                                                                                                             \
     cc,                                                                                                               \
     multiprocessors,                                                                                                  \
     memory * mebibyte,                                                                                                \
     (l2)*1024,                                                                                                        \
     (clock)*1000,                                                                                                     \
     (memory_clock)*1000,                                                                                              \
     bus,                                                                                                              \
     pci_device,                                                                                                       \
     engines,                                                                                                          \
     recorded,                                                                                                         \
     source},
#include "runtime/device/device_profiles.def"
#undef PROFILE
};

constexpr CapabilityLimits limits_table[] = {
#define LIMITS(...) {__VA_ARGS__},
#include "runtime/device/capability_limits.def"
#undef LIMITS
};

/// CUdevice_attribute numbers.
enum Attribute : int {
    clock_rate = 13,
    memory_clock_rate = 36,
    global_memory_bus_width = 37,
    l2_cache_size = 38,
    max_threads_per_multiprocessor = 39,
    async_engine_count = 40,
    max_shared_memory_per_multiprocessor = 81,
    single_to_double_ratio = 87,
    max_shared_memory_optin = 97,
    max_blocks_per_multiprocessor = 106,
    max_persisting_l2 = 108,
    max_access_policy_window = 109,
    reserved_shared_memory = 111,
    cluster_launch = 120,
    mem_sync_domain_count = 126,
    tensor_map_access = 127,
    gpu_pci_device_id = 139,
};

constexpr int nvidia_vendor = 0x10de;

/// What a capability below `since` does not have is 0, or 1 domain.
std::optional<int> absent_before(const DeviceProfile& profile, unsigned since, int value) {
    return profile.compute_capability < since ? std::optional(value) : std::nullopt;
}

} // namespace

std::span<const DeviceProfile> device_profiles() {
    return profiles;
}

const DeviceProfile* find_profile(const std::string& id) {
    const auto same = [&](const DeviceProfile& profile) {
        const std::string own = profile.id;
        return std::equal(own.begin(), own.end(), id.begin(), id.end(),
                          [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    };
    const auto* found = std::find_if(std::begin(profiles), std::end(profiles), same);
    return found == std::end(profiles) ? nullptr : found;
}

const DeviceProfile* chosen_profile() {
    static const DeviceProfile* const chosen = find_profile(env_text(Env::device));
    return chosen;
}

const CapabilityLimits& limits_of(unsigned compute_capability) {
    const CapabilityLimits* best = &limits_table[0];
    for (const CapabilityLimits& limits : limits_table)
        if (limits.compute_capability <= compute_capability) best = &limits;
    return *best;
}

const CapabilityLimits& device_limits() {
    constexpr unsigned recorded = 90;
    static const CapabilityLimits& limits =
        limits_of(chosen_profile() ? chosen_profile()->compute_capability : recorded);
    return limits;
}

std::optional<int> profile_attribute(const DeviceProfile& profile, int id) {
    constexpr unsigned ampere = 80, hopper = 90;
    const CapabilityLimits& limits = limits_of(profile.compute_capability);
    switch (id) {
    case clock_rate: return profile.clock_khz;
    case memory_clock_rate: return profile.memory_clock_khz;
    case global_memory_bus_width: return profile.bus_width;
    case l2_cache_size: return profile.l2_bytes;
    case max_threads_per_multiprocessor: return limits.threads;
    case async_engine_count: return profile.copy_engines;
    case max_shared_memory_per_multiprocessor: return limits.shared;
    case single_to_double_ratio: return limits.double_ratio;
    case max_shared_memory_optin: return limits.shared_optin;
    case max_blocks_per_multiprocessor: return limits.ctas;
    case reserved_shared_memory: return limits.shared_reserved;
    case max_persisting_l2:
    case max_access_policy_window: return absent_before(profile, ampere, 0);
    case cluster_launch:
    case tensor_map_access: return absent_before(profile, hopper, 0);
    case mem_sync_domain_count: return absent_before(profile, hopper, 1);
    case gpu_pci_device_id: return profile.pci_device_id << 16 | nvidia_vendor;
    default: return std::nullopt;
    }
}

} // namespace ptarmigan::runtime
