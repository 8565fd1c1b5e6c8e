// SPDX-License-Identifier: Apache-2.0
// The helpers' arena: started when a grid takes long enough to deserve it, left alone when the process exits.
#include "runtime/launch/helpers.h"

#include "runtime/base/log.h"
#include "runtime/base/threads.h"
#include "runtime/base/tuning.h"
#include "runtime/device/device.h"
#include "runtime/launch/grid.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <exception>
#include <new>
#include <pthread.h>
#include <string>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ptarmigan::runtime {
namespace {

/// Debian's oneTBB is not instrumented: these tell ThreadSanitizer that enqueue() orders the
/// hand-over.
void hand_over(Grid& grid) {
#if defined(__SANITIZE_THREAD__)
    __tsan_release(&grid);
#endif
}
void take_over(Grid& grid) {
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(&grid);
#endif
}

void help(const std::shared_ptr<Grid>& grid) {
    take_over(*grid);
    if (!grid->helpers.enter()) return;
    run_share(*grid);
    grid->helpers.leave();
}

/// The grid's own thread takes part without a slot in the arena, so each of several concurrent grids
/// has one thread at least, whatever the others do.
class HelperPool {
public:
    static HelperPool& get() {
        // Never destroyed: grids may outlive static destructors.
        static auto* pool = [] {
            // oneTBB's threads are gone in a forked child, and its locks may have been held, as may ours.
            pthread_atfork(nullptr, nullptr, [] {
                get().refuse_.store(true);
                new (&get().mutex_) std::mutex;
            });
            return new HelperPool;
        }();
        return *pool;
    }

    bool started() const { return started_.load(std::memory_order_acquire); }

    void enqueue(const std::shared_ptr<Grid>& grid, std::uint64_t count) {
        if (refuse_.load()) return;
        std::lock_guard lock(mutex_);
        if (refuse_.load()) return;
        try {
            if (!arena_ && !make_arena()) return refuse("no thread to be had");
            hand_over(*grid);
            for (std::uint64_t i = 0; i < count; ++i) arena_->enqueue([grid] { help(grid); });
        } catch (const std::exception& error) {
            return refuse(error.what());
        }
        started_.store(true, std::memory_order_release);
    }

    /// Waits for a call in progress and refuses later ones.
    void stop() {
        refuse_.store(true);
        std::lock_guard lock(mutex_);
    }

private:
    void refuse(const char* reason) {
        refuse_.store(true);
        log_once("helpers", std::string("kernels run on one thread: ") + reason);
    }

    /// False if the process can have no more threads. oneTBB's own threads make further ones, and end the process if
    /// that fails, so it is told how many there can be.
    bool make_arena() {
        // One less than workers: a grid's own thread is one of them, and oneTBB's threads spin before they sleep. Its
        // limit counts one application thread.
        const unsigned helpers = startable_threads(std::max(Device::get().workers(), 2u) - 1);
        if (helpers == 0) return false;
        static auto* limit = new tbb::global_control(tbb::global_control::max_allowed_parallelism, helpers + 1);
        static_cast<void>(limit);
        arena_ = new tbb::task_arena(static_cast<int>(helpers), 0);
        return true;
    }

    std::mutex mutex_; ///< held during calls into oneTBB; guards arena_
    tbb::task_arena* arena_ = nullptr;
    std::atomic<bool> started_{false}, refuse_{false};
};

/// A program may exit while kernels run. oneTBB's own destructors run after this one, and calls into it then end in
/// pure virtual functions.
const struct ExitGuard {
    ExitGuard() = default;
    ~ExitGuard() { HelperPool::get().stop(); }
} exit_guard;

} // namespace

void call_helpers(const std::shared_ptr<Grid>& grid, std::uint64_t count) {
    if (count == 0) return;
    HelperPool& pool = HelperPool::get();
    if (pool.started()) return pool.enqueue(grid, count);
    // A kernel that waits on memory may wait for a CTA of a helper.
    const auto delay = grid->code->properties.spins ? std::chrono::microseconds{0} : tuning::helper_start_delay;
    const auto start = [weak = std::weak_ptr(grid), count] {
        const std::shared_ptr<Grid> grid = weak.lock();
        if (!grid || !grid->helpers.enter()) // it needs them no longer
            return;
        HelperPool::get().enqueue(grid, count);
        grid->helpers.leave();
    };
    Dispatcher::get().run_later(start, delay);
}

bool helpers_started() {
    return HelperPool::get().started();
}

void close_to_helpers(Grid& grid) {
    grid.helpers.close(tuning::close_spins);
}

} // namespace ptarmigan::runtime
