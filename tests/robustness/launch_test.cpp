// SPDX-License-Identifier: Apache-2.0
// Launches with parameters that no program should give: every one is an error of the call, and the
// context stays usable.
#include "tests/driver_api/driver.h"

#include <array>
#include <random>
#include <vector>

extern "C" {
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   unsigned, unsigned, CUstream, void**);
CUresult cuOccupancyMaxActiveClusters(int*, CUfunction, const CUlaunchConfig*);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t*, CUfunction, int, int);
}

namespace {

constexpr std::array<unsigned, 12> extremes{0,     1,     2,          31,         32,         1024,
                                            65535, 65536, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

void* tag(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

CUresult launch(CUfunction function, void** parameters, void** extra) {
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, extra);
}

/// add_one over no elements: whatever shape it runs in, it touches nothing.
struct Harmless {
    CUfunction function = driver_test::function("add_one");
    CUdeviceptr data = 0;
    unsigned count = 0;
    void* parameters[2] = {&data, &count};
};

} // namespace

TEST_CASE("launch: extreme shapes") {
    Harmless kernel;
    std::mt19937 random(20261121);
    auto any = [&] { return extremes[random() % extremes.size()]; };
    for (unsigned round = 0; round < 4000; ++round) {
        std::array<unsigned, 7> n{};
        for (unsigned& value : n)
            value = random() % 3 ? any() : 1;
        const double blocks = double(n[0]) * n[1] * n[2];
        const bool legal = blocks > 0 && n[0] <= 0x7fffffff && n[1] <= 65535 && n[2] <= 65535 &&
                           double(n[3]) * n[4] * n[5] >= 1 &&
                           double(n[3]) * n[4] * n[5] <= 1024 && n[5] <= 64 && n[6] <= 49152;
        if (legal && blocks > 100)
            continue; // right, and takes its time
        INFO(n[0] << " " << n[1] << " " << n[2] << ", " << n[3] << " " << n[4] << " " << n[5]
                  << ", " << n[6]);
        CHECK(cuLaunchKernel(kernel.function, n[0], n[1], n[2], n[3], n[4], n[5], n[6], nullptr,
                             kernel.parameters, nullptr) == (legal ? 0 : 1));
    }
    CHECK(cuCtxSynchronize() == 0);
}

TEST_CASE("launch: extreme clusters and attributes") {
    Harmless kernel;
    std::mt19937 random(20261121);
    auto any = [&] { return extremes[random() % extremes.size()]; };
    CUlaunchAttribute attributes[2]{};
    for (unsigned round = 0; round < 2000; ++round) {
        CUlaunchConfig config{unsigned(1 + random() % 4), 1, 1, 32, 1, 1, 0, nullptr, attributes, 1};
        attributes[0].id = 4;
        attributes[0].value.clusterDim = {any(), any(), any()};
        const auto& size = attributes[0].value.clusterDim;
        // All zeros say nothing, as on an H100.
        const bool single = size.x == size.y && size.y == size.z && size.x <= 1;
        const CUresult result =
            cuLaunchKernelEx(&config, kernel.function, kernel.parameters, nullptr);
        INFO(size.x << " " << size.y << " " << size.z);
        CHECK((result == 0) == single);
        int clusters = 0;
        CHECK(cuOccupancyMaxActiveClusters(&clusters, kernel.function, &config) >= 0);
        config.blockDimX = any();
        config.blockDimY = any();
        config.sharedMemBytes = any();
        CHECK(cuOccupancyMaxActiveClusters(&clusters, kernel.function, &config) >= 0);
    }
    CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0xffffffff};
    CHECK(cuLaunchKernelEx(&config, kernel.function, kernel.parameters, nullptr) == 1);
    config.attrs = attributes;
    config.numAttrs = 1;
    for (unsigned id : {7u, 12u}) { // events that are none
        attributes[0] = {};
        attributes[0].id = id;
        attributes[0].value.programmaticEvent.event = reinterpret_cast<CUevent>(0x1234);
        CHECK(cuLaunchKernelEx(&config, kernel.function, kernel.parameters, nullptr) >= 0);
    }
    CHECK(cuLaunchCooperativeKernel(kernel.function, 0x7fffffff, 65535, 65535, 1024, 1, 1, 0,
                                    nullptr, kernel.parameters) == 720);
    CHECK(cuCtxSynchronize() == 0);
}

