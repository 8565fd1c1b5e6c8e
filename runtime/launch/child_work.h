// SPDX-License-Identifier: Apache-2.0
// What the threads of a grid launched (dynamic parallelism): kernels, copies and fills, kept in order until the grid's
// own CTAs are done.
#pragma once

#include "runtime/launch/launch.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

class Function;
struct Grid;

/// Parameter blocks begin at multiples of this, so that every parameter has its alignment.
struct alignas(128) ParameterLine {
    std::uint8_t bytes[128];
};

/// One piece of work that a kernel asked for. A kernel, or `host_work`.
struct ChildItem {
    Function* function = nullptr; ///< of the parent's module
    LaunchConfig config;
    std::vector<ParameterLine> parameters; ///< the parameter block; the kernel fills it in
    std::size_t parameter_bytes = 0;
    int error = 0; ///< that the launch is to return, instead of being made
    /// Copies and fills: false if a range is no memory that the device may touch.
    std::function<bool()> host_work;
};

/// Thread-safe: any thread of the grid's CTAs calls it. No lock is held while memory of the program is touched.
class ChildWork {
public:
    /// Codes of the device runtime (cudaError_t).
    enum Error : int {
        success = 0,
        invalid_value = 1,
        memory_allocation = 2,
        invalid_configuration = 9,
        invalid_pitch = 12,
        sync_depth_exceeded = 68,
        invalid_resource_handle = 400,
    };
    static constexpr std::uint64_t tail_launch = 3, fire_and_forget = 4, first_stream = 16;

    /// Makes room for the parameters of a launch. The buffer stays until launch() or the end of the grid.
    void* add_buffer(std::unique_ptr<ChildItem> item);
    /// Whether `bytes` bytes at `address` lie in one of those buffers.
    bool has_buffer(const void* address, std::size_t bytes);
    /// What `buffer` is the parameter block of; null if it is none.
    std::unique_ptr<ChildItem> take_buffer(void* buffer);
    /// Queues a launch, or gives its error.
    int launch(std::unique_ptr<ChildItem> item, std::uint64_t stream);
    void add(std::unique_ptr<ChildItem> item, std::uint64_t stream);
    static bool is_stream(std::uint64_t stream) { return stream <= fire_and_forget || stream >= first_stream; }

    /// Each thread has a last error of its own; `thread` counts through the grid.
    void set_error(std::uint64_t thread, int error);
    int last_error(std::uint64_t thread, bool clear);

    /// A handle for a stream or event: nothing is kept about it, because work runs in the order in which it was asked
    /// for.
    std::uint64_t new_handle() { return next_handle_.fetch_add(16, std::memory_order_relaxed); }

    /// The work, in the order in which it is to run; empty afterwards. Once the grid's CTAs have ended.
    std::vector<std::unique_ptr<ChildItem>> take();

private:
    std::mutex mutex_; ///< guards what follows but the atomics
    std::map<const void*, std::unique_ptr<ChildItem>> buffers_;
    std::vector<std::unique_ptr<ChildItem>> items_, tail_;
    std::map<std::uint64_t, int> errors_;
    std::atomic<bool> has_errors_{false};
    std::atomic<std::uint64_t> next_handle_{first_stream};
};

/// The child work of a grid; made at the first call.
ChildWork& child_work_of(Grid& grid);

/// cudaGraphLaunch by a thread of the grid, of an instance (0: the one that the grid is part of) in a stream for that:
/// an error of the device runtime. Set by graph/; null: there are no graphs.
inline std::atomic<int (*)(Grid& grid, std::uint64_t exec, std::uint64_t stream)> device_graph_launch{nullptr};

/// Runs what the grid's threads launched, and what that launched in turn, on this thread and helpers. A child comes
/// before its parent's next one, tail launches behind everything else of their parent. Ends at the first fault.
void run_child_work(Grid& grid);

} // namespace ptarmigan::runtime
