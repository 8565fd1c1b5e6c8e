// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/background.h"

#include "runtime/device/device.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

namespace ptarmigan::runtime {
namespace {

class Background {
public:
    static Background& get() {
        // Never destroyed: its threads run until the process ends.
        static auto* background = [] {
            // The child has none of the threads; what they had begun stays undone there.
            pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().forget_threads(); });
            return new Background;
        }();
        return *background;
    }

    void add(BackgroundOrder order, std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        std::deque<std::function<void()>>& queue = queue_of(order);
        if (order == BackgroundOrder::soon)
            queue.push_front(std::move(work));
        else
            queue.push_back(std::move(work));
        if (idle_ == 0 && threads_ < most_threads()) start();
        changed_.notify_one();
    }

    void forget(BackgroundOrder order) {
        std::deque<std::function<void()>> forgotten;
        const std::lock_guard lock(mutex_);
        forgotten.swap(queue_of(order));
    }

    void wait() {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [&] { return idle_ == threads_ && !has_work(); });
    }

private:
    static unsigned most_threads() {
        const unsigned workers = Device::get().workers();
        return workers > 2 ? workers - 1 : 1;
    }

    std::deque<std::function<void()>>& queue_of(BackgroundOrder order) {
        return queues_[static_cast<std::size_t>(order)];
    }

    bool has_work() const {
        for (const auto& queue : queues_)
            if (!queue.empty()) return true;
        return false;
    }

    /// Under mutex_. Without a thread the work stays undone: nobody waits for it.
    void start() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); // the program's signals stay away
        try {
            std::thread([this] { serve(); }).detach();
            ++threads_;
        } catch (const std::system_error&) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void serve() {
        pthread_setname_np(pthread_self(), "ptm-compile");
        std::unique_lock lock(mutex_);
        for (;;) {
            ++idle_;
            done_.notify_all();
            changed_.wait(lock, [&] { return has_work(); });
            --idle_;
            std::function<void()> work = take();
            lock.unlock();
            work();
            work = nullptr; // what it held goes before others may look
            lock.lock();
        }
    }

    std::function<void()> take() {
        for (auto& queue : queues_) {
            if (queue.empty()) continue;
            std::function<void()> work = std::move(queue.front());
            queue.pop_front();
            return work;
        }
        return {};
    }

    /// In a forked child, with mutex_ locked. Condition variables remember the sleepers that are gone.
    void forget_threads() {
        new (&changed_) std::condition_variable;
        new (&done_) std::condition_variable;
        threads_ = idle_ = 0;
        mutex_.unlock();
    }

    std::mutex mutex_; ///< guards what follows
    std::condition_variable changed_, done_;
    std::array<std::deque<std::function<void()>>, 3> queues_;
    unsigned threads_ = 0, idle_ = 0;
};

} // namespace

void run_in_background(BackgroundOrder order, std::function<void()> work) {
    Background::get().add(order, std::move(work));
}

void forget_soon() {
    Background::get().forget(BackgroundOrder::soon);
}

void wait_for_background() {
    Background::get().wait();
}

} // namespace ptarmigan::runtime
