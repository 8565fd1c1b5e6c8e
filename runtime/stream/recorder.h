// SPDX-License-Identifier: Apache-2.0
// What takes the place of a stream's queue while the stream captures: work becomes nodes of a graph (graph/capture).
// Here is what the operations on streams, memory and kernels need of it.
#pragma once

#include "runtime/base/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class Event;
class Function;
class MemoryPool;
class Stream;
class ExternalSemaphore;
struct CopyBox;
struct LaunchConfig;
struct ValueStep;

/// Each call returns what the driver says of the call that it records. Thread-safe.
class StreamRecorder {
public:
    virtual ~StreamRecorder() = default;
    virtual Status kernel(Function& function, const LaunchConfig& config, void* const* parameters,
                          void* const* extra) = 0;
    virtual Status copy(const CopyBox& box) = 0;
    virtual Status fill(std::uint64_t to, std::size_t pitch, unsigned element_size, std::uint32_t value,
                        std::size_t width, std::size_t height) = 0;
    virtual Status host_function(void (*function)(void*), void* data) = 0;
    virtual Status allocate(const std::shared_ptr<MemoryPool>& pool, std::size_t size, std::uint64_t& pointer) = 0;
    virtual Status free(std::uint64_t pointer) = 0;
    virtual Status values(std::vector<ValueStep> steps) = 0;
    /// Signals semaphores, or waits for them, each with its value.
    virtual Status semaphores(std::vector<std::pair<std::shared_ptr<ExternalSemaphore>, std::uint64_t>> semaphores,
                              bool wait) = 0;
    /// `port`: of the stream's last kernel, that the event marks (CUgraphKernelNodePort); 0: its end.
    virtual Status record(Event& event, bool external, unsigned port) = 0;
    virtual Status wait(Event& event, bool external) = 0;
    /// A call that can't be recorded: its status, and the capture is invalid from then on.
    virtual Status forbid() = 0;
};

/// What an event that was recorded last in a stream that captured marks.
class CapturedMark {
public:
    virtual ~CapturedMark() = default;
    /// cuStreamWaitEvent by `stream`, which may not capture yet.
    virtual Status wait(Stream& stream, bool external) = 0;
    /// A call that asks or waits for the event.
    virtual Status forbid() = 0;
};

/// True if any stream of the process captures: what every call looks at first.
class Captures {
public:
    static bool any() { return count.load(std::memory_order_acquire) != 0; }
    /// What work in the legacy default stream of `context` means for captures; set once, by who makes recorders.
    static inline std::atomic<Status (*)(Context& context)> legacy_work{nullptr};
    /// What a potentially unsafe call of this thread's means for them; set likewise.
    static inline std::atomic<Status (*)()> unsafe_call{nullptr};
    static Status check_unsafe_call() {
        const auto check = any() ? unsafe_call.load() : nullptr;
        return check ? check() : Status::success;
    }
    static inline std::atomic<unsigned> count{0};
};

} // namespace ptarmigan::runtime
