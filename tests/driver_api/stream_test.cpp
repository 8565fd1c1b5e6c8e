// SPDX-License-Identifier: Apache-2.0
// Streams and events. Expected codes are the NVIDIA driver's on an H200; where that crashes
// (invalid handles), ours says 400.
#include "driver.h"

TEST_CASE("stream: creation, priority, special handles") {
    driver_test::context();
    CUstream stream = nullptr;
    int priority = 1;
    CHECK(cuStreamCreate(&stream, 99) == 1);
    CHECK(cuStreamCreate(nullptr, 0) == 1);
    REQUIRE(cuStreamCreateWithPriority(&stream, 1, 100) == 0);
    CHECK(cuStreamGetPriority(stream, &priority) == 0);
    CHECK(priority == 0);
    CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuStreamDestroy_v2(stream) == 400);
    CHECK(cuStreamSynchronize(stream) == 400);
    CHECK(cuStreamSynchronize(reinterpret_cast<CUstream>(1)) == 0);
    CHECK(cuStreamSynchronize(reinterpret_cast<CUstream>(2)) == 0);
    CHECK(cuStreamSynchronize(reinterpret_cast<CUstream>(0x999)) == 400);
    for (std::uintptr_t special : {0, 1, 2})
        CHECK(cuStreamDestroy_v2(reinterpret_cast<CUstream>(special)) == 400);
}

TEST_CASE("event: states and codes") {
    driver_test::context();
    CUevent first = nullptr, second = nullptr, untimed = nullptr;
    float time = -1;
    CHECK(cuEventCreate(&first, 99) == 1);
    REQUIRE(cuEventCreate(&first, 0) == 0);
    REQUIRE(cuEventCreate(&second, 0) == 0);
    REQUIRE(cuEventCreate(&untimed, 2) == 0);
    CHECK(cuEventQuery(first) == 0);
    CHECK(cuEventSynchronize(first) == 0);
    CHECK(cuEventElapsedTime_v2(&time, first, second) == 400);
    CHECK(cuEventRecord(nullptr, nullptr) == 400);
    CHECK(cuEventRecord(first, nullptr) == 0);
    CHECK(cuEventRecord(second, nullptr) == 0);
    CHECK(cuEventRecord(untimed, nullptr) == 0);
    CHECK(cuEventSynchronize(second) == 0);
    CHECK(cuEventElapsedTime_v2(&time, first, second) == 0);
    CHECK(time >= 0);
    CHECK(cuEventElapsedTime_v2(&time, first, untimed) == 400);
    CHECK(cuStreamWaitEvent(nullptr, nullptr, 0) == 400);
    CHECK(cuStreamWaitEvent(nullptr, first, 9) == 1);
    CHECK(cuEventDestroy_v2(first) == 0);
    CHECK(cuEventDestroy_v2(first) == 400);
    CHECK(cuEventDestroy_v2(second) == 0);
    CHECK(cuEventDestroy_v2(untimed) == 0);
}
