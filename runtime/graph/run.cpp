// SPDX-License-Identifier: Apache-2.0
// The order in which the steps of a launch run, and the threads that run them.
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/graph/program.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace ptarmigan::runtime {
namespace {

/// Helpers are asked for this long after the first step that one could run: short steps are done by then, and waking a
/// thread costs as much as they take. Long enough for none that waits for another to be late by much. One that finds
/// short steps comes again later, and later each time.
constexpr std::chrono::microseconds help_delay{20}, most_help_delay{320};
constexpr unsigned most_helpers = 64;
/// Two threads hand each other the list more slowly than one of them does steps that take less than this.
constexpr std::chrono::nanoseconds short_step{2000};
constexpr std::size_t steps_between_looks = 32; ///< a helper's, at how long steps take

using Time = std::chrono::steady_clock::time_point;

/// `now`: zero where it isn't known.
void run_step(Step* step, const GraphLaunch& launch, Time& now) {
    if (!step) return;
    const Time start = std::exchange(now, {});
    if (launch.context->status() != Status::success) return step->skip(launch);
    try {
        now = step->run_from(launch, start);
    } catch (const std::bad_alloc&) {
        log(LogLevel::error, "a node of a graph failed: no memory is left");
        launch.context->set_fault(Status::out_of_memory);
    } catch (const std::exception& error) {
        log(LogLevel::error, std::string("a node of a graph failed: ") + error.what());
        launch.context->set_fault(Status::unknown);
    }
}

/// Steps of a graph that is no chain. Kept by those who help, who may come when all is done.
class BranchedRun : public std::enable_shared_from_this<BranchedRun> {
public:
    BranchedRun(std::shared_ptr<const Program> program, const GraphLaunch& launch)
        : program_(std::move(program)), launch_(launch), waits_(program_->topology->waits),
          left_(program_->steps.size()) {
        for (std::uint32_t index = 0; index < waits_.size(); ++index)
            if (waits_[index] == 0) ready_.push_back(index);
    }

    /// On the thread of the launch: returns when all steps are done.
    void run() {
        std::unique_lock lock(mutex_);
        Time now{};
        while (left_ > 0) {
            if (ready_.empty()) {
                changed_.wait(lock);
                now = {};
            } else {
                run_next(lock, now);
            }
        }
    }

private:
    /// How many steps are left at a time: the pace between two of them.
    struct Mark {
        std::size_t left;
        Time time;
    };
    Mark mark() const { return {left_, std::chrono::steady_clock::now()}; }
    bool steps_are_short_since(const Mark& before) const {
        const Mark now = mark();
        return now.time - before.time < short_step * static_cast<std::int64_t>(before.left - now.left);
    }

    void ask_for_help(std::chrono::microseconds delay) {
        help_is_coming_ = true;
        Dispatcher::get().run_later([self = shared_from_this(), asked = mark(), delay] { self->help(asked, delay); },
                                    delay);
    }

    void help(const Mark& asked, std::chrono::microseconds delay) {
        std::unique_lock lock(mutex_);
        help_is_coming_ = false;
        if (ready_.empty()) return;
        const auto come_later = [&] { ask_for_help(std::min(2 * delay, most_help_delay)); };
        if (steps_are_short_since(asked)) return come_later();
        ++helpers_;
        Time now{};
        for (Mark last = mark(); !ready_.empty();) {
            run_next(lock, now);
            if (last.left - left_ < steps_between_looks) continue;
            if (steps_are_short_since(last)) break;
            last = mark();
        }
        --helpers_;
        if (!ready_.empty() && !help_is_coming_) come_later();
    }

    void run_next(std::unique_lock<std::mutex>& lock, Time& now) {
        const std::uint32_t index = ready_.front();
        ready_.pop_front();
        if (!ready_.empty() && !help_is_coming_ && helpers_ < most_helpers) ask_for_help(help_delay);
        lock.unlock();
        run_step(program_->steps[index].get(), launch_, now);
        lock.lock();
        const Topology& topology = *program_->topology;
        bool wake = --left_ == 0;
        // What follows stands beside it in memory, and is taken before other branches.
        for (std::uint32_t at = topology.first_follower[index + 1]; at-- > topology.first_follower[index];) {
            const std::uint32_t follower = topology.followers[at];
            if (--waits_[follower] > 0) continue;
            ready_.push_front(follower);
            wake = true;
        }
        if (wake) changed_.notify_all();
    }

    const std::shared_ptr<const Program> program_;
    const GraphLaunch& launch_; ///< of run(), which outlives every step
    std::mutex mutex_;          ///< guards what follows
    std::condition_variable changed_;
    std::vector<std::uint32_t> waits_;
    std::deque<std::uint32_t> ready_;
    std::size_t left_;
    unsigned helpers_ = 0;
    bool help_is_coming_ = false;
};

} // namespace

void run_program(const std::shared_ptr<const Program>& program, const GraphLaunch& launch) {
    if (!program->topology->is_chain) return std::make_shared<BranchedRun>(program, launch)->run();
    Time now{};
    for (const auto& step : program->steps) run_step(step.get(), launch, now);
}

} // namespace ptarmigan::runtime
