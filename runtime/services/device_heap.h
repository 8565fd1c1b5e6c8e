// SPDX-License-Identifier: Apache-2.0
// The heap behind malloc() and free() in kernels: a fixed piece of device memory per context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace ptarmigan::runtime {

class Context;

/// Thread-safe; lock order: before AddressSpace's. Book-keeping lies outside the heap, where no
/// kernel can damage it.
class KernelHeap {
public:
    explicit KernelHeap(Context& context) : context_(context) {}
    /// 16-byte aligned; null when the heap (Limit::malloc_heap_size, fixed by the first call) has
    /// no room. 0 bytes get a place of their own, as on a GPU.
    void* allocate(std::size_t size);
    enum class Freed {
        yes,      ///< or it was null
        not_ours, ///< a pointer from elsewhere: nothing happens, as on a GPU (H100, 2026-11-22)
        dead,     ///< in the heap, but freed before or never given
    };
    Freed free(void* pointer);
    /// Gives the memory back: the context is reset.
    void release();

private:
    bool reserve();

    Context& context_;
    std::mutex mutex_;
    std::uintptr_t base_ = 0;
    std::size_t size_ = 0;
    std::map<std::uintptr_t, std::size_t> free_, live_;
};

} // namespace ptarmigan::runtime
