// SPDX-License-Identifier: Apache-2.0
// What cuStreamSetAttribute sets. Only the priority changes what happens here: a CPU has no L2 window to reserve,
// and its stores order those of every domain. All are kept, checked as the driver checks them, so that programs read
// back what they set.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstdint>

namespace ptarmigan::runtime {

/// CUaccessPolicyWindow; `size` in bytes.
struct AccessPolicyWindow {
    std::uint64_t base = 0, size = 0;
    float hit_ratio = 0;
    int hit_property = 0, miss_property = 0;
};

struct StreamAttributes {
    AccessPolicyWindow window;
    int synchronization_policy = -1; ///< -1: never set, as an H100 says
    int priority = 0;                ///< of operations submitted later
    std::array<std::uint8_t, 2> domain_map{0, 1};
    int domain = 0;

    /// Each checks its argument and changes nothing where it is refused with invalid_value. Codes and limits are an
    /// H100's (tests/driver_api/stream_test.cpp).
    Status set_window(const AccessPolicyWindow& given);
    Status set_synchronization_policy(int given);
    Status set_priority(int given); ///< clamped to the range of streams
    Status set_domain_map(std::array<std::uint8_t, 2> given);
    Status set_domain(int given);
};

} // namespace ptarmigan::runtime
