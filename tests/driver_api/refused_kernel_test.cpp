// SPDX-License-Identifier: Apache-2.0
// A kernel whose machine code can't be lifted: its launch is refused, and a program that does not look is told at its next
// wait or copy to the host, once. In a process of its own.
#include "driver.h"
#include "fault_child.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

/// vector_add with an instruction that no table has in the place of EXIT.
std::string unknown_code() {
    std::ifstream file(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/vector_add.sm_80.cubin", std::ios::binary);
    std::string image{std::istreambuf_iterator<char>(file), {}};
    const std::string leaves{"\x4d\x79\0\0\0\0\0\0", 8};
    for (std::size_t at = 0; (at = image.find(leaves, at)) != std::string::npos; at += leaves.size()) image[at] = image[at + 1] = '\xff';
    return image;
}

/// What the launch gives, then two waits and two copies, a launch before each pair: digits of 1 for 801, 0 for success.
int use() {
    const std::string image = unknown_code();
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr memory = 0;
    if (!driver_test::begin_on(0) || cuMemAlloc_v2(&memory, 64)) return -1;
    if (cuModuleLoadData(&module, image.data()) || cuModuleGetFunction(&kernel, module, "vector_add")) return -2;
    std::array<std::uint64_t, 4> values{memory, memory, memory, 1};
    std::array<void*, 4> parameters{&values[0], &values[1], &values[2], &values[3]};
    int codes = 0;
    const auto note = [&](CUresult code) { codes = 10 * codes + (code == 0 ? 0 : code == 801 ? 1 : 2); };
    const auto launch = [&] { note(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters.data(), nullptr)); };
    char byte = 0;
    launch();
    note(cuCtxSynchronize());
    note(cuCtxSynchronize());
    launch();
    note(cuMemcpyDtoH_v2(&byte, memory, 1));
    note(cuMemcpyDtoH_v2(&byte, memory, 1));
    return codes;
}

} // namespace

TEST_CASE("fault: refused_kernel", "[.]") {
    using Catch::Contains;
    const std::string said = driver_test::said_by_child([] {
        setenv("PTARMIGAN_MACHINE_CODE", "1", 1);
        return use();
    });
    CHECK_THAT(said, Contains("can't be lifted") && Contains("code 110110"));
}
