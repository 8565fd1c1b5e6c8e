// SPDX-License-Identifier: Apache-2.0
// Writes to device memory that no running kernel does: copies and fills of the driver's, and the ends of grids and of
// allocations. What is known of who has seen which memory holds between two of them only.
#pragma once

#include "runtime/base/host_access.h"

#include <atomic>
#include <cstdint>

namespace ptarmigan::runtime {

/// One is alive while the driver writes to device memory, which it may use then. Thread-safe; two counts and nothing
/// else.
class OutsideWrite {
public:
    OutsideWrite() {
        running_.fetch_add(1, std::memory_order_acq_rel);
        count_.fetch_add(1, std::memory_order_acq_rel);
    }
    ~OutsideWrite() {
        count_.fetch_add(1, std::memory_order_acq_rel);
        running_.fetch_sub(1, std::memory_order_acq_rel);
    }
    OutsideWrite(const OutsideWrite&) = delete;
    OutsideWrite& operator=(const OutsideWrite&) = delete;

    /// Changes with each of them, at its begin and at its end.
    static std::uint64_t count() { return count_.load(std::memory_order_acquire); }
    static bool any() { return running_.load(std::memory_order_acquire) != 0; }

private:
    const DeviceMemoryUse use_;
    static inline std::atomic<std::uint64_t> count_{0};
    static inline std::atomic<std::uint32_t> running_{0};
};

} // namespace ptarmigan::runtime
