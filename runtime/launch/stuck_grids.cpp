// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/stuck_grids.h"

#include "runtime/base/log.h"
#include "runtime/base/tuning.h"
#include "runtime/launch/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace ptarmigan::runtime {
namespace {

using Clock = std::chrono::steady_clock;

class Watch {
public:
    static Watch& get() {
        // Never destroyed: grids may outlive static destructors.
        static auto* watch = [] {
            // The child has neither the thread nor the parent's grids.
            pthread_atfork(nullptr, nullptr, [] { new (&get()) Watch; });
            return new Watch;
        }();
        return *watch;
    }

    void add(const Grid& grid) {
        const std::lock_guard lock(mutex_);
        entries_.push_back({&grid, 0, {}}); // the clock is left to the watch: launches are short
        if (!started_) start();
    }

    void remove(const Grid& grid) {
        const std::lock_guard lock(mutex_);
        std::erase_if(entries_, [&](const Entry& entry) { return entry.grid == &grid; });
    }

private:
    struct Entry {
        const Grid* grid;
        std::uint64_t drawn;
        Clock::time_point since; ///< when it was first seen to have drawn so many; the epoch: not looked at yet
    };

    /// Under mutex_. Tried once: without a thread nobody watches.
    void start() {
        started_ = true;
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread([this] {
                pthread_setname_np(pthread_self(), "ptm-watch");
                do std::this_thread::sleep_for(tuning::stuck_grid / 8);
                while (!look());
            }).detach();
        } catch (const std::system_error&) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    /// True when it has told of a grid.
    bool look() {
        std::string text;
        {
            const std::lock_guard lock(mutex_);
            for (Entry& entry : entries_) {
                const std::uint64_t drawn = entry.grid->next_cta.load(std::memory_order_relaxed);
                const Clock::time_point now = Clock::now();
                if (drawn != entry.drawn || entry.since == Clock::time_point{}) {
                    entry.drawn = drawn;
                    entry.since = now;
                } else if (now - entry.since >= tuning::stuck_grid) {
                    text = fmt::format(
                        "kernel {} has begun no block for {} s. If it hangs, its threads may wait for each other "
                        "in a loop that is not known to wait: PTARMIGAN_WAITS=all takes all loops for such.",
                        entry.grid->code->name,
                        std::chrono::duration_cast<std::chrono::seconds>(now - entry.since).count());
                    break;
                }
            }
        }
        if (text.empty()) return false;
        log_once("stuck grid", text);
        return true;
    }

    std::mutex mutex_;
    std::vector<Entry> entries_;
    bool started_ = false;
};

} // namespace

WatchedGrid::WatchedGrid(const Grid& grid) : grid_(grid.code->properties.could_spin ? &grid : nullptr) {
    if (grid_) Watch::get().add(grid);
}

WatchedGrid::~WatchedGrid() {
    if (grid_) Watch::get().remove(*grid_);
}

} // namespace ptarmigan::runtime
