// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream/stream_attributes.h"

#include "runtime/context/context.h"
#include "runtime/device/device.h"

#include <algorithm>

namespace ptarmigan::runtime {

namespace {

constexpr int largest_window_attribute = 109; // CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE
constexpr int domain_count = 4;               // CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT
constexpr int persisting = 2;                 // CU_ACCESS_PROPERTY_PERSISTING

} // namespace

Status StreamAttributes::set_window(const AccessPolicyWindow& given) {
    const int largest = Device::get().attribute(largest_window_attribute).value_or(0);
    const bool fits = given.size <= static_cast<std::uint64_t>(largest);
    const bool is_ratio = given.hit_ratio >= 0 && given.hit_ratio <= 1; // not of NaN
    if (!fits || !is_ratio || given.miss_property == persisting) return Status::invalid_value;
    window = given;
    return Status::success;
}

Status StreamAttributes::set_synchronization_policy(int given) {
    if (given < 1 || given > 4) return Status::invalid_value; // automatic, spin, yield, blocking
    synchronization_policy = given;
    return Status::success;
}

Status StreamAttributes::set_priority(int given) {
    int least = 0, greatest = 0;
    Context::stream_priority_range(least, greatest);
    priority = std::clamp(given, greatest, least);
    return Status::success;
}

Status StreamAttributes::set_domain_map(std::array<std::uint8_t, 2> given) {
    if (given[0] >= domain_count || given[1] >= domain_count) return Status::invalid_value;
    domain_map = given;
    return Status::success;
}

Status StreamAttributes::set_domain(int given) {
    if (given != 0 && given != 1) return Status::invalid_value; // default, remote
    domain = given;
    return Status::success;
}

} // namespace ptarmigan::runtime
