// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/threads.h"

#include <pthread.h>

#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ptarmigan::runtime {

namespace {

/// Makes threads with all signals blocked until there are `count` or the system gives no more: a limit on threads or
/// memory.
void make_threads(unsigned count, const std::function<void()>& work, std::vector<std::thread>& threads) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        threads.reserve(count);
        while (threads.size() < count) threads.emplace_back(work);
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace

void run_on_threads(unsigned count, const std::function<void()>& work) {
    std::vector<std::thread> others;
    make_threads(count > 1 ? count - 1 : 0, work, others);
    work();
    for (std::thread& other : others) other.join();
}

unsigned startable_threads(unsigned wanted) {
    std::vector<std::thread> threads;
    std::mutex gate; // all must be there at the same time
    {
        const std::lock_guard closed(gate);
        make_threads(
            wanted, [&gate] { const std::lock_guard passed(gate); }, threads);
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<unsigned>(threads.size());
}

} // namespace ptarmigan::runtime
