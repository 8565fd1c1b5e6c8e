// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/pool.h"

#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/device/device.h"
#include "runtime/memory/process_memory.h"
#include "runtime/stream/stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint64_t chunk = std::uint64_t{32} << 20;
constexpr int pinned_type = 1, managed_type = 2;
constexpr unsigned read_write = 3;
constexpr int file_descriptor_handle = 1;
constexpr std::uint64_t pool_note = 0x6c6f6f7074707861,
                        pointer_place = 0x706f6f6c7074; // any other file is none of these

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
    const MemoryPlace place{MemoryPlace::device, context.device()};
    auto pool = std::make_shared<MemoryPool>(PoolProperties{.place = place, .is_default = true});
    HandleTable<MemoryPool>::get().add(pool);
    context.keep(std::move(pool));
}

const RegisterContextKeeper
    memory_of_contexts(ContextKeeper::Kind::memory,
                       {.make = make_default_pool, .waited = trim_pools_to_thresholds, .end = [](Context& context) {
                            end_kept_memory();
                            ProcessMemory::get().close_all(&context);
                            AddressSpace::get().free_context(&context);
                        }});

} // namespace

Status MemoryPool::create(int allocation_type, MemoryPlace place, std::size_t max_size, int handle_types,
                          std::shared_ptr<MemoryPool>& pool) {
    PoolProperties properties;
    if (const Status status = kind_at(place, allocation_type, properties.kind); status != Status::success)
        return status;
    if (max_size > AddressSpace::get().capacity()) return Status::out_of_memory;
    properties.place = place;
    properties.max_size = max_size;
    properties.handle_types = handle_types;
    pool = std::make_shared<MemoryPool>(properties);
    HandleTable<MemoryPool>::get().add(pool);
    return Status::success;
}

Status MemoryPool::export_file(int& file) {
    if (!(properties_.handle_types & file_descriptor_handle) || properties_.origin) return Status::invalid_value;
    std::lock_guard lock(mutex_);
    if (!file_) {
        static std::atomic<std::uint64_t> numbers{0};
        // Of this process and no other one.
        const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        number_ = (static_cast<std::uint64_t>(getpid()) << 40) ^ (now << 8) ^ ++numbers;
        FileNote note;
        note.kind = pool_note;
        note.words[0] = number_;
        note.words[1] = static_cast<std::uint64_t>(properties_.kind);
        note.words[2] = static_cast<std::uint64_t>(properties_.place.type);
        const MemoryPlace& place = properties_.place;
        note.words[3] =
            static_cast<std::uint64_t>(place.type == MemoryPlace::device ? Device::get(place.id).number() : place.id);
        note.words[4] = static_cast<std::uint64_t>(properties_.handle_types);
        file_ = make_shared_file(0, note);
        if (!file_) return Status::out_of_memory;
    }
    const int copy = fcntl(file_.get(), F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return Status::operating_system;
    file = copy;
    return Status::success;
}

Status MemoryPool::import_file(int file, std::shared_ptr<MemoryPool>& pool) {
    FileNote note;
    std::size_t size = 0;
    if (!read_shared_file(file, size, note) || note.kind != pool_note || note.words[0] == 0) return Status::unknown;
    static std::mutex importing;
    std::lock_guard lock(importing);
    for (const auto& known : HandleTable<MemoryPool>::get().all())
        if (known->properties_.origin == note.words[0]) {
            pool = known;
            return Status::success;
        }
    PoolProperties properties;
    properties.origin = note.words[0];
    properties.kind = note.words[1] == static_cast<std::uint64_t>(MemoryKind::pinned)    ? MemoryKind::pinned
                      : note.words[1] == static_cast<std::uint64_t>(MemoryKind::managed) ? MemoryKind::managed
                                                                                         : MemoryKind::pool;
    properties.place = {static_cast<int>(note.words[2]), static_cast<int>(note.words[3])};
    if (properties.place.type == MemoryPlace::device) {
        properties.place.id = ordinal_of_device(properties.place.id);
        if (properties.place.id < 0) return Status::invalid_device;
    }
    properties.handle_types = static_cast<int>(note.words[4]);
    pool = std::make_shared<MemoryPool>(properties);
    HandleTable<MemoryPool>::get().add(pool);
    return Status::success;
}

Status MemoryPool::export_pointer(DevicePointer pointer, FilePlace& place) {
    const auto allocation = AddressSpace::get().find(pointer);
    if (!allocation || allocation->base != pointer || !allocation->pool || allocation->kind == MemoryKind::imported)
        return Status::invalid_value;
    std::uint64_t number = 0;
    {
        std::lock_guard lock(allocation->pool->mutex_);
        number = allocation->pool->number_;
    }
    if (!(allocation->pool->properties_.handle_types & file_descriptor_handle)) return Status::invalid_value;
    const Status status = ProcessMemory::place_of(pointer, pointer_place, place);
    if (status != Status::success) return status;
    place.id = number;
    return name_place(place);
}

Status MemoryPool::import_pointer(const std::shared_ptr<MemoryPool>& pool, const FilePlace& place, Context& context,
                                  DevicePointer& pointer) {
    if (const Status status = check_place(place, pointer_place); status != Status::success) return status;
    if (!pool->properties_.origin || place.id != pool->properties_.origin) return Status::invalid_value;
    return ProcessMemory::get().open(place, context, pool, pointer);
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
    if (!value || properties_.origin) return Status::invalid_value; // another process counts
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
    case 10: return narrow(properties_.handle_types);
    case 11: return narrow(properties_.place.id);
    case 12: return narrow(properties_.place.type);
    case 13: return wide(properties_.max_size);
    default: return Status::invalid_value;
    }
}

