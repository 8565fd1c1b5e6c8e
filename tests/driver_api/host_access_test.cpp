// SPDX-License-Identifier: Apache-2.0
// PTARMIGAN_HOST_ACCESS=fault: kernels, copies and the host's own kinds of memory work, and host code that uses device
// memory dies of it. Each in a process of its own.
#include "driver.h"
#include "fault_child.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr unsigned count = 1 << 20;

/// What a program does as it should, then host(device memory).
int use(void (*host)(volatile unsigned*)) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr device = 0, managed = 0, pooled = 0, variable = 0;
    void* pinned = nullptr;
    std::size_t size = 0;
    if (!driver_test::begin_on(0)) return -1;
    if (cuModuleLoadData(&module, driver_test::kernels) || cuModuleGetFunction(&kernel, module, "add_one")) return -2;
    if (cuMemAlloc_v2(&device, count * 4) || cuMemAllocManaged(&managed, count * 4, 1) || cuMemHostAlloc(&pinned, count * 4, 0)) return -3;
    if (cuMemAllocAsync(&pooled, count * 4, nullptr)) return -4;
    std::vector<unsigned> values(count, 3);
    std::memset(pinned, 0, count * 4);
    std::memset(reinterpret_cast<void*>(managed), 0, count * 4);
    if (cuMemcpyHtoD_v2(device, values.data(), count * 4) || cuMemcpyDtoD_v2(pooled, device, count * 4)) return -5;
    for (CUdeviceptr memory : {device, managed, pooled, reinterpret_cast<CUdeviceptr>(pinned)}) {
        unsigned words = count;
        void* parameters[] = {&memory, &words};
        if (cuLaunchKernel(kernel, count / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr)) return -6;
    }
    if (cuCtxSynchronize()) return -7;
    unsigned first = 0, last = 0;
    if (cuMemcpyDtoH_v2(&first, device, 4) || cuMemcpyDtoH_v2(&last, pooled + count * 4 - 4, 4)) return -8;
    if (first != 4 || last != 4 || *reinterpret_cast<unsigned*>(managed) != 1 || static_cast<unsigned*>(pinned)[count - 1] != 1) return -9;
    if (cuModuleGetGlobal_v2(&variable, &size, module, "counter") || cuMemcpyDtoH_v2(&first, variable, 4) || first != 7) return -10;
    host(reinterpret_cast<volatile unsigned*>(device));
    return 0;
}

std::string said(const char* setting, void (*host)(volatile unsigned*)) {
    return driver_test::said_by_child([&] {
        setenv("PTARMIGAN_HOST_ACCESS", setting, 1);
        std::signal(SIGSEGV, SIG_DFL); // not the test framework's
        return use(host);
    });
}

} // namespace

TEST_CASE("fault: host_access", "[.]") {
    using Catch::Contains;
    const auto nothing = [](volatile unsigned*) {};
    const auto reads = [](volatile unsigned* memory) { static_cast<void>(memory[5]); };
    const auto writes = [](volatile unsigned* memory) { memory[count - 1] = 1; };
    CHECK_THAT(said("fault", nothing), Contains("code 0"));
    CHECK_THAT(said("fault", reads), Contains("host code used device memory at 0x") && Contains("status 11"));
    CHECK_THAT(said("fault", writes), Contains("host code used device memory at 0x") && Contains("status 11"));
    CHECK_THAT(said("allow", reads), Contains("code 0") && !Contains("host code"));
    CHECK_THAT(said("allow", writes), Contains("code 0"));
}
