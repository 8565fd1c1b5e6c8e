// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/pool.h"

#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/device/device.h"
#include "runtime/stream/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint64_t chunk = std::uint64_t{32} << 20;
constexpr int pinned_type = 1, managed_type = 2;
constexpr unsigned read_write = 3;

std::uint64_t in_chunks(std::uint64_t bytes) {
    return (bytes + chunk - 1) / chunk * chunk;
}

/// Something was freed since the pools were trimmed.
std::atomic<bool> something_to_trim{false};

/// Whether memory of this type can lie there, and what kind it is.
Status kind_at(MemoryPlace& place, int allocation_type, MemoryKind& kind) {
    if (allocation_type != pinned_type && allocation_type != managed_type) return Status::invalid_value;
    switch (place.type) {
    case MemoryPlace::none:
        if (allocation_type == pinned_type) return Status::invalid_value;
        place.id = 0;
        break;
    case MemoryPlace::device:
        if (place.id < 0 || place.id >= Device::count()) return Status::invalid_value;
        break;
    case MemoryPlace::host: place.id = 0; break;
    case MemoryPlace::host_numa:
        if (place.id != 0) return Status::invalid_value; // one node is told of
        break;
    default: return Status::invalid_value;
    }
    kind = allocation_type == managed_type     ? MemoryKind::managed
           : place.type == MemoryPlace::device ? MemoryKind::pool
                                               : MemoryKind::pinned;
    return Status::success;
}

/// Default and current pools of all places but a device's own, which its primary context has.
struct Directory {
    struct Pools {
        std::shared_ptr<MemoryPool> fallback, current;
    };
    std::mutex mutex;
    std::map<std::pair<int, int>, Pools> pinned, managed; ///< by place

    static Directory& get() {
        static auto* directory = new Directory; // never destroyed: programs call in from their exit handlers
        return *directory;
    }
    /// Under the mutex.
    Pools& of(MemoryPlace place, MemoryKind kind) {
        Pools& pools = (kind == MemoryKind::managed ? managed : pinned)[{place.type, place.id}];
        if (!pools.fallback) {
            pools.fallback = std::make_shared<MemoryPool>(PoolProperties{kind, place, 0, true});
            HandleTable<MemoryPool>::get().add(pools.fallback);
            pools.current = pools.fallback;
        }
        return pools;
    }
};

Status place_status(MemoryPlace& place, int allocation_type, MemoryKind& kind) {
    if (place.type >= MemoryPlace::host_numa_current) return Status::not_supported;
    return kind_at(place, allocation_type, kind);
}

void make_default_pool(Context& context) {
    auto pool = std::make_shared<MemoryPool>(PoolProperties{.is_default = true});
    HandleTable<MemoryPool>::get().add(pool);
    context.keep(std::move(pool));
}

const RegisterContextKeeper
    memory_of_contexts(ContextKeeper::Kind::memory,
                       {.make = make_default_pool, .waited = trim_pools_to_thresholds, .end = [](Context& context) {
                            AddressSpace::get().free_context(&context);
                        }});

} // namespace

Status MemoryPool::create(int allocation_type, MemoryPlace place, std::size_t max_size,
                          std::shared_ptr<MemoryPool>& pool) {
    PoolProperties properties;
    if (const Status status = kind_at(place, allocation_type, properties.kind); status != Status::success)
        return status;
    if (max_size > AddressSpace::get().capacity()) return Status::out_of_memory;
    properties.place = place;
    properties.max_size = max_size;
    pool = std::make_shared<MemoryPool>(properties);
    HandleTable<MemoryPool>::get().add(pool);
    return Status::success;
}

Status MemoryPool::attribute(int attribute, void* value) const {
    const auto narrow = [&](int number) {
        std::memcpy(value, &number, sizeof number);
        return Status::success;
    };
    const auto wide = [&](std::uint64_t number) {
        std::memcpy(value, &number, sizeof number);
        return Status::success;
    };
    if (!value) return Status::invalid_value;
    std::lock_guard lock(mutex_);
    switch (attribute) {
    case 1:
    case 2:
    case 3: return narrow(flags_[attribute - 1]);
    case 4: return wide(threshold_);
    case 5: return wide(reserved_);
    case 6: return wide(reserved_high_);
    case 7: return wide(used_);
    case 8: return wide(used_high_);
    case 9: return narrow(properties_.kind == MemoryKind::managed ? managed_type : pinned_type);
    case 10: return narrow(0); // no handles to share
    case 11: return narrow(properties_.place.id);
    case 12: return narrow(properties_.place.type);
    case 13: return wide(properties_.max_size);
    default: return Status::invalid_value;
    }
}

Status MemoryPool::set_attribute(int attribute, const void* value) {
    if (!value) return Status::invalid_value;
    std::lock_guard lock(mutex_);
    if (attribute >= 1 && attribute <= 3) {
        int number = 0;
        std::memcpy(&number, value, sizeof number);
        flags_[attribute - 1] = number != 0;
        return Status::success;
    }
    std::uint64_t number = 0;
    if (attribute == 4 || attribute == 6 || attribute == 8) std::memcpy(&number, value, sizeof number);
    if (attribute != 4 && number != 0) return Status::invalid_value; // high-water marks: reset only
    switch (attribute) {
    case 4: threshold_ = number; return Status::success;
    case 6: reserved_high_ = reserved_; return Status::success;
    case 8: used_high_ = used_; return Status::success;
    default: return Status::invalid_value; // read-only, or none
    }
}

