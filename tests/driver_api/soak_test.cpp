// SPDX-License-Identifier: Apache-2.0
// Many threads that give streams work of every kind, in graphs and without, and wait in every way there is, with pauses of
// random lengths between: counts are checked, and a watcher ends the process if nothing moves any more.
// SOAK=seconds[:seed] runs it longer; under ThreadSanitizer it is what shows the runtime's own accesses.
#include "driver.h"

#include "runtime/shim/graph_types.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace ptarmigan::shim;

extern "C" {
CUresult cuGraphCreate(CUgraph*, unsigned);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphAddEventRecordNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphUpload(CUgraphExec, CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, std::size_t, CUstream);
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned thread_count = 4, streams_each = 3, elements = 64;
constexpr int thread_local_mode = 1; // of capture

void count_call(void* counter) {
    ++*static_cast<std::atomic<unsigned>*>(counter);
}

/// One stream, `elements` counters in device memory, and what they have to be when it has done what it was given.
struct Lane {
    CUstream stream = nullptr;
    CUdeviceptr data = 0;
    unsigned added = 0;
    std::atomic<unsigned> called{0}; ///< host functions that have run
    unsigned calls = 0;              ///< that it was given
};

class Soak {
public:
    Soak(unsigned self, unsigned seed, CUcontext context, CUfunction add_one)
        : random_(seed * 1000 + self), add_one_(add_one) {
        expect(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        for (Lane& lane : lanes_) {
            expect(cuStreamCreate(&lane.stream, self % 2), "cuStreamCreate"); // half of the threads: blocking ones
            expect(cuMemAlloc_v2(&lane.data, elements * 4), "cuMemAlloc");
            expect(cuMemsetD32Async(lane.data, 0, elements, lane.stream), "cuMemsetD32Async");
        }
        expect(cuEventCreate(&event_, 2), "cuEventCreate");
        expect(cuEventCreate(&joined_, 2), "cuEventCreate");
    }

    ~Soak() {
        for (Lane& lane : lanes_) {
            check(lane);
            expect(cuMemFree_v2(lane.data), "cuMemFree");
            expect(cuStreamDestroy_v2(lane.stream), "cuStreamDestroy");
        }
        expect(cuEventDestroy_v2(event_), "cuEventDestroy");
        expect(cuEventDestroy_v2(joined_), "cuEventDestroy");
    }

    void step() {
        Lane& lane = lanes_[random_() % streams_each];
        switch (random_() % 16) {
        case 0:
        case 1:
        case 2: return launch(lane.stream, lane);
        case 3: return call_host(lane.stream, lane);
        case 4: return follow(lane, lanes_[random_() % streams_each]);
        case 5: return pass_memory(lane.stream, lane);
        case 6: return graph_with_event(lane);
        case 7:
        case 8: return capture(lane, lanes_[random_() % streams_each]);
        case 9: return leave_stream(lane);
        case 10: return pause();
        default: return wait(lane);
        }
    }

    const char* volatile place = "start"; ///< the call that the thread is in, for the watcher
    std::atomic<unsigned> steps{0}, failures{0};

private:
    void expect(CUresult result, const char* what) { expect(result == 0, what); }
    void expect(bool fine, const char* what) {
        if (fine) return;
        ++failures;
        std::fprintf(stderr, "soak: wrong: %s\n", what);
    }
    void pause() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400)); }

    void launch(CUstream stream, Lane& lane) {
        place = "cuLaunchKernel";
        unsigned count = elements;
        void* parameters[] = {&lane.data, &count};
        expect(cuLaunchKernel(add_one_, 2, 1, 1, elements / 2, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel");
        ++lane.added;
    }
    void call_host(CUstream stream, Lane& lane) {
        place = "cuLaunchHostFunc";
        expect(cuLaunchHostFunc(stream, count_call, &lane.called), "cuLaunchHostFunc");
        ++lane.calls;
    }
    /// The other stream waits for this one, and copies what it has computed.
    void follow(Lane& lane, Lane& other) {
        place = "cuEventRecord";
        CUdeviceptr copy = 0;
        expect(cuEventRecord(event_, lane.stream), "cuEventRecord");
        expect(cuStreamWaitEvent(other.stream, event_, 0), "cuStreamWaitEvent");
        const unsigned least = lane.added;
        expect(cuMemAllocAsync(&copy, elements * 4, other.stream), "cuMemAllocAsync");
        expect(cuMemcpyDtoDAsync_v2(copy, lane.data, elements * 4, other.stream), "cuMemcpyDtoDAsync");
        std::array<unsigned, elements> back{};
        expect(cuMemcpyDtoHAsync_v2(back.data(), copy, sizeof back, other.stream), "cuMemcpyDtoHAsync");
        expect(cuMemFreeAsync(copy, other.stream), "cuMemFreeAsync");
        place = "cuStreamSynchronize of the stream that follows";
        expect(cuStreamSynchronize(other.stream), "cuStreamSynchronize");
        for (unsigned value : back) expect(value >= least, "a stream did not wait for an event");
    }
    void pass_memory(CUstream stream, Lane& lane) {
        place = "cuMemAllocAsync";
        CUdeviceptr scratch = 0;
        expect(cuMemAllocAsync(&scratch, elements * 4, stream), "cuMemAllocAsync");
        expect(cuMemcpyDtoDAsync_v2(scratch, lane.data, elements * 4, stream), "cuMemcpyDtoDAsync");
        expect(cuMemsetD32Async(lane.data, 0, elements, stream), "cuMemsetD32Async");
        expect(cuMemcpyDtoDAsync_v2(lane.data, scratch, elements * 4, stream), "cuMemcpyDtoDAsync");
        expect(cuMemFreeAsync(scratch, stream), "cuMemFreeAsync");
    }
    /// Work behind a graph whose event is all that the thread waits for in the driver.
    void graph_with_event(Lane& lane) {
        place = "cuGraphLaunch with an event";
        CUgraph graph = nullptr;
        CUgraphNode node = nullptr;
        CUgraphExec exec = nullptr;
        expect(cuGraphCreate(&graph, 0), "cuGraphCreate");
        expect(cuGraphAddEventRecordNode(&node, graph, nullptr, 0, joined_), "cuGraphAddEventRecordNode");
        expect(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
        expect(cuGraphLaunch(exec, lane.stream), "cuGraphLaunch");
        call_host(lane.stream, lane);
        place = "cuEventSynchronize of a graph's event";
        expect(cuEventSynchronize(joined_), "cuEventSynchronize");
        expect(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
        expect(cuGraphDestroy(graph), "cuGraphDestroy");
        await_calls(lane);
    }
    void capture(Lane& lane, Lane& other) {
        place = "capture";
        expect(cuStreamBeginCapture_v2(lane.stream, thread_local_mode), "cuStreamBeginCapture");
        const bool forks = &lane != &other && random_() % 2;
        CUdeviceptr scratch = 0;
        if (forks) {
            expect(cuEventRecord(event_, lane.stream), "cuEventRecord");
            expect(cuStreamWaitEvent(other.stream, event_, 0), "cuStreamWaitEvent");
            expect(cuMemAllocAsync(&scratch, elements * 4, other.stream), "cuMemAllocAsync");
            expect(cuMemsetD32Async(scratch, 1, elements, other.stream), "cuMemsetD32Async");
            call_host(other.stream, lane);
            expect(cuMemFreeAsync(scratch, other.stream), "cuMemFreeAsync");
            expect(cuEventRecord(joined_, other.stream), "cuEventRecord");
        }
        for (unsigned count = random_() % 4; count > 0; --count) launch(lane.stream, lane);
        pass_memory(lane.stream, lane);
        call_host(lane.stream, lane);
        if (forks) expect(cuStreamWaitEvent(lane.stream, joined_, 0), "cuStreamWaitEvent");
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        expect(cuStreamEndCapture(lane.stream, &graph), "cuStreamEndCapture");
        expect(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
        if (random_() % 2) expect(cuGraphUpload(exec, lane.stream), "cuGraphUpload");
        place = "cuGraphLaunch";
        expect(cuGraphLaunch(exec, lane.stream), "cuGraphLaunch");
        if (random_() % 2) wait(lane);
        expect(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
        expect(cuGraphDestroy(graph), "cuGraphDestroy");
    }
    /// A stream that goes with its work undone.
    void leave_stream(Lane& lane) {
        place = "cuStreamDestroy";
        CUstream stream = nullptr;
        expect(cuStreamCreate(&stream, 1), "cuStreamCreate");
        expect(cuEventRecord(event_, lane.stream), "cuEventRecord");
        expect(cuStreamWaitEvent(stream, event_, 0), "cuStreamWaitEvent");
        call_host(stream, lane);
        expect(cuEventRecord(event_, stream), "cuEventRecord");
        expect(cuStreamDestroy_v2(stream), "cuStreamDestroy");
        expect(cuStreamWaitEvent(lane.stream, event_, 0), "cuStreamWaitEvent");
    }
    /// Until the host functions of `lane` have run, without a call of the driver.
    void await_calls(const Lane& lane) {
        place = "waiting for a host function without the driver";
        while (lane.called.load() < lane.calls) std::this_thread::yield();
    }
    void wait(Lane& lane) {
        if (random_() % 2) pause();
        switch (random_() % 6) {
        case 0:
            place = "cuStreamSynchronize";
            expect(cuStreamSynchronize(lane.stream), "cuStreamSynchronize");
            break;
        case 1:
            expect(cuEventRecord(event_, lane.stream), "cuEventRecord");
            place = "cuEventSynchronize";
            expect(cuEventSynchronize(event_), "cuEventSynchronize");
            break;
        case 2:
            expect(cuEventRecord(event_, lane.stream), "cuEventRecord");
            place = "cuEventQuery";
            for (CUresult result = 600; result != 0;) {
                result = cuEventQuery(event_);
                if (result != 0 && result != 600) return expect(result, "cuEventQuery");
                if (result != 0) std::this_thread::yield();
            }
            break;
        case 3:
            place = "cuStreamQuery";
            for (CUresult result = 600; result != 0;) {
                result = cuStreamQuery(lane.stream);
                if (result != 0 && result != 600) return expect(result, "cuStreamQuery");
                if (result != 0) std::this_thread::yield();
            }
            break;
        case 4:
            call_host(lane.stream, lane);
            await_calls(lane);
            break;
        default:
            place = "cuMemcpyDtoH";
            return check(lane);
        }
        check(lane);
    }
    void check(Lane& lane) {
        std::array<unsigned, elements> back{};
        place = "cuMemcpyDtoHAsync and cuStreamSynchronize";
        expect(cuMemcpyDtoHAsync_v2(back.data(), lane.data, sizeof back, lane.stream), "cuMemcpyDtoHAsync");
        expect(cuStreamSynchronize(lane.stream), "cuStreamSynchronize");
        for (unsigned value : back) expect(value == lane.added, "a counter");
        expect(lane.called.load() == lane.calls, "a count of host functions");
    }

    std::mt19937 random_;
    const CUfunction add_one_;
    std::array<Lane, streams_each> lanes_;
    CUevent event_ = nullptr, joined_ = nullptr;
};

} // namespace

TEST_CASE("soak: work of every kind on many streams, waited for in every way") {
    CUcontext context = driver_test::context();
    CUfunction add_one = driver_test::function("add_one");
    double seconds = 0.5;
    unsigned seed = 1;
    if (const char* asked = std::getenv("SOAK")) std::sscanf(asked, "%lf:%u", &seconds, &seed);
    const Clock::time_point end = Clock::now() + std::chrono::microseconds(static_cast<long long>(seconds * 1e6));

    std::array<std::atomic<Soak*>, thread_count> soaks{};
    std::atomic<unsigned> steps{0}, failures{0}, left{thread_count};
    std::vector<std::thread> threads;
    for (unsigned self = 0; self < thread_count; ++self)
        threads.emplace_back([&, self] {
            auto soak = std::make_unique<Soak>(self, seed, context, add_one);
            soaks[self] = soak.get();
            do {
                soak->step();
                ++steps;
            } while (Clock::now() < end);
            failures += soak->failures;
            soaks[self] = nullptr;
            soak.reset();
            --left;
        });
    // Nothing here takes longer than a few milliseconds; a machine on which many run is given time all the same.
    constexpr std::chrono::seconds most{60};
    Clock::time_point moved = Clock::now();
    for (unsigned seen = 0; left > 0; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
        if (const unsigned now = steps + thread_count - left; now != seen) {
            seen = now;
            moved = Clock::now();
        }
        if (Clock::now() - moved < most) continue;
        std::fprintf(stderr, "soak: nothing has moved for a minute after %u steps (seed %u)\n", steps.load(), seed);
        for (const auto& soak : soaks)
            if (const Soak* one = soak) std::fprintf(stderr, "soak: a thread is in %s\n", one->place);
        std::abort();
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(failures == 0);
    CHECK(cuCtxSynchronize() == 0);
    if (std::getenv("SOAK")) std::printf("soak: %u steps\n", steps.load());
}
