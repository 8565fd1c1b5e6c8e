// SPDX-License-Identifier: Apache-2.0
// The order in which the steps of a launch run, and the threads that run them.
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/graph/program.h"
#include "runtime/stream/dispatcher.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <string>

namespace ptarmigan::runtime {
namespace {

/// Helpers are asked for this long after the first step that one could run: short steps are done by then, and waking a
/// thread costs as much as they take. Long enough for none that waits for another to be late by much.
constexpr std::chrono::microseconds help_delay{20};
constexpr unsigned most_helpers = 64;

void run_step(Step* step, const GraphLaunch& launch) {
    if (!step) return;
    if (launch.context->status() != Status::success) return step->skip(launch);
    try {
        step->run(launch);
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
        while (left_ > 0) {
            if (ready_.empty())
                changed_.wait(lock);
            else
                run_next(lock);
        }
    }

private:
    void help() {
        std::unique_lock lock(mutex_);
        help_is_coming_ = false;
        ++helpers_;
        while (!ready_.empty()) run_next(lock);
        --helpers_;
    }

    void run_next(std::unique_lock<std::mutex>& lock) {
        const std::uint32_t index = ready_.front();
        ready_.pop_front();
        if (!ready_.empty() && !help_is_coming_ && helpers_ < most_helpers) {
            help_is_coming_ = true;
            Dispatcher::get().run_later([self = shared_from_this()] { self->help(); }, help_delay);
        }
        lock.unlock();
        run_step(program_->steps[index].get(), launch_);
        lock.lock();
        const Topology& topology = *program_->topology;
        bool wake = --left_ == 0;
        for (std::uint32_t at = topology.first_follower[index]; at < topology.first_follower[index + 1]; ++at) {
            const std::uint32_t follower = topology.followers[at];
            if (--waits_[follower] > 0) continue;
            ready_.push_back(follower);
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
    for (const auto& step : program->steps) run_step(step.get(), launch);
}

} // namespace ptarmigan::runtime