Status MemoryPool::set_attribute(int attribute, const void* value) {
    if (!value || properties_.origin) return Status::invalid_value;
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
        if (place.id < 0 || place.id >= Device::count()) return Status::invalid_value;
        flags = kind == MemoryKind::pool && place == properties_.place
                    ? read_write
                    : device_access_[static_cast<std::size_t>(place.id)];
        return Status::success;
    case MemoryPlace::host:
    case MemoryPlace::host_numa: flags = kind == MemoryKind::pinned ? read_write : 0; return Status::success;
    default: return Status::invalid_value;
    }
}

Status MemoryPool::check_access(MemoryPlace place, unsigned flags) const {
    constexpr unsigned read_only = 1;
    const bool of_device = place.type == MemoryPlace::device, at_home = place == properties_.place;
    const bool several = properties_.kind == MemoryKind::pool && Device::count() > 1;
    if (!of_device || (flags != 0 && flags != read_only && flags != read_write)) {
        const bool of_host = place.type == MemoryPlace::host || place.type == MemoryPlace::host_numa;
        return !of_host ? Status::invalid_value : several ? Status::not_supported : Status::success;
    }
    if (place.id < 0 || place.id >= Device::count()) return Status::invalid_device;
    if (!several) return Status::success;
    if (at_home && flags != read_write) return Status::invalid_device;
    return flags == read_only ? Status::not_supported : Status::success;
}

Status MemoryPool::set_access(MemoryPlace place, unsigned flags) {
    if (const Status status = check_access(place, flags); status != Status::success) return status;
    if (place.type != MemoryPlace::device) return Status::success;
    std::lock_guard lock(mutex_);
    device_access_[static_cast<std::size_t>(place.id)] = flags;
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
    std::unique_lock lock(mutex_);
    reserved_ = std::max(in_chunks(used_), std::min<std::uint64_t>(reserved_, kept));
    end_surplus(std::move(lock));
}

void MemoryPool::trim_to_threshold() {
    std::unique_lock lock(mutex_);
    reserved_ = std::max(in_chunks(used_), std::min(reserved_, threshold_));
    end_surplus(std::move(lock));
}

void MemoryPool::retire() {
    std::unique_lock lock(mutex_);
    retired_ = true;
    end_surplus(std::move(lock));
}

void MemoryPool::end_surplus(std::unique_lock<std::mutex> lock) {
    const std::size_t room = retired_ ? 0 : static_cast<std::size_t>(reserved_ - std::min(used_, reserved_));
    std::vector<Allocation> surplus;
    while (kept_bytes_ > room) {
        const auto largest = std::prev(kept_.end());
        kept_bytes_ -= largest->first;
        surplus.push_back(largest->second);
        kept_.erase(largest);
    }
    lock.unlock();
    for (const Allocation& allocation : surplus) AddressSpace::get().end(allocation);
}

