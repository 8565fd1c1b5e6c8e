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
    std::shared_ptr<TieredCode> code = std::make_shared<TieredCode>("k", 1000, [this](std::optional<runtime::BackgroundOrder>) {
        ++count;
        if (fails) throw std::runtime_error("for a test");
        return std::make_shared<const runtime::LoadedKernel>();
    });
};

} // namespace

TEST_CASE("tiers: good code is made when quick code has run for some time") {
    Making making;
    CHECK_FALSE(making.code->add_run_time(making.code->long_grid_ns() - 1));
    runtime::wait_for_background();
    CHECK(making.count == 0);
    CHECK(making.code->good() == nullptr);
    making.code->add_run_time(1);
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
            CHECK(total >= making.code->long_grid_ns());
            runtime::wait_for_background(); // for what is overdue, it is made beside who may be at it
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

namespace {

/// Work that notes its number, behind work that keeps every thread for such work busy while it is added.
class Notes {
public:
    explicit Notes(runtime::BackgroundOrder order) {
        runtime::run_in_background(order, [this] {
            begun_ = true;
            while (!go_) std::this_thread::yield();
        });
        while (!begun_) std::this_thread::yield();
    }
    void add(runtime::BackgroundOrder order, int number) {
        runtime::run_in_background(order, [this, number] {
            const std::lock_guard lock(mutex_);
            numbers_.push_back(number);
        });
    }
    std::vector<int> end() {
        go_ = true;
        runtime::wait_for_background();
        return numbers_;
    }
    std::size_t so_far() {
        const std::lock_guard lock(mutex_);
        return numbers_.size();
    }

private:
    std::atomic<bool> begun_{false}, go_{false};
    std::mutex mutex_;
    std::vector<int> numbers_;
};

/// More threads than one make no order to look at.
bool has_one_thread() { return std::thread::hardware_concurrency() <= 2; }

} // namespace

TEST_CASE("background: what is urgent goes before what may be launched again") {
    Notes notes(runtime::BackgroundOrder::urgent);
    notes.add(runtime::BackgroundOrder::later, 2);
    notes.add(runtime::BackgroundOrder::urgent, 1);
    const std::vector<int> order = notes.end();
    CHECK(order.size() == 2);
    if (has_one_thread()) CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("background: of what is likely the newest goes first") {
    Notes notes(runtime::BackgroundOrder::soon);
    notes.add(runtime::BackgroundOrder::soon, 2);
    notes.add(runtime::BackgroundOrder::soon, 1);
    const std::vector<int> order = notes.end();
    CHECK(order.size() == 2);
    if (has_one_thread()) CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("background: better code does not keep what is likely waiting") {
    Notes notes(runtime::BackgroundOrder::urgent);
    notes.add(runtime::BackgroundOrder::soon, 1);
    while (notes.so_far() == 0) std::this_thread::yield(); // although the other one is not done
    CHECK(notes.end() == std::vector<int>{1});
}