Status MemoryPool::access(MemoryPlace place, unsigned& flags) const {
    std::lock_guard lock(mutex_);
    const MemoryKind kind = properties_.kind;
    switch (place.type) {
    case MemoryPlace::device:
        if (place.id < 0 || place.id >= Device::count()) return Status::invalid_device;
        flags = kind == MemoryKind::pool ? read_write : device_access_;
        return Status::success;
    case MemoryPlace::host:
    case MemoryPlace::host_numa: flags = kind == MemoryKind::pinned ? read_write : 0; return Status::success;
    default: return Status::invalid_value;
    }
}

Status MemoryPool::set_access(MemoryPlace place, unsigned flags) {
    if (place.type != MemoryPlace::device || (flags != 0 && flags != 1 && flags != read_write))
        return place.type == MemoryPlace::host || place.type == MemoryPlace::host_numa ? Status::success
                                                                                       : Status::invalid_value;
    if (place.id < 0 || place.id >= Device::count()) return Status::invalid_device;
    std::lock_guard lock(mutex_);
    device_access_ = flags;
    return Status::success;
}

Status MemoryPool::take(std::size_t size) {
    std::lock_guard lock(mutex_);
    const std::uint64_t needed = in_chunks(used_ + size);
    if (properties_.max_size && needed > in_chunks(properties_.max_size)) return Status::out_of_memory;
    used_ += size;
    used_high_ = std::max(used_high_, used_);
    reserved_ = std::max(reserved_, needed);
    reserved_high_ = std::max(reserved_high_, reserved_);
    return Status::success;
}

void MemoryPool::give_back(std::size_t size) {
    std::lock_guard lock(mutex_);
    used_ -= std::min<std::uint64_t>(used_, size);
    something_to_trim.store(true, std::memory_order_release);
}

void MemoryPool::trim(std::size_t kept) {
    std::lock_guard lock(mutex_);
    reserved_ = std::max(in_chunks(used_), std::min<std::uint64_t>(reserved_, kept));
}

void MemoryPool::trim_to_threshold() {
    std::lock_guard lock(mutex_);
    reserved_ = std::max(in_chunks(used_), std::min(reserved_, threshold_));
}

void trim_pools_to_thresholds() {
    if (!something_to_trim.load(std::memory_order_acquire)) return;
    if (!something_to_trim.exchange(false, std::memory_order_acq_rel)) return;
    for (const auto& pool : HandleTable<MemoryPool>::get().all()) pool->trim_to_threshold();
}

Status pool_of_place(MemoryPlace place, int allocation_type, bool current, std::shared_ptr<MemoryPool>& pool) {
    MemoryKind kind{};
    if (const Status status = place_status(place, allocation_type, kind); status != Status::success) return status;
    if (kind == MemoryKind::pool) {
        const Context& primary = *primary_context();
        pool = current ? primary.pool() : primary.default_pool();
        return Status::success;
    }
    Directory& directory = Directory::get();
    std::lock_guard lock(directory.mutex);
    const Directory::Pools& pools = directory.of(place, kind);
    pool = current ? pools.current : pools.fallback;
    return Status::success;
}

Status set_pool_of_place(MemoryPlace place, int allocation_type, const std::shared_ptr<MemoryPool>& pool) {
    MemoryKind kind{};
    if (const Status status = place_status(place, allocation_type, kind); status != Status::success) return status;
    if (!pool || pool->properties().kind != kind || pool->properties().place != place) return Status::invalid_value;
    if (kind == MemoryKind::pool) {
        primary_context()->set_pool(pool);
        return Status::success;
    }
    Directory& directory = Directory::get();
    std::lock_guard lock(directory.mutex);
    directory.of(place, kind).current = pool;
    return Status::success;
}

Status retire_pool(const std::shared_ptr<MemoryPool>& pool) {
    const PoolProperties& properties = pool->properties();
    if (properties.is_default) return Status::invalid_value;
    if (properties.kind == MemoryKind::pool) {
        Context& primary = *primary_context();
        if (primary.pool() == pool) primary.set_pool(primary.default_pool());
        return Status::success;
    }
    Directory& directory = Directory::get();
    std::lock_guard lock(directory.mutex);
    Directory::Pools& pools = directory.of(properties.place, properties.kind);
    if (pools.current == pool) pools.current = pools.fallback;
    return Status::success;
}

Status pool_allocate(Stream& stream, const std::shared_ptr<MemoryPool>& pool, std::size_t size,
                     DevicePointer& pointer) {
    pointer = 0;
    if (size == 0) return Status::success;
    if (const Status status = pool->take(size); status != Status::success) return status;
    // The memory exists from the call on: that is earlier than stream order asks, never later.
    AddressSpace& space = AddressSpace::get();
    Allocation allocation;
    const Status status = space.allocate(size, pool->properties().kind, &stream.context(), allocation);
    if (status != Status::success) {
        pool->give_back(size);
        return status;
    }
    pointer = allocation.base;
    return space.annotate(allocation.base, [&pool](Allocation& record) { record.pool = pool; });
}

Status pool_free(Stream& stream, DevicePointer pointer) {
    if (pointer == 0) return Status::success;
    const Status status = AddressSpace::get().mark_free_pending(pointer);
    if (status != Status::success) return status;
    stream.submit(
        [pointer] {
            const auto pending = [](const Allocation& record) { return record.free_pending; };
            // Gone already only if its context was destroyed in between.
            static_cast<void>(AddressSpace::get().free(pointer, pending));
        },
        Stream::Start::inline_if_idle);
    return Status::success;
}

} // namespace ptarmigan::runtime
