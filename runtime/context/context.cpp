// SPDX-License-Identifier: Apache-2.0
// Life of contexts, their limits, and the faults that stick to them.
#include "runtime/context/context.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/process_exit.h"
#include "runtime/context/context_keeper.h"
#include "runtime/context/current_context.h"
#include "runtime/context/peer_access.h"
#include "runtime/context/printf_buffer.h"
#include "runtime/context/refused_launch.h"
#include "runtime/device/device.h"
#include "runtime/device/device_use.h"
#include "translator/kernel_abi.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {
namespace {

constexpr unsigned map_host_flag = 8, known_flags = 0x7f;
/// sync policy: auto 0, spin 1, yield 2, blocking 4; only one may be set.
bool valid_flags(unsigned flags) {
    const unsigned schedule = flags & 7;
    return (flags & ~known_flags) == 0 && schedule != 3 && schedule < 5;
}

std::atomic<std::uint64_t> next_context_id{1};
std::atomic<int> fault_of_process{0};

constexpr std::array<std::size_t, 10> default_limits = {1024, 8650752, 8388608, 0, 2048, 64, 11796480, 232448, 0, 0};

/// Streams, events and operations refer to their context: it is never freed, only cleared.
struct MadeContexts {
    std::mutex mutex;
    std::vector<std::shared_ptr<Context>> all;

    static MadeContexts& get() {
        static auto* made = new MadeContexts; // never destroyed: programs call in from their exit handlers
        return *made;
    }
};

/// Grids that may wait for others, of all contexts: a fault ends them all.
struct RunningGrids {
    std::mutex mutex; ///< a leaf
    std::vector<std::uint32_t*> faults;

    static RunningGrids& get() {
        static auto* grids = new RunningGrids; // never destroyed: kernels may outlive static destructors
        return *grids;
    }
};

/// Filled in before main().
constinit std::array<ContextKeeper, static_cast<std::size_t>(ContextKeeper::Kind::count)> keepers{};

} // namespace

RegisterContextKeeper::RegisterContextKeeper(ContextKeeper::Kind kind, const ContextKeeper& keeper) {
    keepers[static_cast<std::size_t>(kind)] = keeper;
}

const std::shared_ptr<Context>& primary_context(int device) {
    static const auto& all = *[] { // never destroyed: programs call in from their exit handlers
        auto* contexts = new std::vector<std::shared_ptr<Context>>;
        for (int i = 0; i < Device::number_of_devices(); ++i) {
            contexts->push_back(std::make_shared<Context>(Context::Kind::primary, 0, i));
            HandleTable<Context>::get().add(contexts->back());
        }
        return contexts;
    }();
    return all[static_cast<std::size_t>(device)];
}

bool was_context(const void* handle) {
    MadeContexts& made = MadeContexts::get();
    std::lock_guard lock(made.mutex);
    return std::any_of(made.all.begin(), made.all.end(), [&](const auto& context) { return context.get() == handle; });
}

Status process_fault() {
    return static_cast<Status>(fault_of_process.load());
}

Context::Context(Kind kind, unsigned flags, int device)
    : kind_(kind), device_(device), id_(kind == Kind::green ? next_context_id++ : 0), flags_(flags),
      limits_(default_limits), printf_(std::make_unique<PrintfBuffer>()) {
    if (kind == Kind::green) return;
    for (const ContextKeeper& keeper : keepers)
        if (keeper.make) keeper.make(*this);
}

Context::~Context() = default;

Context& Context::root() {
    return kind_ == Kind::green ? *primary_context(device_) : *this;
}

Status Context::create(unsigned flags, int device, std::shared_ptr<Context>& context) {
    if (!valid_flags(flags)) return Status::invalid_value;
    if (process_fault() != Status::success) return process_fault();
    context = std::make_shared<Context>(Kind::user, flags, device);
    HandleTable<Context>::get().add(context);
    {
        MadeContexts& made = MadeContexts::get();
        std::lock_guard lock(made.mutex);
        made.all.push_back(context);
    }
    std::unique_lock lock(context->mutex_);
    context->activate();
    lock.unlock();
    push_current_context(context);
    return Status::success;
}

