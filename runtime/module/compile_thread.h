// SPDX-License-Identifier: Apache-2.0
// The thread that makes a kernel's code, as those see it who wait for the code: a background thread of low priority, on
// a machine whose CPUs others keep busy, may take for ever.
#pragma once

#include "runtime/module/background.h"

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>

namespace ptarmigan::runtime {

/// What the order's threads have in addition to the process's niceness, once they need nothing but the CPU.
int niceness_of(BackgroundOrder order);

/// Thread-safe. Who waits never does so for the thread itself, which may hold its mutex and get no CPU.
class CompileThread {
public:
    /// By the thread: from here to end() it compiles.
    void begin();
    void end();
    /// It may run at that niceness, unless raise() was called: then as if nothing had been said.
    void lower(int niceness);
    /// Somebody waits for it, who would run at its first priority: it is never lowered, and what was lowered is raised
    /// where the system allows that (CAP_SYS_NICE, RLIMIT_NICE). False if its priority is low, or may be.
    bool raise();
    /// CPU time so far; nothing before it begins, after its end, and where that can't be seen now.
    std::optional<std::chrono::nanoseconds> cpu_time();

private:
    std::mutex mutex_; ///< guards what follows
    pid_t id_ = 0;     ///< 0: not between begin() and end()
    clockid_t clock_{};
    int niceness_ = 0; ///< at begin()
    bool low_ = false, awaited_ = false;
};

/// Says of one CompileThread whether it gets too little CPU, less than half of one, for somebody to go on waiting for
/// it. Of one thread.
class StarvationWatch {
public:
    static constexpr std::chrono::milliseconds interval{50};
    /// To be called every `interval`. False the first time.
    bool starves(CompileThread& thread);

private:
    std::chrono::steady_clock::time_point since_{};
    std::optional<std::chrono::nanoseconds> before_;
};

} // namespace ptarmigan::runtime
