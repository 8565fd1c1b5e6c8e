// SPDX-License-Identifier: Apache-2.0
// The CTAs of a cluster are fibers of one thread, wherever they wait: what lets mbarrier objects, cluster barriers and what they
// keep about waiting steps be plain memory (runtime/exec/README.md 25, runtime/launch/README.md 26).
#include "fixture.h"

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

namespace ptarmigan::runtime::test {

namespace {

constexpr unsigned cluster_size = 4, cluster_count = 48, rounds = 200;

std::array<std::thread::id, cluster_size * cluster_count> first_thread;
std::atomic<unsigned> moved, started;
std::atomic<bool> alone;

bool is_where_it_began(const abi::CtaContext *cta) {
    return first_thread[cta->linear_ctaid] == std::this_thread::get_id();
}

void meet(abi::CtaContext *cta, std::uint32_t step) {
    cta->services->cluster_barrier(cta, step, 0, 0xffffffff, 0xffffffff);
    cta->services->cluster_barrier(cta, step, 1, 0xffffffff, 0xffffffff);
}

abi::MbarrierCall call_of(const abi::CtaContext *cta, abi::MbarrierOperation operation, std::uint32_t count) {
    abi::MbarrierCall call{};
    call.operation = static_cast<std::uint32_t>(operation);
    call.flags = abi::MbarrierCall::uniform;
    call.active = 1;
    call.object[0] = reinterpret_cast<std::uint64_t>(cta->shared); // rank 0's, as all see it
    call.count[0] = count;
    return call;
}

/// All CTAs arrive at the object of rank 0 and wait for the phase, `rounds` times.
void arrive_at_rank_0(abi::CtaContext *cta, std::uint32_t step) {
    first_thread[cta->linear_ctaid] = std::this_thread::get_id();
    // The first cluster waits until another has begun, so that several threads have some (where there are several).
    if (cta->cluster_ctarank == 0) {
        ++started;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
        while (!alone && started < 2)
            alone = std::chrono::steady_clock::now() > limit;
    }
    using Operation = abi::MbarrierOperation;
    if (cta->cluster_ctarank == 0) {
        abi::MbarrierCall init = call_of(cta, Operation::init, cluster_size);
        cta->services->mbarrier(cta, step, &init);
    }
    meet(cta, step);
    for (unsigned round = 0; round < rounds; ++round) {
        abi::MbarrierCall arrival = call_of(cta, Operation::arrive, 1);
        cta->services->mbarrier(cta, step, &arrival);
        abi::MbarrierCall wait = call_of(cta, Operation::try_wait, round & 1);
        wait.flags |= abi::MbarrierCall::parity | abi::MbarrierCall::one_answer;
        do {
            cta->services->mbarrier(cta, step, &wait);
        } while (wait.complete[0] == 0);
        if (!is_where_it_began(cta))
            ++moved;
    }
    meet(cta, step);
    if (!is_where_it_began(cta))
        ++moved;
    ++pointer_parameter(cta)[cta->linear_ctaid];
}

} // namespace

TEST_CASE("clusters: the CTAs of one stay on one thread, whatever they wait for") {
    Fixture fixture;
    fixture.set_fiber_kernel(arrive_at_rank_0, 1, 32);
    DevicePointer device = fixture.allocate(first_thread.size() * 4);
    moved = started = 0;
    alone = false;
    LaunchConfig config;
    config.grid = {cluster_size * cluster_count, 1, 1};
    config.block = {32, 1, 1};
    config.cluster = {cluster_size, 1, 1};
    config.has_cluster = true;
    config.dynamic_shared = 64;
    std::uint32_t value = 0;
    void *parameters[] = {&device, &value};
    REQUIRE(ok(launch(*fixture.function, config, fixture.stream(), parameters, nullptr)));
    REQUIRE(ok(fixture.stream().synchronize()));
    CHECK(moved == 0);
    std::set<std::thread::id> threads;
    const auto *runs = reinterpret_cast<const std::uint32_t *>(device);
    for (unsigned cta = 0; cta < first_thread.size(); ++cta) {
        CHECK(runs[cta] == 1);
        CHECK(first_thread[cta] == first_thread[cta / cluster_size * cluster_size]);
        threads.insert(first_thread[cta]);
    }
    // Otherwise the above would say nothing.
    if (!alone)
        CHECK(threads.size() > 1);
}

} // namespace ptarmigan::runtime::test