Status Context::destroy() {
    if (kind_ != Kind::user) return Status::invalid_context;
    HandleTable<Context>::get().remove(this);
    wait_for_work();
    std::unique_lock lock(mutex_);
    if (!active()) return Status::context_is_destroyed;
    active_.store(false);
    destroyed_.store(true);
    lock.unlock();
    clear();
    if (current_context() == this) pop_current_context();
    return Status::success;
}

DeviceUse& Context::used() const {
    return device_use(static_cast<unsigned>(Device::get(device_).number()));
}

void Context::activate() {
    for (const ContextKeeper& keeper : keepers)
        if (keeper.begin) keeper.begin(*this);
    id_.store(next_context_id++);
    destroyed_.store(false);
    active_.store(true, std::memory_order_release);
    used().contexts.fetch_add(1, std::memory_order_relaxed);
}

/// Grids of an inactive context do not start any more: what was launched before its end is waited for before it is
/// inactive. No lock is held: callbacks may call in.
void Context::wait_for_work() {
    for (const ContextKeeper& keeper : keepers)
        if (keeper.wait) keeper.wait(*this);
    printf_->flush();
}

bool Context::has_work() const {
    return std::any_of(keepers.begin(), keepers.end(),
                       [this](const ContextKeeper& keeper) { return keeper.has_work && keeper.has_work(*this); });
}

