// SPDX-License-Identifier: Apache-2.0
// What decides which graphs of a conditional node run: kernels set it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace ptarmigan::runtime {

class Context;

/// CUgraphConditionalHandle: what conditional nodes look at, and kernels set (cudaGraphSetConditional). Found by its
/// number. Thread-safe.
class ConditionalValue {
public:
    /// cuGraphConditionalHandleCreate; with `assign_default` each launch begins with `value`.
    static std::shared_ptr<ConditionalValue> create(Context& context, std::uint32_t value, bool assign_default);
    static std::shared_ptr<ConditionalValue> find(std::uint64_t handle);
    ~ConditionalValue();
    ConditionalValue(Context& context, std::uint32_t value, bool assign_default, std::uint64_t handle)
        : context(context), default_value(value), assign_default(assign_default), handle(handle) {}

    std::uint32_t get() const { return value_.load(std::memory_order_acquire); }
    void set(std::uint32_t value) { value_.store(value, std::memory_order_release); }

    Context& context;
    const std::uint32_t default_value;
    const bool assign_default;
    const std::uint64_t handle;
    bool used = false; ///< by a node; guarded by graph_mutex() (graph/)

private:
    std::atomic<std::uint32_t> value_{0};
};

} // namespace ptarmigan::runtime
