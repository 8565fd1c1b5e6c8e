// SPDX-License-Identifier: Apache-2.0
// Memory and semaphores that others share by file descriptors: other processes, or a Vulkan driver that renders on the
// CPU, whose memory is a file without a name. No GPU's driver is here to make sense of a GPU's descriptors: those are
// refused.
#pragma once

#include "runtime/base/status.h"
#include "runtime/memory/pool.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ptarmigan::runtime {

class Context;
class Stream;

/// An open file, closed with it.
class OwnedFile {
public:
    explicit OwnedFile(int descriptor) : descriptor_(descriptor) {}
    ~OwnedFile();
    OwnedFile(const OwnedFile&) = delete;
    OwnedFile& operator=(const OwnedFile&) = delete;
    int descriptor() const { return descriptor_; }

private:
    const int descriptor_;
};

/// cuImportExternalMemory. Thread-safe; buffers outlive it.
class ExternalMemory {
public:
    ExternalMemory(Context& context, int descriptor, std::size_t size, bool whole)
        : context_(context), file_(descriptor), size_(size), whole_(whole) {}
    /// Of a file of at least `size` bytes that can be mapped, which is this object's then; invalid_value for other
    /// descriptors, which stay the caller's.
    /// `whole`: one resource has it, so buffers begin where it does.
    static Status import(Context& context, int descriptor, std::size_t size, bool whole,
                         std::shared_ptr<ExternalMemory>& memory);

    Context& context() const { return context_; }
    /// cuExternalMemoryGetMappedBuffer: device memory that shares the file's bytes, to be freed by cuMemFree. `offset`
    /// is a multiple of the host's pages.
    Status map(std::size_t offset, std::size_t size, DevicePointer& pointer) const;

private:
    Context& context_;
    const OwnedFile file_;
    const std::size_t size_;
    const bool whole_;
};

/// cuImportExternalSemaphore: an eventfd (a signal adds one, a wait takes one), or a file that begins with a counter of
/// 64 bits (a signal sets it, a wait ends when it is at least the value). Thread-safe.
class ExternalSemaphore : public std::enable_shared_from_this<ExternalSemaphore> {
public:
    ExternalSemaphore(Context& context, int descriptor, void* counter)
        : context_(context), file_(descriptor), counter_(static_cast<std::uint64_t*>(counter)) {}
    ~ExternalSemaphore();
    ExternalSemaphore(const ExternalSemaphore&) = delete;
    ExternalSemaphore& operator=(const ExternalSemaphore&) = delete;
    /// invalid_value for other descriptors, which stay the caller's. `timeline`: only files with a counter.
    static Status import(Context& context, int descriptor, bool timeline,
                         std::shared_ptr<ExternalSemaphore>& semaphore);

    Context& context() const { return context_; }
    /// In stream order.
    void signal(Stream& stream, std::uint64_t value);
    void wait(Stream& stream, std::uint64_t value);
    /// On this thread and now; a wait ends with a fault of `context`, too.
    void signal_now(std::uint64_t value);
    void wait_now(std::uint64_t value, const Context& context);

private:
    bool try_wait(std::uint64_t value) const;

    Context& context_;
    const OwnedFile file_;
    std::uint64_t* const counter_; ///< mapped; null: an eventfd
};

} // namespace ptarmigan::runtime
