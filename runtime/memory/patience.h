// SPDX-License-Identifier: Apache-2.0
// How a stream waits for memory that anybody may write.
#pragma once

#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <thread>

namespace ptarmigan::runtime {

/// Who writes may be another thread of this core, or far away: first turns, then longer and longer sleeps between
/// looks. Who is to write may wait for a thread itself: what other streams have left to threads that wait, or all there
/// is where the system gives no threads, is started.
class Patience {
public:
    void pass() {
        using namespace std::chrono;
        constexpr int turns = 64;
        constexpr microseconds longest{200};
        if (turn_ < turns) {
            ++turn_;
            sched_yield();
            return;
        }
        Dispatcher::get().hurry();
        std::this_thread::sleep_for(sleep_);
        sleep_ = std::min(sleep_ * 2, longest);
    }

private:
    int turn_ = 0;
    std::chrono::microseconds sleep_{5};
};

} // namespace ptarmigan::runtime
