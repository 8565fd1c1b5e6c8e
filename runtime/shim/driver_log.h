// SPDX-License-Identifier: Apache-2.0
// What cuLogs* hand out: a line for each call that failed, the newest 25,600 bytes of them.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::shim {

/// Thread-safe. No lock is held while a callback runs.
class DriverLog {
public:
    /// CUlogsCallback: data, level (0: error), message without what begins a line, its length.
    using Function = void (*)(void*, int, char*, std::size_t);
    struct Callback {
        Function function;
        void* data;
    };

    static DriverLog& get();

    void add(std::string_view message);
    /// The handle of a new callback.
    const Callback* listen(Function function, void* data);
    /// False if there is no such callback.
    bool forget(const void* callback);
    /// The number of the next line.
    unsigned end() const;
    /// Lines from number `begin` on, each with its newline, as many of the newest as fit into `size` bytes; `begin` is
    /// then the number of the next line. Where older ones do not fit or are gone, the first line says so.
    std::string lines(unsigned& begin, std::size_t size) const;
    /// True if there are lines from number `begin` on.
    bool has_lines(unsigned begin) const;

private:
    DriverLog() = default;

    mutable std::mutex mutex_; ///< a leaf
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;
    unsigned end_ = 0;
    std::vector<std::shared_ptr<const Callback>> callbacks_;
};

} // namespace ptarmigan::shim
