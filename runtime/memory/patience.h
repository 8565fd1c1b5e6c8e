// SPDX-License-Identifier: Apache-2.0
// How a stream waits for memory that anybody may write.
#pragma once

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <thread>

namespace ptarmigan::runtime {

/// Who writes may be another thread of this core, or far away: first turns, then longer and longer sleeps between
/// looks.
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
        std::this_thread::sleep_for(sleep_);
        sleep_ = std::min(sleep_ * 2, longest);
    }

private:
    int turn_ = 0;
    std::chrono::microseconds sleep_{5};
};

} // namespace ptarmigan::runtime
