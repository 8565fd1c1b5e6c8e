// SPDX-License-Identifier: Apache-2.0
// Compilations that a launch waits for, told to who looks at stderr: PTARMIGAN_PROGRESS.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

/// What is being waited for, and whether it is time to say so: a burst of compilations, between which less than two
/// seconds pass, has taken more than two seconds. Thread-safe.
class CompileWaits {
public:
    using Time = std::chrono::steady_clock::time_point;

    void begin(const std::string& kernel, Time now);
    /// True if nothing is waited for any more.
    bool end(const std::string& kernel, Time now);
    /// "compiling (12 kernels so far, 3.4 s): NAME" (readable_name()), when it is time to say it and `interval` after
    /// the last time.
    std::optional<std::string> line(Time now, std::chrono::milliseconds interval);
    /// The line has been taken away: the next one need not wait.
    void forget_last_line();

private:
    std::chrono::duration<double> taken(Time now) const;

    std::mutex mutex_; ///< guards what follows
    std::vector<std::string> kernels_;
    unsigned finished_ = 0;                   ///< of this burst
    std::chrono::duration<double> before_{0}; ///< that this burst took until nothing was waited for
    Time since_{}, last_end_{}, last_line_{};
};

/// While it lives somebody waits for the compilation of `kernel`. Of one thread.
class CompileWait {
public:
    /// Does nothing unless `waited` and progress is wanted.
    CompileWait(const std::string& kernel, bool waited);
    ~CompileWait();
    CompileWait(const CompileWait&) = delete;
    CompileWait& operator=(const CompileWait&) = delete;
    /// To be called some times a second.
    void look() const;

private:
    const std::string* kernel_; ///< null: nothing to tell
};

} // namespace ptarmigan::runtime