Status MemoryPool::allocate(std::size_t size, Context* context, Allocation& allocation) {
    if (const Status status = take(size); status != Status::success) return status;
    AddressSpace& space = AddressSpace::get();
    std::optional<Allocation> kept;
    {
        std::lock_guard lock(mutex_);
        // Of pieces that are large enough the smallest, unless half of it would be wasted.
        const auto found = kept_.lower_bound(size);
        if (found != kept_.end() && found->first / 2 <= size) {
            kept = found->second;
            kept_bytes_ -= found->first;
            kept_.erase(found);
        }
    }
    Status status = Status::success;
    if (kept)
        allocation = space.reuse(*kept, size, context);
    else
        status = space.allocate(
            size, properties_.kind, context,
            properties_.place.type == MemoryPlace::device ? properties_.place.id : context->device(), allocation);
    if (status != Status::success) {
        give_back(size);
        return status;
    }
    return space.annotate(allocation.base, [this](Allocation& record) {
        record.pool = shared_from_this();
        record.handle_types = properties_.handle_types;
    });
}

void MemoryPool::end(DevicePointer pointer) {
    AddressSpace& space = AddressSpace::get();
    const auto pending = [](const Allocation& record) { return record.free_pending; };
    const auto worth_it = [](const Allocation& record) {
        return record.free_pending && record.kind == MemoryKind::pool && record.reserved >= AddressSpace::granule;
    };
    Allocation kept;
    if (space.keep(pointer, worth_it, kept) != Status::success) {
        // Gone already only if its context was destroyed in between.
        static_cast<void>(space.free(pointer, pending));
        return;
    }
    std::unique_lock lock(mutex_);
    kept_.emplace(kept.reserved, kept);
    kept_bytes_ += kept.reserved;
    end_surplus(std::move(lock));
}

void trim_pools_to_thresholds() {
    if (!something_to_trim.load(std::memory_order_acquire)) return;
    if (!something_to_trim.exchange(false, std::memory_order_acq_rel)) return;
    for (const auto& pool : HandleTable<MemoryPool>::get().all()) pool->trim_to_threshold();
}

bool end_kept_memory() {
    const std::size_t before = AddressSpace::get().bytes_in_use();
    for (const auto& pool : HandleTable<MemoryPool>::get().all()) pool->trim(0);
    return AddressSpace::get().bytes_in_use() < before;
}

Status pool_of_place(MemoryPlace place, int allocation_type, bool current, std::shared_ptr<MemoryPool>& pool) {
    MemoryKind kind{};
    if (const Status status = place_status(place, allocation_type, kind); status != Status::success) return status;
    if (kind == MemoryKind::pool) {
        const Context& primary = *primary_context(place.id);
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
    if (!pool || pool->properties().kind != kind || pool->properties().place != place || pool->properties().origin)
        return Status::invalid_value;
    if (kind == MemoryKind::pool) {
        primary_context(place.id)->set_pool(pool);
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
    pool->retire();
    if (properties.kind == MemoryKind::pool) {
        Context& primary = *primary_context(properties.place.id);
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
    if (pool->properties().origin) return Status::invalid_value; // another process's
    if (size == 0) return Status::success;
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->allocate(pool, size, pointer);
    if (const Status status = Captures::check_unsafe_call(); status != Status::success) return status;
    // The memory exists from the call on: that is earlier than stream order asks, never later.
    Allocation allocation;
    Status status = pool->allocate(size, &stream.context(), allocation);
    if (status == Status::out_of_memory && end_kept_memory())
        status = pool->allocate(size, &stream.context(), allocation);
    if (status == Status::success) pointer = allocation.base;
    return status;
}

Status pool_free(Stream& stream, DevicePointer pointer) {
    if (pointer == 0) return Status::success;
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->free(pointer);
    if (const Status status = Captures::check_unsafe_call(); status != Status::success) return status;
    const auto allocation = AddressSpace::get().find(pointer);
    if (auto owner = allocation ? allocation->owner.lock() : nullptr) {
        if (allocation->base != pointer || !owner->mark_free_pending()) return Status::invalid_value;
        stream.submit([owner] { owner->free(); }, Stream::Start::inline_if_idle);
        return Status::success;
    }
    const Status status = AddressSpace::get().mark_free_pending(pointer);
    if (status != Status::success) return status;
    stream.submit(
        [pointer] {
            const auto pending = [](const Allocation& record) { return record.free_pending; };
            AddressSpace& space = AddressSpace::get();
            const auto allocation = space.find(pointer);
            if (!allocation) return; // its context was destroyed in between
            if (allocation->kind == MemoryKind::imported)
                static_cast<void>(ProcessMemory::get().close(pointer));
            else if (allocation->pool)
                allocation->pool->end(pointer);
            else
                static_cast<void>(space.free(pointer, pending));
        },
        Stream::Start::inline_if_idle);
    return Status::success;
}

} // namespace ptarmigan::runtime
