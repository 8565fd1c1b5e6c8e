// SPDX-License-Identifier: Apache-2.0
// The option arrays of cuModuleLoadDataEx, cuLibraryLoadData and cuLinkCreate: log buffers in,
// bytes used out.
#pragma once

#include "runtime/base/status.h"

#include <chrono>
#include <string_view>

namespace ptarmigan::shim {

/// Reads the arrays at construction, answers through them in finish(). The arrays and buffers must
/// outlive it.
class JitOptions {
public:
    JitOptions(unsigned count, const unsigned* options, void** values);

    /// invalid_value for unknown options or missing arrays.
    runtime::Status status() const { return status_; }
    /// A log buffer was given.
    bool wants_logs() const { return info_.text || error_.text; }
    /// Writes the logs (cut to the buffers, NUL-terminated), their sizes without NUL, at most those
    /// of the buffers, and the time since construction.
    void finish(std::string_view info_log, std::string_view error_log);

private:
    struct Buffer {
        char* text = nullptr;
        unsigned size = 0;
        void** used = nullptr; ///< where the size came from; overwritten with the bytes used
        void write(std::string_view log) const;
    };
    runtime::Status status_ = runtime::Status::success;
    Buffer info_, error_;
    void** wall_time_ = nullptr;
    std::chrono::steady_clock::time_point start_;
};

} // namespace ptarmigan::shim
