// SPDX-License-Identifier: Apache-2.0
// CUDA_VISIBLE_DEVICES against what an H100 with driver 580 answered.
#include "runtime/device/visible_devices.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::runtime;

TEST_CASE("visible devices: recorded lists") {
    const std::array<std::uint8_t, 16> uuid = {0x6d, 0x74, 0xc9, 0x1a, 0x8f, 0x7d, 0xef, 0x10,
                                               0x6b, 0xeb, 0xa8, 0xeb, 0x12, 0x05, 0x41, 0x33};
    struct {
        const char* list;
        Status status;
    } const rows[] = {
        {"0", Status::success},
        {" 0", Status::success},
        {"0 ", Status::success},
        {"00", Status::success},
        {"+0", Status::success},
        {"0x0", Status::success},
        {"0abc", Status::success},
        {"0,1", Status::success},
        {"0,0", Status::invalid_device},
        {"0,GPU-6d74c91a-8f7d-ef10-6beb-a8eb12054133", Status::success},
        {"GPU-6d74c91a-8f7d-ef10-6beb-a8eb12054133,0", Status::success},
        {"GPU-6d74c91a-8f7d-ef10-6beb-a8eb12054133", Status::success},
        {"GPU-6D74C91A-8F7D-EF10-6BEB-A8EB12054133", Status::success},
        {"GPU-6d74c91a", Status::success},
        {"GPU-6d", Status::success},
        {"GPU-6", Status::success},
        {"GPU-", Status::no_device},
        {"GPU-xyz", Status::no_device},
        {"gpu-6d74c91a-8f7d-ef10-6beb-a8eb12054133", Status::no_device},
        {"6d74c91a-8f7d-ef10-6beb-a8eb12054133", Status::no_device},
        {"", Status::no_device},
        {"-1", Status::no_device},
        {"1,0", Status::no_device},
    };
    for (const auto& row : rows) {
        INFO(row.list);
        std::vector<int> numbers;
        CHECK(find_visible_devices(row.list, {&uuid, 1}, numbers) == row.status);
    }
}
