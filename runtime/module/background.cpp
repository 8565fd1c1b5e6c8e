// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/background.h"

#include "runtime/device/device.h"

#include <algorithm>
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
        Queue& queue = crew_of(order).queues[place_of(order)].work;
        if (order == BackgroundOrder::soon)
            queue.push_front(std::move(work));
        else
            queue.push_back(std::move(work));
        wake(crew_of(order));
    }

    void begin_wait() {
        const std::lock_guard lock(mutex_);
        ++waiting_launches_;
        wake(crew_of(BackgroundOrder::soon));
    }

    void end_wait() {
        const std::lock_guard lock(mutex_);
        --waiting_launches_;
    }

    void forget(BackgroundOrder order) {
        Queue forgotten;
        const std::lock_guard lock(mutex_);
        forgotten.swap(crew_of(order).queues[place_of(order)].work);
    }

    void wait() {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [&] {
            for (const Crew& crew : crews_)
                if (crew.idle != crew.threads || crew.has_work()) return false;
            return true;
        });
    }

private:
    static unsigned most_threads() {
        const unsigned workers = Device::get().workers();
        return workers > 2 ? workers - 1 : 1;
    }

    using Queue = std::deque<std::function<void()>>;

    /// Threads that take from queues of their own, the first one first.
    struct Crew {
        struct Kind {
            Queue work;
            unsigned at_work = 0; ///< threads
        };
        bool has_work() const {
            return std::any_of(queues.begin(), queues.end(), [](const Kind& kind) { return !kind.work.empty(); });
        }
        std::condition_variable changed;
        std::array<Kind, 3> queues;
        unsigned threads = 0, idle = 0;
    };

    /// Under mutex_. How many threads of a crew may be at work.
    unsigned most_at_work(const Crew& crew) const {
        const unsigned most = most_threads();
        if (&crew != &crews_[0]) return most;
        return std::min(most + waiting_launches_, std::max(most, Device::get().workers()));
    }

    /// Under mutex_. The kind of work that one more thread of the crew would take; null: none. What is of lower
    /// priority doesn't count among those at work.
    Crew::Kind* next(Crew& crew) {
        const unsigned most = most_at_work(crew);
        const Crew::Kind& overdue = crews_[1].queues[0]; // as the grids themselves, it may have all CPUs
        unsigned at_work = 0;
        for (Crew::Kind& kind : crew.queues) {
            at_work += kind.at_work;
            const bool has_room = at_work < (&kind == &overdue ? std::max(most, Device::get().workers()) : most);
            if (has_room && !kind.work.empty()) return &kind;
        }
        return nullptr;
    }

    /// Under mutex_. There may be work for the crew.
    void wake(Crew& crew) {
        if (!next(crew)) return;
        if (crew.idle == 0) start(crew);
        crew.changed.notify_one();
    }

    Crew& crew_of(BackgroundOrder order) { return crews_[order == BackgroundOrder::soon ? 0 : 1]; }
    static std::size_t place_of(BackgroundOrder order) {
        switch (order) {
        case BackgroundOrder::overdue:
        case BackgroundOrder::soon: return 0;
        case BackgroundOrder::urgent: return 1;
        case BackgroundOrder::later: return 2;
        }
        return 0;
    }

    /// Under mutex_. Without a thread the work stays undone: nobody waits for it.
    void start(Crew& crew) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); // the program's signals stay away
        try {
            std::thread([this, &crew] { serve(crew); }).detach();
            ++crew.threads;
        } catch (const std::system_error&) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void serve(Crew& crew) {
        pthread_setname_np(pthread_self(), "ptm-compile");
        std::unique_lock lock(mutex_);
        for (;;) {
            ++crew.idle;
            done_.notify_all();
            // Of those that a launch's waiting has called the last ones wait until the others have done their work.
            Crew::Kind* kind = nullptr;
            crew.changed.wait(lock, [&] { return (kind = next(crew)) != nullptr; });
            --crew.idle;
            ++kind->at_work;
            std::function<void()> work = std::move(kind->work.front());
            kind->work.pop_front();
            wake(crew); // for what else there is
            lock.unlock();
            work();
            work = nullptr; // what it held goes before others may look
            lock.lock();
            --kind->at_work;
        }
    }

    /// In a forked child, with mutex_ locked. Condition variables remember the sleepers that are gone.
    void forget_threads() {
        for (Crew& crew : crews_) {
            new (&crew.changed) std::condition_variable;
            crew.threads = crew.idle = 0;
            for (Crew::Kind& kind : crew.queues) kind.at_work = 0;
        }
        waiting_launches_ = 0;
        new (&done_) std::condition_variable;
        mutex_.unlock();
    }

    std::mutex mutex_; ///< guards what follows
    std::condition_variable done_;
    std::array<Crew, 2> crews_; ///< for what is made before its launch, and for what gets better
    unsigned waiting_launches_ = 0;
};

} // namespace

void run_in_background(BackgroundOrder order, std::function<void()> work) {
    Background::get().add(order, std::move(work));
}

LaunchWaits::LaunchWaits() {
    Background::get().begin_wait();
}

LaunchWaits::~LaunchWaits() {
    Background::get().end_wait();
}

void forget_soon() {
    Background::get().forget(BackgroundOrder::soon);
}

void wait_for_background() {
    Background::get().wait();
}

} // namespace ptarmigan::runtime
