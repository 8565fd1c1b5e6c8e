// SPDX-License-Identifier: Apache-2.0
// Generic pointers to shared memory that went through memory: as PTX and as machine code, which on sm_90 takes the lower
// half of such a pointer for the shared address.
#include "driver.h"

#include <array>
#include <string>

namespace {

constexpr unsigned blocks = 16, threads = 64;

/// What thread i's neighbour i ^ 1 put there, read by the generic address and by the shared one.
std::array<std::array<std::uint32_t, 2>, threads> expected() {
    std::array<std::array<std::uint32_t, 2>, threads> words{};
    for (unsigned i = 0; i < threads; ++i) words[i].fill((i ^ 1) * 7 + 100);
    return words;
}

} // namespace

TEST_CASE("module: pointers to shared memory that went through memory") {
    driver_test::context();
    for (const char* name : {"shared_pointer.ptx", "shared_pointer.sm_80.cubin", "shared_pointer.sm_90.cubin"}) {
        CAPTURE(name);
        CUmodule module = nullptr;
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleLoad(&module, (std::string(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/") + name).c_str()) == 0);
        REQUIRE(cuModuleGetFunction(&kernel, module, "shared_pointer") == 0);
        CUdeviceptr kept = driver_test::allocate(blocks * threads * 8), out = driver_test::allocate(threads * 8);
        std::array<void*, 2> parameters{&kept, &out};
        // More blocks than workers, so that windows of many arenas are used.
        for (unsigned round = 0; round < 8; ++round)
            REQUIRE(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data(), nullptr) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
        std::array<std::array<std::uint32_t, 2>, threads> words{};
        REQUIRE(cuMemcpyDtoH_v2(words.data(), out, sizeof words) == 0);
        CHECK(words == expected());
        CHECK(cuMemFree_v2(kept) == 0);
        CHECK(cuMemFree_v2(out) == 0);
        CHECK(cuModuleUnload(module) == 0);
    }
}
