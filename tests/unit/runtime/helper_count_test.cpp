// SPDX-License-Identifier: Apache-2.0
// A grid's thread that closes it wakes up, whoever leaves last: also when that is a helper that
// came too late.
#include "runtime/launch/helper_count.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

using ptarmigan::runtime::HelperCount;

namespace {

constexpr unsigned rounds = 5000;

struct Steps : HelperCount {
    using HelperCount::count_in;
    using HelperCount::turn_back;
};

/// True if it became true within a minute.
template <typename Condition> bool soon(const Condition& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

/// In each round `helpers` threads enter and leave while another closes, all starting at once.
/// Those that come too late count as well.
class Rounds {
public:
    explicit Rounds(unsigned helpers) : helpers_(helpers), counts_(rounds), start_(helpers + 1) {}

    void run() {
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < helpers_; ++i) threads.emplace_back([this, i] { help(i); });
        const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(10); // on a busy machine
        for (unsigned round = 0; round < rounds; ++round) {
            if (std::chrono::steady_clock::now() > enough) last_round_ = std::min(last_round_.load(), round);
            start_.arrive_and_wait();
            pass(round % 50);
            counts_[round].close(0);
            closed_.store(round + 1, std::memory_order_release);
            if (round == last_round_) break;
        }
        for (std::thread& thread : threads) thread.join();
        is_over_.store(true, std::memory_order_release);
    }

    /// Rounds that are over.
    unsigned closed() const { return closed_.load(std::memory_order_acquire); }
    bool is_over() const { return is_over_.load(std::memory_order_acquire); }

private:
    static void pass(unsigned time) {
        for (unsigned i = 0; i < time; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        if (time % 4 == 1) std::this_thread::yield();
    }

    void help(unsigned helper) {
        for (unsigned round = 0; round < rounds; ++round) {
            start_.arrive_and_wait();
            pass((round * 7 + helper * 31) % 100);
            if (counts_[round].enter()) {
                pass((round * 3 + helper * 17) % 60);
                counts_[round].leave();
            }
            if (round == last_round_) break; // set before this round began, or to a later one
        }
    }

    unsigned helpers_;
    std::vector<HelperCount> counts_;
    std::barrier<> start_;
    std::atomic<unsigned> last_round_{rounds - 1};
    std::atomic<unsigned> closed_{0};
    std::atomic<bool> is_over_{false};
};

} // namespace

TEST_CASE(
    "helper count: the last one who is counted wakes the grid's thread, also if it came too late") {
    struct Shared {
        Steps count;
        std::atomic<bool> awake{false};
    };
    // Never destroyed: if its thread sleeps for ever, the test fails and the process goes on.
    auto* const shared = new Shared;
    REQUIRE(shared->count.enter());
    std::thread([shared] {
        shared->count.close(0);
        shared->awake = true;
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // closed by now, and asleep
    REQUIRE_FALSE(shared->count.count_in());
    shared->count.leave(); // the one inside; one is still counted
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(shared->awake);
    shared->count.turn_back();
    CHECK(soon([shared] { return shared->awake.load(); }));
}

TEST_CASE("helper count: closing a grid ends, however its helpers come and go") {
    auto* const work = new Rounds(3); // never destroyed, as above
    std::thread([work] { work->run(); }).detach();
    const bool is_over = soon([work] { return work->is_over(); });
    INFO("rounds closed: " << work->closed());
    CHECK(is_over);
    CHECK(work->closed() > 0);
}
