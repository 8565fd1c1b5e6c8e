// SPDX-License-Identifier: Apache-2.0
// When good code is made for kernels that run quick code, and who makes it.
#include "runtime/module/background.h"
#include "runtime/module/tiers.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace ptarmigan;
using runtime::TieredCode;

namespace {

struct Making {
    std::atomic<int> count{0};
    std::atomic<bool> fails{false};
    std::shared_ptr<TieredCode> code = std::make_shared<TieredCode>("k", 1000, [this](bool) {
        ++count;
        if (fails) throw std::runtime_error("for a test");
        return std::make_shared<const runtime::LoadedKernel>();
    });
};

} // namespace

TEST_CASE("tiers: good code is made when quick code has run for some time") {
    Making making;
    CHECK_FALSE(making.code->add_run_time(making.code->long_grid_ns() / 2 - 1));
    runtime::wait_for_background();
    CHECK(making.count == 0);
    CHECK(making.code->good() == nullptr);
    CHECK_FALSE(making.code->add_run_time(1));
    runtime::wait_for_background();
    CHECK(making.count == 1);
    CHECK(making.code->has_good());
    CHECK(making.code->good() != nullptr);
    CHECK(making.code->good() == making.code->make_now());
    making.code->ask(TieredCode::Urgency::high);
    runtime::wait_for_background();
    CHECK(making.count == 1);
}

TEST_CASE("tiers: a kernel becomes hot once, when it ran for as long as good code takes to make") {
    Making making;
    std::uint64_t times = 0, total = 0;
    for (int i = 0; i < 1000; ++i) {
        total += 1'000'000;
        if (making.code->add_run_time(1'000'000)) {
            ++times;
            CHECK(total > 5 * making.code->long_grid_ns());
        }
    }
    runtime::wait_for_background();
    CHECK(times == 1);
    CHECK(making.count == 1);
}

TEST_CASE("tiers: where good code can't be made, quick code goes on") {
    Making making;
    making.fails = true;
    making.code->ask(TieredCode::Urgency::some);
    runtime::wait_for_background();
    making.code->ask(TieredCode::Urgency::high);
    runtime::wait_for_background();
    CHECK(making.count == 1);
    CHECK(making.code->good() == nullptr);
    CHECK(making.code->make_now() == nullptr);
}

TEST_CASE("background: what is urgent goes first, then the newest of what is likely") {
    std::vector<int> order;
    std::atomic<bool> begun{false}, go{false};
    // One thread at least is kept busy; more of them make no order to look at.
    runtime::run_in_background(runtime::BackgroundOrder::urgent, [&] {
        begun = true;
        while (!go) {}
    });
    while (!begun) {}
    std::mutex mutex;
    const auto add = [&](runtime::BackgroundOrder when, int number) {
        runtime::run_in_background(when, [&, number] {
            const std::lock_guard lock(mutex);
            order.push_back(number);
        });
    };
    add(runtime::BackgroundOrder::later, 4);
    add(runtime::BackgroundOrder::soon, 3);
    add(runtime::BackgroundOrder::soon, 2);
    add(runtime::BackgroundOrder::urgent, 1);
    go = true;
    runtime::wait_for_background();
    CHECK(order.size() == 4);
    if (std::thread::hardware_concurrency() <= 2) CHECK(order == std::vector<int>{1, 2, 3, 4});
}
