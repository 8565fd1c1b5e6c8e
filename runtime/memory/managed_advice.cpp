// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/managed_advice.h"

#include "runtime/device/device.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ptarmigan::runtime {
namespace {

enum AdviceKind : int {
    set_read_mostly = 1,
    unset_read_mostly = 2,
    set_preferred = 3,
    unset_preferred = 4,
    set_accessed_by = 5,
    unset_accessed_by = 6,
};

/// The managed allocation that holds the whole range.
std::optional<Allocation> managed_range(DevicePointer pointer, std::size_t size) {
    auto allocation = AddressSpace::get().find(pointer);
    const bool fits = allocation && size != 0 && size <= allocation->end() - pointer && !allocation->free_pending;
    return fits && allocation->kind == MemoryKind::managed ? allocation : std::nullopt;
}

bool is_device(int id) {
    return id >= 0 && id < Device::count();
}

} // namespace

ManagedAdvice& ManagedAdvice::get() {
    static auto* advice = new ManagedAdvice; // never destroyed: programs call in from their exit handlers
    return *advice;
}

void ManagedAdvice::split(std::uintptr_t at) {
    const auto next = pieces_.upper_bound(at);
    pieces_.emplace(at, std::prev(next)->second);
}

Advice ManagedAdvice::common(std::uintptr_t begin, std::uintptr_t end) const {
    std::lock_guard lock(mutex_);
    auto piece = std::prev(pieces_.upper_bound(begin));
    Advice all = piece->second;
    for (++piece; piece != pieces_.end() && piece->first < end; ++piece) {
        const Advice& other = piece->second;
        all.read_mostly &= other.read_mostly;
        all.by_devices &= other.by_devices;
        all.by_host &= other.by_host;
        if (all.preferred != other.preferred) all.preferred = {};
        if (all.prefetched != other.prefetched) all.prefetched = {};
    }
    return all;
}

void ManagedAdvice::forget(std::uintptr_t begin, std::uintptr_t end) {
    std::lock_guard lock(mutex_);
    if (pieces_.size() == 1) return; // nothing was ever advised
    split(begin);
    split(end);
    pieces_.erase(pieces_.upper_bound(begin), pieces_.lower_bound(end));
    pieces_[begin] = {};
    // Neighbours that are alike become one, so that the map does not grow with what is gone.
    for (const std::uintptr_t border : {end, begin}) {
        const auto piece = pieces_.find(border);
        if (piece != pieces_.begin() && std::prev(piece)->second == piece->second) pieces_.erase(piece);
    }
}

Status managed_advise(DevicePointer pointer, std::size_t size, int advice, MemoryPlace place) {
    if (advice < set_read_mostly || advice > unset_accessed_by) return Status::invalid_value;
    if (place.type < MemoryPlace::device || place.type > MemoryPlace::host_numa_current) return Status::invalid_value;
    const bool on_node = place.type == MemoryPlace::host_numa || place.type == MemoryPlace::host_numa_current;
    const bool of_accessor = advice == set_accessed_by || advice == unset_accessed_by;
    if (on_node && of_accessor) return Status::invalid_value;
    const auto allocation = managed_range(pointer, size);
    if (!allocation) return Status::invalid_value;
    const bool names_device = place.type == MemoryPlace::device && (of_accessor || advice == set_preferred);
    if (names_device && !is_device(place.id)) return Status::invalid_device;
    if (on_node) return Status::success; // an H100's driver remembers none of it either
    if (place.type == MemoryPlace::host) place.id = -1;
    ManagedAdvice::get().change(*allocation, pointer, pointer + size, [&](Advice& page) {
        switch (advice) {
        case set_read_mostly: page.read_mostly = true; break;
        case unset_read_mostly: page.read_mostly = false; break;
        case set_preferred: page.preferred = place; break;
        case unset_preferred: page.preferred = {}; break;
        default: {
            const std::uint32_t bit = place.type == MemoryPlace::device ? 1u << place.id : 0;
            if (bit == 0) page.by_host = advice == set_accessed_by;
            page.by_devices = advice == set_accessed_by ? page.by_devices | bit : page.by_devices & ~bit;
            break;
        }
        }
    });
    return Status::success;
}

Status managed_prefetch(DevicePointer pointer, std::size_t size, MemoryPlace place) {
    if (place.type < MemoryPlace::device || place.type > MemoryPlace::host_numa_current) return Status::invalid_value;
    const auto allocation = managed_range(pointer, size);
    if (!allocation) return Status::invalid_value;
    if (place.type == MemoryPlace::device && !is_device(place.id)) return Status::invalid_device;
    if (place.type == MemoryPlace::host_numa && place.id != 0) return Status::invalid_value; // one node is told of
    if (place.type == MemoryPlace::host) place.id = -1;
    ManagedAdvice::get().change(*allocation, pointer, pointer + size, [&](Advice& page) { page.prefetched = place; });
    return Status::success;
}

bool is_managed(DevicePointer pointer, std::size_t size) {
    return managed_range(pointer, size).has_value();
}

Status managed_attribute(DevicePointer pointer, std::size_t size, int attribute, void* value, std::size_t bytes) {
    constexpr int accessed_by = 3;
    const bool fits = attribute == accessed_by ? bytes >= 4 && bytes % 4 == 0 : bytes == 4;
    if (!value || !fits || attribute < 1 || attribute > 8 || !managed_range(pointer, size))
        return Status::invalid_value;
    const Advice advice = ManagedAdvice::get().common(pointer, pointer + size);
    std::vector<int> answer(bytes / 4, -2);
    switch (attribute) {
    case 1: answer[0] = advice.read_mostly; break;
    case 2: answer[0] = advice.preferred.ordinal(); break;
    case accessed_by: {
        std::size_t used = 0;
        for (int id = 0; id < Device::count() && used < answer.size(); ++id)
            if (advice.by_devices >> id & 1) answer[used++] = id;
        if (advice.by_host && used < answer.size()) answer[used] = -1;
        break;
    }
    case 4: answer[0] = advice.prefetched.ordinal(); break;
    case 5: answer[0] = advice.preferred.type; break;
    case 6: answer[0] = advice.preferred.id; break;
    case 7: answer[0] = advice.prefetched.type; break;
    case 8: answer[0] = advice.prefetched.id; break;
    }
    std::memcpy(value, answer.data(), bytes);
    return Status::success;
}

} // namespace ptarmigan::runtime