TEST_CASE("launch: parameter lists and buffers of the wrong kind") {
    Harmless kernel;
    std::array<unsigned char, 12> block{};
    std::size_t none = 0, one = 1, right = block.size(), huge = SIZE_MAX;
    auto with = [&](std::vector<void*> extra) {
        return launch(kernel.function, nullptr, extra.data());
    };
    CHECK(with({tag(0)}) == 1);
    CHECK(with({tag(1), nullptr, tag(2), &right, tag(0)}) == 1);
    CHECK(with({tag(1), block.data(), tag(2), nullptr, tag(0)}) == 1);
    CHECK(with({tag(2), &right, tag(0)}) == 1);
    CHECK(with({tag(3), block.data(), tag(0)}) == 1);
    CHECK(with({tag(~std::uintptr_t{0}), block.data(), tag(0)}) == 1);
    CHECK(with({tag(1), block.data(), tag(2), &none, tag(0)}) == 0);
    CHECK(with({tag(1), block.data(), tag(2), &one, tag(0)}) == 0);
    CHECK(with({tag(1), block.data(), tag(2), &huge, tag(0)}) == 0); // only what the kernel has
    CHECK(with({tag(1), block.data(), tag(1), block.data(), tag(2), &none, tag(2), &right,
                tag(0)}) == 0);
    // The buffer and its size may be the same memory: both are only read.
    struct {
        std::size_t size;
        unsigned count;
    } overlap{12, 0};
    CHECK(with({tag(1), &overlap, tag(2), &overlap.size, tag(0)}) == 0);
    void* holes[] = {nullptr, &kernel.count};
    CHECK(launch(kernel.function, holes, nullptr) == 1);
    CHECK(cuCtxSynchronize() == 0);
}

TEST_CASE("launch: handles of other kinds and of the dead") {
    Harmless kernel;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    REQUIRE(cuStreamCreate(&stream, 0) == 0);
    REQUIRE(cuEventCreate(&event, 0) == 0);
    REQUIRE(cuModuleLoadData(&module, driver_test::kernels) == 0);
    auto launch_on = [&](void* function, void* queue) {
        return cuLaunchKernel(static_cast<CUfunction>(function), 1, 1, 1, 32, 1, 1, 0,
                              static_cast<CUstream>(queue), kernel.parameters, nullptr);
    };
    for (void* wrong : {static_cast<void*>(stream), static_cast<void*>(event),
                        static_cast<void*>(module), static_cast<void*>(driver_test::context())}) {
        CHECK(launch_on(wrong, nullptr) == 400);
        if (wrong != stream) {
            CHECK(launch_on(kernel.function, wrong) == 400);
            CHECK(cuStreamSynchronize(static_cast<CUstream>(wrong)) == 400);
            CHECK(cuStreamDestroy_v2(static_cast<CUstream>(wrong)) == 400);
        }
        if (wrong != event) {
            CHECK(cuEventRecord(static_cast<CUevent>(wrong), stream) == 400);
            CHECK(cuEventDestroy_v2(static_cast<CUevent>(wrong)) == 400);
        }
        if (wrong != module)
            CHECK(cuModuleUnload(static_cast<CUmodule>(wrong)) == 400);
    }
    CUfunction function = nullptr;
    REQUIRE(cuModuleGetFunction(&function, module, "add_one") == 0);
    CHECK(launch_on(function, stream) == 0);
    CHECK(cuModuleUnload(module) == 0); // waits for the launch
    CHECK(launch_on(function, stream) == 400);
    CHECK(cuEventRecord(event, stream) == 0);
    CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuEventSynchronize(event) == 0);
    CHECK(launch_on(kernel.function, stream) == 400);
    CHECK(cuStreamWaitEvent(stream, event, 0) == 400);
    CHECK(cuStreamDestroy_v2(stream) == 400);
    CHECK(cuEventDestroy_v2(event) == 0);
    CHECK(cuEventQuery(event) == 400);
    CHECK(cuStreamWaitEvent(nullptr, event, 0) == 400);
}

TEST_CASE("launch: occupancy of impossible blocks") {
    Harmless kernel;
    int blocks = 0;
    std::size_t bytes = 0;
    for (int a : {0, -1, 1, 1025, 0x7fffffff, int(0x80000000)})
        for (std::size_t b : {std::size_t{0}, std::size_t{1}, SIZE_MAX, SIZE_MAX / 2}) {
            CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, a, b) >= 0);
            CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, kernel.function, a,
                                                          static_cast<int>(b)) >= 0);
        }
}
