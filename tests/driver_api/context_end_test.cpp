// SPDX-License-Identifier: Apache-2.0
// The end of a context waits for what was launched before it. Programs print from a kernel and count on
// cudaDeviceReset() to wait for it.
#include "driver.h"

namespace {

/// Synchronises often enough that the next launch is left to the thread that waits for it.
void wait_promptly(CUfunction function, CUdeviceptr word) {
    unsigned count = 1;
    void* parameters[] = {&word, &count};
    for (int i = 0; i < 8; ++i) {
        REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
    }
}

/// Adds one to a word of another context's, in the current context, and ends that by `end`.
template <class End> unsigned count_until(CUdeviceptr word, End end) {
    CUmodule module = nullptr;
    CUfunction add_one = nullptr;
    REQUIRE(cuModuleLoadData(&module, driver_test::kernels) == 0);
    REQUIRE(cuModuleGetFunction(&add_one, module, "add_one") == 0);
    auto* const counter = reinterpret_cast<volatile unsigned*>(word);
    wait_promptly(add_one, word);
    REQUIRE(*counter == 8);
    unsigned count = 1;
    void* parameters[] = {&word, &count};
    REQUIRE(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 0);
    CHECK(end() == 0);
    return *counter;
}

/// Host memory of the current context.
CUdeviceptr host_word() {
    void* word = nullptr;
    REQUIRE(cuMemHostAlloc(&word, 4, 0) == 0);
    *static_cast<unsigned*>(word) = 0;
    return reinterpret_cast<CUdeviceptr>(word);
}

} // namespace

TEST_CASE("context: its destruction waits for its kernels") {
    driver_test::context();
    const CUdeviceptr word = host_word();
    CUcontext made = nullptr;
    REQUIRE(cuCtxCreate_v2(&made, 0, 0) == 0);
    CHECK(count_until(word, [&] { return cuCtxDestroy_v2(made); }) == 9);
    driver_test::context();
    CHECK(cuMemFreeHost(reinterpret_cast<void*>(word)) == 0);
}

// Hidden: no other case of the process has the primary context then.
TEST_CASE("context: a reset waits for the kernels", "[.]") {
    driver_test::context();
    CUcontext made = nullptr;
    REQUIRE(cuCtxCreate_v2(&made, 0, 0) == 0);
    const CUdeviceptr word = host_word();
    driver_test::context();
    CHECK(count_until(word, [] { return cuDevicePrimaryCtxReset_v2(0); }) == 9);
}

TEST_CASE("context: the last release waits for the kernels", "[.]") {
    driver_test::context();
    CUcontext made = nullptr;
    REQUIRE(cuCtxCreate_v2(&made, 0, 0) == 0);
    const CUdeviceptr word = host_word();
    driver_test::context();
    CHECK(count_until(word, [] { return cuDevicePrimaryCtxRelease_v2(0); }) == 9);
}

// An H200's answers.
TEST_CASE("context: cuCtxDetach is for the current context, and leaves a primary one as it is") {
    CUcontext primary = driver_test::context(), made = nullptr, attached = nullptr, current = nullptr;
    for (int i = 0; i < 3; ++i) CHECK(cuCtxDetach(primary) == 0);
    REQUIRE(cuCtxAttach(&attached, 0) == 0);
    CHECK(attached == primary);
    for (int i = 0; i < 2; ++i) CHECK(cuCtxDetach(primary) == 0);
    unsigned flags = 0;
    int active = 0;
    REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == 0);
    CHECK(active == 1);
    REQUIRE(cuCtxCreate_v2(&made, 0, 0) == 0);
    CHECK(cuCtxDetach(primary) == 201);
    REQUIRE(cuCtxAttach(&attached, 0) == 0);
    CHECK(cuCtxDetach(made) == 0);
    REQUIRE(cuCtxGetCurrent(&current) == 0);
    CHECK(current == made);
    REQUIRE(cuCtxSetCurrent(primary) == 0);
    CHECK(cuCtxDetach(made) == 201);
    REQUIRE(cuCtxSetCurrent(made) == 0);
    CHECK(cuCtxDetach(made) == 0);
    CHECK(cuCtxDetach(made) == 201);
    REQUIRE(cuCtxSetCurrent(primary) == 0);
}
