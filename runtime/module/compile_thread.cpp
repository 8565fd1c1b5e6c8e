// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/compile_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace ptarmigan::runtime {

/// Grids go first, then what may be launched next, then what is better only: of that first what a running grid waits
/// for, which leaves a CPU for it. Code without which the grids have run for too long is worth as much as they are.
int niceness_of(BackgroundOrder order) {
    switch (order) {
    case BackgroundOrder::overdue: return 0;
    case BackgroundOrder::soon: return 5;
    case BackgroundOrder::urgent: return 10;
    case BackgroundOrder::later: return 19;
    }
    return 19;
}

void CompileThread::begin() {
    const std::lock_guard lock(mutex_);
    id_ = gettid();
    pthread_getcpuclockid(pthread_self(), &clock_);
    niceness_ = getpriority(PRIO_PROCESS, static_cast<id_t>(id_));
    low_ = false;
}

void CompileThread::end() {
    const std::lock_guard lock(mutex_);
    id_ = 0;
    low_ = false; // what is left to do, another thread does
}

void CompileThread::lower(int niceness) {
    const std::lock_guard lock(mutex_);
    if (awaited_ || id_ == 0 || niceness <= niceness_) return;
    low_ = setpriority(PRIO_PROCESS, static_cast<id_t>(id_), niceness) == 0;
}

bool CompileThread::raise() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    awaited_ = true;
    if (low_) low_ = setpriority(PRIO_PROCESS, static_cast<id_t>(id_), niceness_) != 0;
    return !low_;
}

std::optional<std::chrono::nanoseconds> CompileThread::cpu_time() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    timespec used{};
    if (!lock || id_ == 0 || clock_gettime(clock_, &used) != 0) return std::nullopt;
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool StarvationWatch::starves(CompileThread& thread) {
    const auto now = std::chrono::steady_clock::now();
    const auto used = thread.cpu_time();
    const bool known = used && before_ && now - since_ >= interval / 2;
    const bool starves = known && *used - *before_ < (now - since_) / 2;
    since_ = now;
    before_ = used;
    return starves;
}

} // namespace ptarmigan::runtime
