// SPDX-License-Identifier: Apache-2.0
// Event sets, in which nothing ever happens: a device of this kind has no event that it could report.
#include "runtime/nvml/library_state.h"

#include <chrono>
#include <mutex>
#include <set>
#include <thread>

using namespace ptarmigan::nvml;
using ptarmigan::runtime::Device;

namespace {

/// Sets that exist, as handles: numbers that are used once.
class EventSets {
public:
    nvmlEventSet_t make() {
        std::lock_guard lock(mutex_);
        const auto set = reinterpret_cast<nvmlEventSet_t>(next_++ * alignof(std::max_align_t));
        sets_.insert(set);
        return set;
    }
    bool forget(nvmlEventSet_t set) {
        std::lock_guard lock(mutex_);
        return sets_.erase(set) != 0;
    }
    bool has(nvmlEventSet_t set) {
        std::lock_guard lock(mutex_);
        return sets_.contains(set);
    }

private:
    std::mutex mutex_;
    std::uintptr_t next_ = 1;
    std::set<nvmlEventSet_t> sets_;
};

EventSets& event_sets() {
    static auto& sets = *new EventSets; // never destroyed: programs call in from their exit handlers
    return sets;
}

nvmlReturn_t wait_for_nothing(nvmlEventSet_t set, const void* data, unsigned milliseconds) {
    if (!data || !event_sets().has(set)) return invalid_argument;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return timeout;
}

} // namespace

PTM_NVML nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long* types) {
    return device_entry(__func__, handle, [&](Device&, unsigned) { return give(types, 0); });
}

PTM_NVML nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set) {
    return device_entry(__func__, handle, [&](Device&, unsigned) -> nvmlReturn_t {
        if (!event_sets().has(set)) return invalid_argument;
        return types == 0 ? success : not_supported;
    });
}

PTM_NVML nvmlEventSetCreate(nvmlEventSet_t* set) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!set) return invalid_argument;
        *set = event_sets().make();
        return success;
    });
}

PTM_NVML nvmlEventSetFree(nvmlEventSet_t set) {
    return entry(__func__, [&]() -> nvmlReturn_t { return event_sets().forget(set) ? success : invalid_argument; });
}

PTM_NVML nvmlEventSetWait(nvmlEventSet_t set, void* data, unsigned milliseconds) {
    return entry(__func__, [&] { return wait_for_nothing(set, data, milliseconds); });
}

PTM_NVML nvmlEventSetWait_v2(nvmlEventSet_t set, void* data, unsigned milliseconds) {
    return entry(__func__, [&] { return wait_for_nothing(set, data, milliseconds); });
}
