// SPDX-License-Identifier: Apache-2.0
// Faults of kernels: the code sticks, the process lives. Hidden by default ([.]): each needs a
// process of its own.
#include "driver.h"

#include <stdexcept>

namespace {

/// Launches, and checks that `code` appears at the synchronisation and at calls after it.
void check_fault(CUfunction function, void** parameters, CUresult code) {
    CUdeviceptr pointer = 0;
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) == 0);
    CHECK(cuCtxSynchronize() == code);
    CHECK(cuMemAlloc_v2(&pointer, 16) == code);
    CHECK(cuStreamSynchronize(nullptr) == code);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) == code);
    CUcontext current = nullptr;
    CHECK(cuCtxGetCurrent(&current) == 0);
    int warp = 0;
    CHECK(cuDeviceGetAttribute(&warp, 10, 0) == 0);
    CHECK(cuDevicePrimaryCtxReset_v2(0) == 0);
    CHECK(cuDevicePrimaryCtxRetain(&current, 0) ==
          code); // the process is finished, as with the NVIDIA driver
}

} // namespace

TEST_CASE("fault: illegal_address", "[.]") {
    CUdeviceptr address = 0x10;
    unsigned value = 1;
    void* parameters[] = {&address, &value};
    check_fault(driver_test::function("store"), parameters, 700);
}

TEST_CASE("fault: trap", "[.]") { check_fault(driver_test::function("trap"), nullptr, 719); }

// Those that wait for memory, and at a barrier of the block, would never end: the context does.
TEST_CASE("fault: other_grids", "[.]") {
    const CUfunction trap = driver_test::function("trap");
    CUmodule module = nullptr;
    CUfunction wait = nullptr;
    REQUIRE(cuModuleLoadData(&module, R"(
.version 8.0
.target sm_75
.address_size 64
.entry wait(.param .u64 word)
{
    .reg .b32 %seen, %t; .reg .b64 %a; .reg .pred %p;
    ld.param.u64 %a, [word]; mov.u32 %t, %tid.x;
    st.volatile.global.u32 [%a + 4], 1;
    setp.gt.u32 %p, %t, 31; @%p bra MEET;
LISTEN:
    ld.volatile.global.u32 %seen, [%a];
    setp.eq.u32 %p, %seen, 0; @%p bra LISTEN;
MEET:
    bar.sync 0;
    ret;
}
)") == 0);
    REQUIRE(cuModuleGetFunction(&wait, module, "wait") == 0);
    CUdeviceptr word = driver_test::allocate(8);
    REQUIRE(cuMemsetD8_v2(word, 0, 8) == 0);
    CUstream waiting = nullptr, trapping = nullptr;
    REQUIRE(cuStreamCreate(&waiting, 1) == 0);
    REQUIRE(cuStreamCreate(&trapping, 1) == 0);
    void* parameters[] = {&word};
    REQUIRE(cuLaunchKernel(wait, 40, 1, 1, 64, 1, 1, 0, waiting, parameters, nullptr) == 0);
    unsigned runs = 0;
    while (runs == 0) {
        REQUIRE(cuMemcpyDtoHAsync_v2(&runs, word + 4, 4, trapping) == 0);
        REQUIRE(cuStreamSynchronize(trapping) == 0);
    }
    REQUIRE(cuLaunchKernel(trap, 1, 1, 1, 32, 1, 1, 0, trapping, nullptr, nullptr) == 0);
    CHECK(cuStreamSynchronize(trapping) == 719);
    CHECK(cuStreamSynchronize(waiting) == 719);
    CHECK(cuDevicePrimaryCtxReset_v2(0) == 0); // waits for the grids' ends
}

// An exception that leaves a host function ends neither the thread it ran on nor the process.
TEST_CASE("fault: host_function", "[.]") {
    driver_test::context();
    CUstream stream = nullptr;
    REQUIRE(cuStreamCreate(&stream, 1) == 0);
    const auto throws = [](void*) { throw std::runtime_error("from a host function"); };
    REQUIRE(cuLaunchHostFunc(stream, throws, nullptr) == 0);
    CHECK(cuStreamSynchronize(stream) == 999);
    CHECK(cuCtxSynchronize() == 999);
    CUdeviceptr pointer = 0;
    CHECK(cuMemAlloc_v2(&pointer, 16) == 999);
}

// The optimiser may not take a path that stores to a null pointer for one that is never taken.
TEST_CASE("fault: null_pointer", "[.]") {
    driver_test::context();
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cuModuleLoadData(&module, R"(
.version 8.0
.target sm_75
.address_size 64
.entry null_store(.param .u32 count)
{
    .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd1;
    ld.param.u32 %r1, [count];
    setp.ne.u32 %p, %r1, 0;
    mov.u64 %rd1, 0;
    @%p st.global.u32 [%rd1], %r1;
    ret;
}
)") == 0);
    REQUIRE(cuModuleGetFunction(&function, module, "null_store") == 0);
    unsigned count = 0;
    void* parameters[] = {&count};
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) == 0);
    CHECK(cuCtxSynchronize() == 0);
    count = 1;
    check_fault(function, parameters, 700);
}
