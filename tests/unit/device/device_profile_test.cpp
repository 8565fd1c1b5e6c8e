// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/env.h"
#include "runtime/device/device.h"
#include "runtime/device/device_profile.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan::runtime;

TEST_CASE("device profile: PTARMIGAN_DEVICE takes the table's names") {
    std::string names;
    for (const DeviceProfile& profile : device_profiles()) names += (names.empty() ? "" : "|") + std::string(profile.id);
    CHECK(env_variables()[static_cast<std::size_t>(Env::device)].accepted == names);
    CHECK(find_profile("H100") == find_profile("h100"));
    CHECK(find_profile("h10") == nullptr);
    CHECK(find_profile("") == nullptr);
}

TEST_CASE("device profile: each has a source, and its capability a row of its own") {
    for (const DeviceProfile& profile : device_profiles()) {
        INFO(profile.id);
        CHECK(std::string(profile.source).size() > 10);
        CHECK(limits_of(profile.compute_capability).compute_capability == profile.compute_capability);
        CHECK(profile.recorded == (std::string(profile.id) == "h200"));
    }
}

TEST_CASE("device profile: the limits of 9.0 are the recorded device's") {
    const CapabilityLimits& limits = limits_of(90);
    const Device& device = Device::get();
    if (chosen_profile()) return; // the process's own setting
    CHECK(device.attribute(39) == limits.threads);
    CHECK(device.attribute(81) == limits.shared);
    CHECK(device.attribute(87) == limits.double_ratio);
    CHECK(device.attribute(97) == limits.shared_optin);
    CHECK(device.attribute(106) == limits.ctas);
    CHECK(device.attribute(111) == limits.shared_reserved);
    CHECK(&device_limits() == &limits);
}

TEST_CASE("device profile: attributes that differ") {
    const DeviceProfile& t4 = *find_profile("t4");
    CHECK(profile_attribute(t4, 39) == 1024);   // threads of a multiprocessor
    CHECK(profile_attribute(t4, 120) == 0);     // cluster launches
    CHECK(profile_attribute(t4, 139) == 0x1eb810de);
    CHECK_FALSE(profile_attribute(t4, 1));      // 1,024 threads of a block, everywhere
    CHECK_FALSE(profile_attribute(*find_profile("b200"), 120));
}
