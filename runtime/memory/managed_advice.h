// SPDX-License-Identifier: Apache-2.0
// What programs have advised about managed memory, and where they had it prefetched. Memory here is where it is, so
// none of it has an effect: it is remembered, page by page, and answered.
#pragma once

#include "runtime/memory/memory.h"

#include <map>
#include <mutex>

namespace ptarmigan::runtime {

/// Of one page, or common to all pages of a range.
struct Advice {
    bool read_mostly = false, by_host = false;
    std::uint32_t by_devices = 0; ///< a bit for each ordinal
    MemoryPlace preferred, prefetched;
    bool operator==(const Advice&) const = default;
};

/// Thread-safe; its mutex is a leaf.
class ManagedAdvice {
public:
    static ManagedAdvice& get();
    /// edit(Advice&) for all pages that [begin, end) touches; pages count from the start of `allocation`.
    template <class Edit>
    void change(const Allocation& allocation, std::uintptr_t begin, std::uintptr_t end, Edit&& edit) {
        constexpr std::size_t page = 4096;
        begin = allocation.base + (begin - allocation.base) / page * page;
        end = std::min(allocation.end(), allocation.base + (end - allocation.base + page - 1) / page * page);
        std::lock_guard lock(mutex_);
        split(begin);
        split(end);
        for (auto piece = pieces_.find(begin); piece != pieces_.end() && piece->first < end; ++piece)
            edit(piece->second);
    }
    /// What holds for all of [begin, end).
    Advice common(std::uintptr_t begin, std::uintptr_t end) const;
    /// At the end of an allocation.
    void forget(std::uintptr_t begin, std::uintptr_t end);

private:
    void split(std::uintptr_t at);

    mutable std::mutex mutex_;
    std::map<std::uintptr_t, Advice> pieces_{{0, {}}}; ///< each up to the next one
};

/// cuMemAdvise (CUmem_advise 1..6) and cuMemPrefetchAsync, with the NVIDIA driver's checks: invalid_value for what is
/// no managed memory, invalid_device for a device that there is not.
Status managed_advise(DevicePointer pointer, std::size_t size, int advice, MemoryPlace place);
Status managed_prefetch(DevicePointer pointer, std::size_t size, MemoryPlace place);
/// True if all of the range lies in one managed allocation.
bool is_managed(DevicePointer pointer, std::size_t size);
/// CUmem_range_attribute 1..8 into `bytes` bytes: 4, or any multiple of 4 for the list of who accesses (3).
Status managed_attribute(DevicePointer pointer, std::size_t size, int attribute, void* value, std::size_t bytes);

} // namespace ptarmigan::runtime
