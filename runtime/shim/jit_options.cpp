// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/jit_options.h"

#include "runtime/shim/cuda_types.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::shim {
namespace {

constexpr unsigned option_count = 35; // CUDA 13 knows 0..34; all but the logs steer ptxas only

} // namespace

JitOptions::JitOptions(unsigned count, const unsigned* options, void** values)
    : start_(std::chrono::steady_clock::now()) {
    if (count && (!options || !values)) {
        status_ = runtime::Status::invalid_value;
        return;
    }
    for (unsigned i = 0; i < count; ++i) {
        auto number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
        switch (options[i]) {
        case jit_info_log_buffer: info_.text = static_cast<char*>(values[i]); break;
        case jit_error_log_buffer: error_.text = static_cast<char*>(values[i]); break;
        case jit_info_log_buffer_size: info_.size = number, info_.used = &values[i]; break;
        case jit_error_log_buffer_size: error_.size = number, error_.used = &values[i]; break;
        case jit_wall_time: wall_time_ = &values[i]; break;
        default:
            if (options[i] >= option_count) status_ = runtime::Status::invalid_value;
        }
    }
}

void JitOptions::Buffer::write(std::string_view log) const {
    std::size_t used = 0;
    if (text && size) {
        used = std::min<std::size_t>(log.size(), size);
        const std::size_t kept = std::min<std::size_t>(log.size(), size - 1);
        std::copy_n(log.data(), kept, text); // not memcpy: an empty log has no address
        text[kept] = 0;
    }
    if (this->used) *this->used = reinterpret_cast<void*>(static_cast<std::uintptr_t>(used));
}

void JitOptions::finish(std::string_view info_log, std::string_view error_log) {
    info_.write(info_log);
    error_.write(error_log);
    if (wall_time_) {
        std::chrono::duration<float, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
        float milliseconds = elapsed.count();
        *wall_time_ = nullptr;
        std::memcpy(wall_time_, &milliseconds, sizeof milliseconds);
    }
}

} // namespace ptarmigan::shim
