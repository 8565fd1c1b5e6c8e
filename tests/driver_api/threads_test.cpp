// SPDX-License-Identifier: Apache-2.0
// Many threads on one context: loading, launching, waiting for each other's events, and destroying what
// others still use. Results are checked; under ThreadSanitizer so is the rest.
#include "driver.h"

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr unsigned thread_count = 4, rounds = 40, elements = 256;

/// What the threads show each other: events and streams that their owner may destroy at any moment.
struct Shared {
    std::array<std::atomic<CUevent>, thread_count> events{};
    std::array<std::atomic<CUstream>, thread_count> streams{};
    std::atomic<unsigned> failures{0};

    /// Catch's assertions are not for several threads.
    void expect(bool fine) { failures += !fine; }
    /// For calls on handles of others: done, not ready, or gone already.
    void expect_verdict(CUresult result) { expect(result == 0 || result == 600 || result == 400); }
};

void one_round(Shared& shared, unsigned self, std::mt19937& random, CUdeviceptr data) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    shared.expect(cuModuleLoadData(&module, driver_test::kernels) == 0);
    shared.expect(cuModuleGetFunction(&function, module, "add_one") == 0);
    shared.expect(cuStreamCreate(&stream, random() % 2) == 0);
    shared.expect(cuEventCreate(&event, random() % 2 ? 2 : 0) == 0);
    shared.events[self] = event;
    shared.streams[self] = stream;
    unsigned count = elements;
    void* parameters[] = {&data, &count};
    const unsigned launches = 1 + random() % 4;
    shared.expect(cuMemsetD32_v2(data, self, elements) == 0);
    shared.expect(cuStreamSynchronize(nullptr) == 0); // streams that don't wait for the default one
    for (unsigned i = 0; i < launches; ++i) {
        const unsigned other = random() % thread_count;
        if (CUevent theirs = shared.events[other])
            shared.expect_verdict(cuStreamWaitEvent(stream, theirs, 0));
        shared.expect(cuLaunchKernel(function, 2, 1, 1, elements / 2, 1, 1, 0, stream, parameters,
                                     nullptr) == 0);
        shared.expect(cuEventRecord(event, stream) == 0);
        if (CUstream theirs = shared.streams[other])
            shared.expect_verdict(random() % 4 ? cuStreamQuery(theirs) : cuStreamSynchronize(theirs));
    }
    shared.expect(random() % 2 ? cuEventSynchronize(event) == 0 : cuStreamSynchronize(stream) == 0);
    std::vector<unsigned> back(elements);
    shared.expect(cuMemcpyDtoH_v2(back.data(), data, elements * 4) == 0);
    for (unsigned value : back)
        shared.expect(value == self + launches);
    shared.expect(cuStreamDestroy_v2(stream) == 0);
    shared.expect(cuEventDestroy_v2(event) == 0);
    shared.expect(cuModuleUnload(module) == 0);
}

} // namespace

TEST_CASE("threads: one context, handles of others, objects that go away") {
    CUcontext context = driver_test::context();
    Shared shared;
    std::vector<std::thread> threads;
    for (unsigned self = 0; self < thread_count; ++self)
        threads.emplace_back([&, self] {
            std::mt19937 random(self);
            shared.expect(cuCtxSetCurrent(context) == 0);
            CUdeviceptr data = 0;
            shared.expect(cuMemAlloc_v2(&data, elements * 4) == 0);
            for (unsigned round = 0; round < rounds; ++round)
                one_round(shared, self, random, data);
            shared.expect(cuMemFree_v2(data) == 0);
        });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(shared.failures == 0);
    CHECK(cuCtxSynchronize() == 0);
}

TEST_CASE("threads: what is given to many streams is done though nobody waits with the driver") {
    CUcontext context = driver_test::context();
    constexpr unsigned givers = 8, streams = 16, rounds_of_work = 20;
    std::vector<CUstream> handles(streams);
    for (CUstream& stream : handles) REQUIRE(cuStreamCreate(&stream, 1) == 0);
    const CUdeviceptr word = driver_test::allocate(4);
    CUfunction store = driver_test::function("store");
    for (unsigned round = 0; round < rounds_of_work; ++round) {
        std::atomic<unsigned> done{0}, failures{0};
        std::vector<std::thread> threads;
        for (unsigned self = 0; self < givers; ++self)
            threads.emplace_back([&, self] {
                failures += cuCtxSetCurrent(context) != 0;
                for (unsigned i = 0; i < streams; ++i) {
                    CUdeviceptr where = word;
                    unsigned value = i;
                    void* arguments[] = {&where, &value};
                    CUstream stream = handles[(self * 7 + i) % streams];
                    if (i % 3) failures += cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) != 0;
                    failures += cuLaunchHostFunc(
                                    stream, [](void* count) { ++*static_cast<std::atomic<unsigned>*>(count); }, &done) != 0;
                }
            });
        for (std::thread& thread : threads) thread.join();
        for (unsigned i = 0; done < givers * streams && i < 20000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        REQUIRE(failures == 0);
        REQUIRE(done == givers * streams);
    }
    for (CUstream stream : handles) CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuMemFree_v2(word) == 0);
}
