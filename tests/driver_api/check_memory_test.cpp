// SPDX-License-Identifier: Apache-2.0
// PTARMIGAN_CHECK=memory: kernels use what a device reaches, and end with 700 at memory of the host's and behind an
// allocation's end, as reports of both say. Each in a process of its own.
#include "driver.h"
#include "fault_child.h"

#include <cstdlib>
#include <vector>

namespace {

enum class Place { device, managed, pooled, pinned, registered, pageable, behind, before };

/// add_one on 1,000 words at the place; what synchronising gives, negative where anything else fails.
int use(Place place) {
    constexpr unsigned words = 1000, threads = 250;
    CUcontext primary = nullptr;
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary, 0) || cuCtxSetCurrent(primary)) return -1;
    if (cuModuleLoadData(&module, driver_test::kernels) || cuModuleGetFunction(&kernel, module, "add_one")) return -2;
    CUdeviceptr memory = 0, other = 0;
    void* host = nullptr;
    std::vector<unsigned> vector(words);
    int code = 0;
    switch (place) {
    case Place::device: code = cuMemAlloc_v2(&memory, words * 4); break;
    case Place::managed: code = cuMemAllocManaged(&memory, words * 4, 1); break;
    case Place::pooled: code = cuMemAllocAsync(&memory, words * 4, nullptr); break;
    case Place::pinned:
        code = cuMemHostAlloc(&host, words * 4, 0);
        memory = reinterpret_cast<CUdeviceptr>(host);
        break;
    case Place::registered:
        code = cuMemHostRegister_v2(vector.data(), words * 4, 0);
        [[fallthrough]];
    case Place::pageable: memory = reinterpret_cast<CUdeviceptr>(vector.data()); break;
    case Place::behind:
    case Place::before:
        code = cuMemAlloc_v2(&memory, words * 4) || cuMemAlloc_v2(&other, words * 4); // 512 bytes apart at most
        memory = place == Place::behind ? memory + 4 : memory - 4;
        break;
    }
    if (code) return -3;
    unsigned count = words;
    void* parameters[] = {&memory, &count};
    if (cuLaunchKernel(kernel, words / threads, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr)) return -4;
    return cuCtxSynchronize();
}

std::string said(const char* setting, Place place) {
    return driver_test::said_by_child([&] {
        setenv("PTARMIGAN_CHECK", setting, 1);
        return use(place);
    });
}

} // namespace

TEST_CASE("fault: check_memory", "[.]") {
    using Catch::Contains;
    for (const Place place : {Place::device, Place::managed, Place::pooled, Place::pinned, Place::registered})
        CHECK_THAT(said("memory", place), Contains("code 0"));
    CHECK_THAT(said("memory", Place::pageable), Contains("code 700") && Contains("neither pinned nor managed nor registered"));
    CHECK_THAT(said("memory", Place::behind), Contains("code 700") && Contains("outside of every allocation") && Contains("block (3,0,0)"));
    CHECK_THAT(said("memory", Place::before), Contains("code 700") && Contains("outside of every allocation") && Contains("block (0,0,0)"));
    for (const Place place : {Place::pageable, Place::behind, Place::before}) CHECK_THAT(said("none", place), Contains("code 0"));
}
