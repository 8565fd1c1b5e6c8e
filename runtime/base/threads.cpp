// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/threads.h"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <thread>
#include <vector>

namespace ptarmigan::runtime {

void run_on_threads(unsigned count, const std::function<void()>& work) {
    std::vector<std::thread> others;
    if (count > 1) others.reserve(count - 1);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        while (others.size() + 1 < count) others.emplace_back(work);
    } catch (const std::system_error&) { // a limit on threads or memory: those that there are do it
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    work();
    for (std::thread& other : others) other.join();
}

} // namespace ptarmigan::runtime
