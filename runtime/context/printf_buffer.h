// SPDX-License-Identifier: Apache-2.0
// What kernels have printed, in order, until a synchronisation point writes it to stdout.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace ptarmigan::runtime {

/// The output of a context's kernels that the program has not seen yet. Thread-safe; its lock is a
/// leaf.
class PrintfBuffer {
public:
    /// Appends whole lines' text; text that does not fit any more is dropped silently, as by the
    /// driver.
    void append(std::string_view text);
    /// Writes everything to the C stream stdout and flushes that.
    void flush();
    void set_capacity(std::size_t bytes);

private:
    std::mutex mutex_;
    std::mutex flush_mutex_; ///< keeps the order between two flushes; taken before mutex_
    std::string text_;
    std::size_t capacity_ = 8650752;
};

} // namespace ptarmigan::runtime
