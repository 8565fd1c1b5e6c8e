// SPDX-License-Identifier: Apache-2.0
// Contexts: what owns modules, streams, events and memory, and where a kernel's fault sticks. The
// primary context of the device is one of them. Which context is current is a property of the host
// thread: current_context.h.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

struct DeviceUse;
class GreenContext;
class Stream;
class PrintfBuffer;
class KernelHeap;
class MemoryPool;

/// CUlimit.
enum class Limit : int {
    stack_size = 0,
    printf_fifo_size = 1,
    malloc_heap_size = 2,
    sync_depth = 3,
    pending_launches = 4,
    max_l2_fetch = 5,
    persisting_l2 = 6,
    shared_memory_size = 7,
    cig_enabled = 8,
    cig_shared_fallback = 9,
};

/// Thread-safe. Handles are found in HandleTable<Context>, where the primary context always is.
class Context : public std::enable_shared_from_this<Context> {
public:
    /// green: a name for the primary context (green_context.h), which has nothing of its own.
    enum class Kind { primary, user, green };
    /// Use create() or primary_context(). `device`: an ordinal.
    Context(Kind kind, unsigned flags, int device);
    ~Context();

    /// cuCtxCreate: a new active user context of a device (an ordinal), made current on the calling thread (pushed).
    static Status create(unsigned flags, int device, std::shared_ptr<Context>& context);
    /// cuCtxDestroy of a user context: waits for its work, frees everything that it owns. The
    /// primary context: invalid_context.
    Status destroy();

    /// cuCtxAttach and cuCtxDetach count users of a context; the last one to detach ends it. detach(): there are
    /// others.
    void attach() { ++attached_; }
    bool detach() { return attached_.load() > 0 && attached_.fetch_sub(1) > 0; }

    /// Primary context only: counts users; the first retain activates it, the last release() or a
    /// reset() destroys its contents, but for a release() while the process exits and work is left, which does not
    /// wait. After a kernel fault retain() returns the fault's code for the rest of the process.
    Status retain();
    Status release();
    Status reset();
    Status set_primary_flags(unsigned flags);
    void primary_state(unsigned& flags, bool& active) const;

    /// Ordinal of its device (Device::get()).
    int device() const { return device_; }
    /// What this process uses of it.
    DeviceUse& used() const;
    bool is_primary() const { return kind_ == Kind::primary; }
    /// The context that calls work in: the primary one for green ones, else this.
    Context& root();
    const Context& root() const { return const_cast<Context&>(*this).root(); }
    std::shared_ptr<GreenContext> green() const { return green_.lock(); }          ///< of Kind::green, while it lives
    void set_green(const std::shared_ptr<GreenContext>& green) { green_ = green; } ///< once, by GreenContext
    void end_green() { destroyed_.store(true); }
    bool active() const { return active_.load(std::memory_order_acquire); }
    /// What every entry that needs a context returns first: success, the sticky code of an earlier
    /// kernel fault, or context_is_destroyed. Lock-free.
    Status status() const;
    /// Makes `code` sticky in all contexts of the process, whatever device is theirs (the first one wins), and stops
    /// the grids that run.
    static void set_fault(Status code);
    /// A grid that may wait for others runs: at a fault of another one Fault::trap is written to its word `fault`,
    /// which it looks at. False if there was one already.
    static bool add_running(std::uint32_t& fault);
    static void remove_running(std::uint32_t& fault);

    /// Waits until all streams are idle and flushes device printf; a fault's sticky code.
    Status synchronize();
    /// To be called where a host thread has waited for work: device printf becomes visible, pools give back what is
    /// unused. A fault's sticky code.
    Status after_wait();

    /// As cuCtxGetFlags tells them: memory of the host is always mapped.
    unsigned flags() const;
    Status set_flags(unsigned flags); ///< cuCtxSetFlags
    unsigned api_version() const { return 3020; }
    /// A new one at each activation; 0 before the first.
    std::uint64_t id() const { return id_.load(); }
    Status limit(Limit limit, std::size_t& value) const;
    Status set_limit(Limit limit, std::size_t value);
    int cache_config() const { return cache_config_.load(); }
    Status set_cache_config(int config); ///< 0..3, else invalid_value
    int shared_config() const { return shared_config_.load(); }
    Status set_shared_config(int config); ///< 0..2
    static void stream_priority_range(int& least, int& greatest) { least = 0, greatest = -5; }

    /// The legacy default stream (handles 0 and 1). Made by the first activation, the same from
    /// then on.
    const std::shared_ptr<Stream>& legacy_stream() const { return legacy_stream_; }

    PrintfBuffer& printf_buffer() { return *printf_; }
    KernelHeap& kernel_heap() { return *kernel_heap_; }
    /// The pool of cuMemAllocAsync: the default one, or what set_pool() chose.
    std::shared_ptr<MemoryPool> pool() const;
    std::shared_ptr<MemoryPool> default_pool() const { return default_pool_; }
    void set_pool(std::shared_ptr<MemoryPool> pool);

    /// For those who make these (context_keeper.h), once.
    void keep(std::shared_ptr<Stream> legacy_stream);
    void keep(std::shared_ptr<MemoryPool> default_pool);
    void keep(std::shared_ptr<KernelHeap> kernel_heap);

    /// Note that kernels ran that used the heap or printf: their limits are fixed from then on.
    void fix_printf_limit() { printf_limit_fixed_.store(true, std::memory_order_relaxed); }
    void fix_heap_limit() { heap_limit_fixed_.store(true, std::memory_order_relaxed); }

private:
    void activate();
    void wait_for_work();
    bool has_work() const;
    void clear();

    const Kind kind_;
    const int device_;
    std::atomic<std::uint64_t> id_;
    mutable std::mutex mutex_; ///< guards everything below that is not atomic
    unsigned flags_;
    unsigned references_ = 0;
    std::atomic<bool> active_{false};
    std::atomic<bool> destroyed_{false};
    std::atomic<int> attached_{0}; ///< beside who made it
    std::array<std::size_t, 10> limits_{};
    std::atomic<bool> printf_limit_fixed_{false}, heap_limit_fixed_{false};
    std::atomic<int> cache_config_{0}, shared_config_{1};
    std::weak_ptr<GreenContext> green_;
    std::shared_ptr<Stream> legacy_stream_;
    std::unique_ptr<PrintfBuffer> printf_;
    std::shared_ptr<KernelHeap> kernel_heap_;
    std::shared_ptr<MemoryPool> default_pool_, pool_;
};

/// The primary context of a device (an ordinal below Device::count(); 0 exists always). Inactive until retained. Its
/// handle never changes.
const std::shared_ptr<Context>& primary_context(int device = 0);

/// Whether that was the handle of a context which Context::destroy() has ended.
bool was_context(const void* handle);

/// The code that a kernel fault left in the process, or success. The driver refuses new contexts
/// with it.
Status process_fault();

} // namespace ptarmigan::runtime