/// Frees what the context owns when all its work has ended. It is inactive already.
void Context::clear() {
    wait_for_work(); // of other threads, meanwhile
    for (const ContextKeeper& keeper : keepers)
        if (keeper.end) keeper.end(*this);
    PeerAccess::get().forget(*this);
    used().contexts.fetch_sub(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    limits_ = default_limits;
    printf_limit_fixed_.store(false);
    heap_limit_fixed_.store(false);
    cache_config_.store(0);
    shared_config_.store(1);
    pool_ = default_pool_;
}

Status Context::retain() {
    std::lock_guard lock(mutex_);
    if (process_fault() != Status::success && !active()) return process_fault();
    if (references_++ == 0) activate();
    return Status::success;
}

Status Context::release() {
    std::unique_lock lock(mutex_);
    if (references_ == 1) {
        // libcudart's exit handler: see Module::unload().
        if (process_exits() && has_work()) {
            --references_;
            return Status::success;
        }
        lock.unlock();
        wait_for_work();
        lock.lock();
    }
    if (references_ == 0) return Status::invalid_context;
    if (--references_ > 0) return Status::success;
    active_.store(false);
    destroyed_.store(true);
    lock.unlock();
    clear();
    return Status::success;
}

Status Context::reset() {
    if (active()) wait_for_work();
    std::unique_lock lock(mutex_);
    if (references_ == 0) return Status::success;
    references_ = 0;
    active_.store(false);
    destroyed_.store(true);
    flags_ = 0;
    lock.unlock();
    clear();
    return Status::success;
}

Status Context::set_primary_flags(unsigned flags) {
    if (!valid_flags(flags)) return Status::invalid_value;
    std::lock_guard lock(mutex_);
    flags_ = flags;
    return Status::success;
}

void Context::primary_state(unsigned& flags, bool& active) const {
    std::lock_guard lock(mutex_);
    flags = flags_;
    active = this->active();
}

Status Context::status() const {
    if (kind_ == Kind::green) return destroyed_.load() ? Status::context_is_destroyed : root().status();
    if (!active_.load(std::memory_order_acquire))
        return destroyed_.load() ? Status::context_is_destroyed : Status::invalid_context;
    return static_cast<Status>(fault_of_process.load(std::memory_order_acquire));
}

void Context::set_fault(Status code) {
    int none = 0;
    fault_of_process.compare_exchange_strong(none, static_cast<int>(code));
    RunningGrids& grids = RunningGrids::get();
    std::lock_guard lock(grids.mutex);
    for (std::uint32_t* fault : grids.faults) {
        std::uint32_t running = 0;
        __atomic_compare_exchange_n(fault, &running, static_cast<std::uint32_t>(abi::Fault::trap), false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

bool Context::add_running(std::uint32_t& fault) {
    RunningGrids& grids = RunningGrids::get();
    std::lock_guard lock(grids.mutex);
    if (fault_of_process.load() != 0) return false;
    grids.faults.push_back(&fault);
    return true;
}

void Context::remove_running(std::uint32_t& fault) {
    RunningGrids& grids = RunningGrids::get();
    std::lock_guard lock(grids.mutex);
    std::erase(grids.faults, &fault);
}

Status Context::synchronize() {
    wait_for_work();
    return after_wait();
}

Status Context::after_wait() {
    for (const ContextKeeper& keeper : keepers)
        if (keeper.waited) keeper.waited();
    printf_->flush();
    const Status known = status();
    return known == Status::success && take_refused_launch() ? Status::not_supported : known;
}

unsigned Context::flags() const {
    std::lock_guard lock(mutex_);
    return flags_ | map_host_flag;
}

Status Context::set_flags(unsigned flags) {
    return set_primary_flags(flags);
}

Status Context::limit(Limit limit, std::size_t& value) const {
    const auto index = static_cast<std::size_t>(limit);
    if (index >= limits_.size()) return Status::invalid_value;
    if (limit == Limit::sync_depth || limit == Limit::cig_shared_fallback) return Status::unsupported_limit;
    std::lock_guard lock(mutex_);
    value = limits_[index];
    return Status::success;
}

Status Context::set_limit(Limit limit, std::size_t value) {
    constexpr std::size_t stack_end = 1 << 20, printf_least = 524288, heap_least = 4194304;
    std::lock_guard lock(mutex_);
    std::size_t& current = limits_[static_cast<std::size_t>(limit) % limits_.size()];
    switch (limit) {
    case Limit::stack_size:
        if (value >= stack_end) return Status::invalid_value;
        current = (value + 15) / 16 * 16;
        return Status::success;
    case Limit::printf_fifo_size:
        if (printf_limit_fixed_.load()) return Status::invalid_value;
        current = std::max(value, printf_least);
        printf_->set_capacity(current);
        return Status::success;
    case Limit::malloc_heap_size:
        if (heap_limit_fixed_.load()) return Status::invalid_value;
        current = std::max(value, heap_least);
        return Status::success;
    case Limit::pending_launches:
    case Limit::max_l2_fetch:
    case Limit::persisting_l2: current = value; return Status::success;
    case Limit::sync_depth:
    case Limit::cig_shared_fallback: return Status::unsupported_limit;
    case Limit::shared_memory_size:
    case Limit::cig_enabled: return Status::not_permitted;
    }
    return Status::invalid_value;
}

Status Context::set_cache_config(int config) {
    if (config < 0 || config > 3) return Status::invalid_value;
    cache_config_.store(config);
    return Status::success;
}

Status Context::set_shared_config(int config) {
    if (config < 0 || config > 2) return Status::invalid_value;
    shared_config_.store(config);
    return Status::success;
}

std::shared_ptr<MemoryPool> Context::pool() const {
    std::lock_guard lock(mutex_);
    return pool_;
}

void Context::set_pool(std::shared_ptr<MemoryPool> pool) {
    std::lock_guard lock(mutex_);
    pool_ = pool ? std::move(pool) : default_pool_;
}

void Context::keep(std::shared_ptr<Stream> legacy_stream) {
    legacy_stream_ = std::move(legacy_stream);
}

void Context::keep(std::shared_ptr<MemoryPool> default_pool) {
    default_pool_ = std::move(default_pool);
    pool_ = default_pool_;
}

void Context::keep(std::shared_ptr<KernelHeap> kernel_heap) {
    kernel_heap_ = std::move(kernel_heap);
}

} // namespace ptarmigan::runtime
