// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/graph_memory.h"

#include "runtime/context/context.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint64_t chunk = std::uint64_t{32} << 20;
std::uint64_t in_chunks(std::uint64_t bytes) {
    return (bytes + chunk - 1) / chunk * chunk;
}

/// What the device's graphs hold, as an H100's driver counts it: in 32 MiB for each instance, kept until it is trimmed.
struct Count {
    struct Taken {
        std::shared_ptr<GraphMemory> memory; ///< keeps itself while the program holds it
        std::uint64_t exec_id = 0;
    };
    struct Instance {
        std::uint64_t bytes = 0;
        unsigned taken = 0;
    };
    std::mutex mutex; ///< a leaf
    std::map<const GraphMemory*, Taken> taken;
    std::map<std::uint64_t, Instance> instances; ///< that have memory taken, by id
    std::uint64_t reserved = 0, used_high = 0, reserved_high = 0;

    static Count& get() {
        static auto* count = new Count; // never destroyed: programs call in from their exit handlers
        return *count;
    }
    std::uint64_t in_use() const {
        std::uint64_t sum = 0;
        for (const auto& [id, instance] : instances) sum += instance.bytes;
        return sum;
    }
    void reserve(std::uint64_t bytes) {
        reserved = std::max(reserved, bytes);
        used_high = std::max(used_high, reserved);
        reserved_high = std::max(reserved_high, reserved);
    }
};

} // namespace

Status GraphMemory::create(Context& context, MemoryKind kind, std::size_t size, std::shared_ptr<GraphMemory>& memory,
                           int device) {
    AddressSpace& space = AddressSpace::get();
    Allocation allocation;
    const Status status =
        space.allocate(size, kind, &context, device == any_device ? context.device() : device, allocation);
    if (status != Status::success) return status;
    memory = std::make_shared<GraphMemory>(context, allocation.base, size);
    return space.annotate(allocation.base, [&](Allocation& record) { record.owner = memory; });
}

GraphMemory::~GraphMemory() {
    static_cast<void>(AddressSpace::get().free(pointer_, [](const Allocation&) { return true; }));
}

std::shared_ptr<GraphMemory> GraphMemory::find(DevicePointer pointer) {
    const auto allocation = AddressSpace::get().find(pointer);
    if (!allocation || allocation->base != pointer) return nullptr;
    return std::dynamic_pointer_cast<GraphMemory>(allocation->owner.lock());
}

void reserve_graph_memory(const GraphFootprint& footprint) {
    Count& count = Count::get();
    std::lock_guard lock(count.mutex);
    const bool counted = count.instances.contains(footprint.exec_id);
    count.reserve(count.in_use() + (counted ? 0 : in_chunks(footprint.bytes)));
}

bool GraphMemory::take(const GraphFootprint& footprint) {
    Count& count = Count::get();
    std::lock_guard lock(count.mutex);
    if (!count.taken.emplace(this, Count::Taken{shared_from_this(), footprint.exec_id}).second) return false;
    Count::Instance& instance = count.instances[footprint.exec_id];
    instance.bytes = in_chunks(footprint.bytes);
    ++instance.taken;
    return true;
}

bool GraphMemory::is_held() const {
    Count& count = Count::get();
    std::lock_guard lock(count.mutex);
    return count.taken.contains(this);
}

bool GraphMemory::mark_free_pending() {
    Count& count = Count::get();
    std::shared_ptr<GraphMemory> kept; // goes after the lock
    std::lock_guard lock(count.mutex);
    const auto found = count.taken.find(this);
    if (found == count.taken.end()) return false;
    kept = std::move(found->second.memory);
    const auto instance = count.instances.find(found->second.exec_id);
    if (instance != count.instances.end() && --instance->second.taken == 0) count.instances.erase(instance);
    count.taken.erase(found);
    return true;
}

Status graph_memory_attribute(int attribute, std::uint64_t& value) {
    Count& count = Count::get();
    std::lock_guard lock(count.mutex);
    switch (attribute) {
    case 0: // the driver counts what is mapped as used
    case 2: value = count.reserved; return Status::success;
    case 1: value = count.used_high; return Status::success;
    case 3: value = count.reserved_high; return Status::success;
    default: return Status::invalid_value;
    }
}

Status set_graph_memory_attribute(int attribute, std::uint64_t value) {
    Count& count = Count::get();
    std::lock_guard lock(count.mutex);
    if (value != 0) return Status::invalid_value;
    switch (attribute) {
    case 1: count.used_high = count.reserved; return Status::success;
    case 3: count.reserved_high = count.reserved; return Status::success;
    default: return Status::invalid_value;
    }
}

void trim_graph_memory() {
    Count& count = Count::get();
    std::lock_guard lock(count.mutex);
    count.reserved = count.in_use();
}

} // namespace ptarmigan::runtime
